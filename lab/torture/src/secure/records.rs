//! Attacks with records of TLS (RFC 8446 section 5, RFC 5246 section 6).

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use lab_testkit::http2::is_patience;
use rustls::crypto::cipher::{MessageEncrypter, OutboundPlainMessage};
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite,
    SupportedProtocolVersion, version,
};

use super::attack::AttackEnd;
use super::target::SecureTarget;

/// More than any server should take of records that say nothing.
const FLOOD: usize = 100_000;

/// A connection whose records are made by hand after its handshake.
struct RecordWriter {
    socket: TcpStream,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl RecordWriter {
    fn connect(
        target: &SecureTarget,
        version: &'static SupportedProtocolVersion,
    ) -> io::Result<Self> {
        let stream = target.connect_as(version, b"http/1.1")?;
        let (connection, socket) = stream.into_parts();
        let suite = connection
            .negotiated_cipher_suite()
            .ok_or_else(|| io::Error::other("no suite"))?;
        let secrets = connection
            .dangerous_extract_secrets()
            .map_err(io::Error::other)?;
        let (sequence, secrets) = secrets.tx;
        let encrypter = match (suite, secrets) {
            (
                SupportedCipherSuite::Tls13(suite),
                ConnectionTrafficSecrets::Aes128Gcm { key, iv },
            ) => suite.aead_alg.encrypter(key, iv),
            (
                SupportedCipherSuite::Tls12(suite),
                ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv },
            ) => suite.aead_alg.encrypter(key, iv.as_ref(), &[]),
            _ => return Err(io::Error::other("another suite")),
        };
        Ok(Self {
            socket,
            encrypter,
            sequence,
        })
    }

    fn record(&mut self, typ: ContentType, payload: &[u8]) -> io::Result<Vec<u8>> {
        let plain = OutboundPlainMessage {
            typ,
            version: ProtocolVersion::TLSv1_2,
            payload: payload.into(),
        };
        let encrypted = self.encrypter.encrypt(plain, self.sequence);
        self.sequence += 1;
        Ok(encrypted.map_err(io::Error::other)?.encode())
    }

    /// Sends a record again and again until the server ends the connection.
    fn flood(mut self, typ: ContentType, payload: &[u8]) -> io::Result<AttackEnd> {
        for _ in 0..FLOOD {
            let record = self.record(typ, payload)?;
            if self.socket.write_all(&record).is_err() {
                return Ok(AttackEnd::Closed);
            }
        }
        Ok(AttackEnd::NotEnded)
    }
}

/// Waits for the end of a connection on which nothing more is sent.
fn until_closed(mut socket: TcpStream) -> io::Result<AttackEnd> {
    let mut piece = [0; 4096];
    loop {
        match socket.read(&mut piece) {
            Ok(0) => return Ok(AttackEnd::Closed),
            Ok(_) => {}
            Err(error) if is_patience(&error) => return Err(error),
            Err(_) => return Ok(AttackEnd::Closed),
        }
    }
}

pub(super) fn silent(target: &SecureTarget) -> io::Result<AttackEnd> {
    until_closed(target.socket()?)
}

/// The first records of a handshake.
fn hello(target: &SecureTarget) -> io::Result<Vec<u8>> {
    let mut client = target.client(&version::TLS13, b"h2")?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello)?;
    Ok(hello)
}

pub(super) fn half_a_hello(target: &SecureTarget) -> io::Result<AttackEnd> {
    let hello = hello(target)?;
    let mut socket = target.socket()?;
    socket.write_all(&hello[..hello.len() / 2])?;
    until_closed(socket)
}

pub(super) fn hello_byte_by_byte(target: &SecureTarget) -> io::Result<AttackEnd> {
    let hello = hello(target)?;
    let mut socket = target.socket()?;
    for byte in hello.chunks(1) {
        if socket.write_all(byte).is_err() {
            return Ok(AttackEnd::Closed);
        }
        thread::sleep(Duration::from_millis(5));
    }
    until_closed(socket)
}

