//! A session against `rustls`'s own client, in memory.

use std::io::{Read as _, Write as _};

use proptest::prelude::*;
use rustls::crypto::cipher::OutboundPlainMessage;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
    RootCertStore, SupportedProtocolVersion, version,
};

use super::*;

/// Configurations of a server and of a client that trusts it.
fn configs(version: &'static SupportedProtocolVersion) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let mut server = ServerConfig::builder_with_protocol_versions(&[version])
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut client = ClientConfig::builder_with_protocol_versions(&[version])
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    client.enable_secret_extraction = true;
    (Arc::new(server), Arc::new(client))
}

/// Both sides, and what is on its way to the server in no particular pieces.
struct Pair {
    session: TlsSession,
    client: ClientConnection,
    held: Vec<u8>,
    /// Bytes that the server has received.
    received: Vec<u8>,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let (server, client) = configs(version);
        let name = ServerName::try_from("localhost").unwrap();
        Self {
            session: TlsSession::new(server).unwrap(),
            client: ClientConnection::new(client, name).unwrap(),
            held: Vec::new(),
            received: Vec::new(),
        }
    }

    /// Gives the server what the client has to send, `step` bytes at a time, and the client the
    /// server's answers, until neither has anything to say.
    fn exchange(&mut self, step: usize) -> Result<(), TlsError> {
        loop {
            let mut sent = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut sent).unwrap();
            }
            if sent.is_empty() {
                return Ok(());
            }
            for piece in sent.chunks(step) {
                let mut out = Records::default();
                let read = self.receive(piece, &mut out);
                self.deliver(out.bytes());
                read?;
            }
        }
    }

    fn receive(&mut self, piece: &[u8], out: &mut Records) -> Result<(), TlsError> {
        self.held.extend_from_slice(piece);
        let mut space = [0; 100];
        let mut plaintext = Plaintext::new(&mut space);
        let taken = self.session.read(&mut self.held, &mut plaintext, out)?;
        self.held.drain(..taken);
        let (len, rest) = (plaintext.len, plaintext.rest);
        self.received.extend_from_slice(&space[..len]);
        self.received.extend(rest);
        Ok(())
    }

    /// Gives the client records; returns the plaintext in those that it does not refuse.
    fn deliver(&mut self, mut records: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !records.is_empty() {
            self.client.read_tls(&mut records).unwrap();
            if self.client.process_new_packets().is_ok() {
                // It would block when there is no more.
                let _ = self.client.reader().read_to_end(&mut bytes);
            }
        }
        bytes
    }
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

#[test]
fn the_cut_of_the_records_never_matters() {
    for version in VERSIONS {
        for step in [1, 7, 1_000, usize::MAX] {
            let mut pair = Pair::new(version);
            pair.exchange(step).unwrap();
            assert!(pair.session.is_open() && !pair.client.is_handshaking());
            assert_eq!(pair.session.protocol(), Some(&b"http/1.1"[..]));
            let sent: Vec<u8> = (0..40_000_u32).map(|n| n as u8).collect();
            pair.client.writer().write_all(&sent).unwrap();
            pair.exchange(step).unwrap();
            assert!(pair.received == sent, "{version:?} {step}");
            assert!(pair.held.is_empty(), "an idle connection holds no bytes");
        }
    }
}

#[test]
fn a_response_up_to_a_record_is_one_record() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.exchange(usize::MAX).unwrap();
        for (len, count) in [(1, 1), (RECORD, 1), (RECORD + 1, 2), (4 * RECORD, 4)] {
            let sent: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let mut out = Records::default();
            pair.session
                .write(&mut Vec::new(), &sent, &mut out)
                .unwrap();
            assert_eq!(records(out.bytes()), count, "{len}");
            assert!(pair.deliver(out.bytes()) == sent, "{version:?} {len}");
        }
    }
}

/// The number of records, by their heads (RFC 8446 section 5.1).
fn records(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let [_, _, _, high, low, rest @ ..] = bytes {
        bytes = &rest[usize::from(u16::from_be_bytes([*high, *low]))..];
        count += 1;
    }
    count
}

#[test]
fn each_side_may_end_first() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        pair.exchange(usize::MAX).unwrap();
        pair.client.send_close_notify();
        pair.exchange(usize::MAX).unwrap();
        assert!(pair.session.has_ended());
        let mut out = Records::default();
        pair.session
            .write(&mut Vec::new(), b"still said", &mut out)
            .unwrap();
        pair.session.close(&mut Vec::new(), &mut out).unwrap();
        assert_eq!(pair.deliver(out.bytes()), b"still said");
    }
}

#[test]
fn what_is_not_tls_or_broken_is_refused_with_an_alert() {
    for version in VERSIONS {
        let mut pair = Pair::new(version);
        let mut out = Records::default();
        let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(pair.receive(http, &mut out), Err(TlsError::Protocol));

        let mut pair = Pair::new(version);
        pair.exchange(usize::MAX).unwrap();
        pair.client.writer().write_all(b"a secret").unwrap();
        let (mut sent, mut out) = (Vec::new(), Records::default());
        pair.client.write_tls(&mut sent).unwrap();
        *sent.last_mut().unwrap() ^= 1;
        assert_eq!(pair.receive(&sent, &mut out), Err(TlsError::Protocol));
        assert!(!out.bytes().is_empty() && pair.received.is_empty());
    }
}

/// `rustls` remembers where the message begins, in bytes that it has to be given again.
#[test]
fn a_message_that_has_begun_stands_in_the_way_of_nothing() {
    let mut pair = Pair::new(&version::TLS13);
    let mut out = Records::default();
    // A byte of a ClientHello, and data before there are keys.
    let broken = [22, 3, 1, 0, 1, 1, 23, 3, 3, 0, 1, 0];
    assert_eq!(pair.receive(&broken, &mut out), Err(TlsError::Protocol));
}

/// A ClientHello in records of these lengths.
fn cut_into_records(hello: &[u8], lengths: &[u8]) -> Vec<u8> {
    let mut message = &hello[HEAD..];
    let mut records = Vec::new();
    for length in lengths.iter().cycle() {
        let (part, rest) = message.split_at(message.len().min(1 + usize::from(*length)));
        records.extend_from_slice(&[22, 3, 1, 0]);
        records.push(u8::try_from(part.len()).unwrap_or(u8::MAX));
        records.extend_from_slice(&part[..part.len().min(usize::from(u8::MAX))]);
        message = rest;
        if message.is_empty() {
            break;
        }
    }
    records
}

/// Bytes that a client may send in an open connection: an encrypted record, or any bytes.
#[derive(Clone, Debug)]
enum Flight {
    Record(u8, Vec<u8>),
    Junk(Vec<u8>),
}

fn flights() -> impl Strategy<Value = Vec<Flight>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    // Beginnings of messages of a handshake: NewSessionTicket, KeyUpdate, Finished.
    let message = (prop::sample::select(vec![4, 24, 20, 0]), bytes())
        .prop_map(|(first, rest)| [&[first, 0, 0, 1][..], &rest].concat());
    let payload = prop_oneof![
        bytes(),
        message.clone(),
        message.prop_map(|it| it[..1].to_vec())
    ];
    let kind = prop::sample::select(vec![20, 21, 22, 22, 22, 23, 23, 99]);
    let flight = prop_oneof![
        9 => (kind, payload).prop_map(|(kind, payload)| Flight::Record(kind, payload)),
        1 => bytes().prop_map(Flight::Junk),
    ];
    proptest::collection::vec(flight, 1..10)
}

/// Sends the flights in an open connection of TLS 1.3, with a response after each piece.
fn send_flights(flights: &[Flight], step: usize) {
    let mut pair = Pair::new(&version::TLS13);
    pair.exchange(usize::MAX).unwrap();
    let client = std::mem::replace(&mut pair.client, Pair::new(&version::TLS13).client);
    let suite = client.negotiated_cipher_suite().unwrap().tls13().unwrap();
    let (mut sequence, secrets) = client.dangerous_extract_secrets().unwrap().tx;
    let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
        panic!("another suite");
    };
    let mut encrypter = suite.aead_alg.encrypter(key, iv);
    let mut sent = Vec::new();
    for flight in flights {
        match flight {
            Flight::Record(kind, payload) => {
                let plain = OutboundPlainMessage {
                    typ: ContentType::from(*kind),
                    version: ProtocolVersion::TLSv1_2,
                    payload: payload[..].into(),
                };
                sent.extend(encrypter.encrypt(plain, sequence).unwrap().encode());
                sequence += 1;
            }
            Flight::Junk(bytes) => sent.extend(bytes),
        }
    }
    for piece in sent.chunks(step) {
        let mut out = Records::default();
        if pair.receive(piece, &mut out).is_err() {
            return;
        }
        if pair
            .session
            .write(&mut pair.held, b"a response", &mut out)
            .is_err()
        {
            return;
        }
    }
    let _ = pair.session.close(&mut pair.held, &mut Records::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_first_flight_makes_it_panic(
        lengths in proptest::collection::vec(0..255_u8, 1..8),
        at in 0.0..1.0_f64,
        junk in proptest::collection::vec(any::<u8>(), 0..12),
        is_inserted in any::<bool>(),
        step in 1..600_usize,
    ) {
        let mut pair = Pair::new(&version::TLS13);
        let mut hello = Vec::new();
        pair.client.write_tls(&mut hello).unwrap();
        let mut sent = cut_into_records(&hello, &lengths);
        let at = (sent.len() as f64 * at) as usize;
        let end = if is_inserted { at } else { (at + junk.len()).min(sent.len()) };
        sent.splice(at..end, junk.iter().copied());
        for piece in sent.chunks(step) {
            let mut out = Records::default();
            if pair.receive(piece, &mut out).is_err() {
                break;
            }
            pair.session.close(&mut pair.held, &mut out).unwrap();
        }
    }

    #[test]
    fn no_records_make_it_panic(flights in flights(), step in 1..200_usize) {
        send_flights(&flights, step);
    }
}