/// A message of a handshake that claims 64 KB and stops before its end.
pub(super) fn endless_hello(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut socket = target.socket()?;
    let mut message = vec![1, 0, 0xff, 0xf0, 3, 3];
    message.resize(60_000, 0);
    for part in message.chunks(16_000) {
        let len = u16::try_from(part.len()).unwrap_or_default();
        let mut record = vec![22, 3, 1];
        record.extend_from_slice(&len.to_be_bytes());
        record.extend_from_slice(part);
        if socket.write_all(&record).is_err() {
            return Ok(AttackEnd::Closed);
        }
    }
    until_closed(socket)
}

pub(super) fn handshake_and_nothing(target: &SecureTarget) -> io::Result<AttackEnd> {
    let stream = target.connect(b"http/1.1")?;
    until_closed(stream.into_parts().1)
}

/// Most of a record, without its end.
pub(super) fn partial_record(target: &SecureTarget) -> io::Result<AttackEnd> {
    let stream = target.connect(b"http/1.1")?;
    let mut socket = stream.into_parts().1;
    let mut record = vec![23, 3, 3, 0x40, 0];
    record.resize(16_000, 0);
    socket.write_all(&record)?;
    until_closed(socket)
}

/// A request, and the first byte of a KeyUpdate or of a ClientHello in a record of its own.
pub(super) fn message_behind_request(target: &SecureTarget) -> io::Result<AttackEnd> {
    let request = b"GET /mills HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (version, message) in [(&version::TLS13, 24), (&version::TLS12, 1)] {
        let mut writer = RecordWriter::connect(target, version)?;
        // The second time the response is a cached one.
        for _ in 0..2 {
            let mut records = writer.record(ContentType::ApplicationData, request)?;
            records.extend(writer.record(ContentType::Handshake, &[message])?);
            let _ = writer.socket.write_all(&records);
        }
        match until_closed(writer.socket)? {
            AttackEnd::Closed => {}
            other => return Ok(other),
        }
    }
    Ok(AttackEnd::Closed)
}

pub(super) fn broken_message(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut socket = target.socket()?;
    // A byte of a ClientHello, and data before there are keys.
    let _ = socket.write_all(&[22, 3, 1, 0, 1, 1, 23, 3, 3, 0, 1, 0]);
    until_closed(socket)
}

/// A ClientHello in TLS 1.2 after the handshake.
pub(super) fn renegotiation(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut client = target.client(&version::TLS12, b"http/1.1")?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello)?;
    let writer = RecordWriter::connect(target, &version::TLS12)?;
    // Without the head of its record.
    writer.flood(ContentType::Handshake, &hello[5..])
}

/// A HelloRequest, which only a server sends.
pub(super) fn hello_requests(target: &SecureTarget) -> io::Result<AttackEnd> {
    let writer = RecordWriter::connect(target, &version::TLS12)?;
    writer.flood(ContentType::Handshake, &[0, 0, 0, 0])
}

pub(super) fn key_updates(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut stream = target.connect(b"http/1.1")?;
    for _ in 0..FLOOD {
        let updated = stream.conn.refresh_traffic_keys();
        updated.map_err(io::Error::other)?;
        if stream.conn.write_tls(&mut stream.sock).is_err() {
            return Ok(AttackEnd::Closed);
        }
    }
    Ok(AttackEnd::NotEnded)
}

pub(super) fn empty_records(target: &SecureTarget) -> io::Result<AttackEnd> {
    RecordWriter::connect(target, &version::TLS13)?.flood(ContentType::ApplicationData, &[])
}

/// One byte in a record of 16 KiB, of which the rest is padding (RFC 8446 section 5.4). The bytes
/// are those of a body that never ends.
pub(super) fn padded_records(target: &SecureTarget) -> io::Result<AttackEnd> {
    let mut writer = RecordWriter::connect(target, &version::TLS13)?;
    let mut padded = vec![0; 16_000];
    // The byte, and the type; the encrypter adds another zero of padding.
    (padded[0], padded[1]) = (b'a', 23);
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
    let head = writer.record(ContentType::ApplicationData, head)?;
    writer.socket.write_all(&head)?;
    writer.flood(ContentType::Unknown(0), &padded)
}

/// Warnings of TLS 1.2, which end nothing by themselves.
pub(super) fn alerts(target: &SecureTarget) -> io::Result<AttackEnd> {
    // no_renegotiation
    RecordWriter::connect(target, &version::TLS12)?.flood(ContentType::Alert, &[1, 100])
}
