//! TLS 1.2 and 1.3 without a loop of its own: rustls between the socket and the parser.
//!
//! One read of the socket is one `recv`. All plaintext that it yields is handed out at once, so no
//! readable data is left for which epoll would not wake the thread.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use base_clock::Nanos;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, HandshakeKind};

use super::Received;
use crate::outcome::{FailureKind, Fault};
use crate::{Error, TargetPlan};

/// Bytes of ciphertext taken at once. Together with a partial record from before, its plaintext is
/// shorter than the engine's buffer of 64 KiB.
pub(super) const CIPHERTEXT: usize = 32 * 1024;
/// Plaintext sealed at once: one record.
const RECORD: usize = 16 * 1024;
/// HTTP/2 by ALPN (RFC 9113, section 3.1).
const HTTP2: &[u8] = b"h2";

/// Configuration of TLS connections to the server.
pub(super) struct TlsConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnector {
    /// For the server of `plan`, which must prove to be `host`. All threads share the data for
    /// session resumption.
    pub(super) fn new(plan: &TargetPlan, host: &str) -> Result<Self, Error> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Error::Plan(format!("TLS cannot be set up for {host}: {error}")))?;
        Ok(Self {
            config: Arc::new(client_config(plan)?),
            name,
        })
    }

    /// Begins the handshake on a connected socket.
    pub(super) fn begin(&self, socket: OwnedFd) -> Result<TlsSession, Fault> {
        let tls = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| fault(&error))?;
        Ok(TlsSession {
            socket,
            begun: base_clock::now(),
            tls,
            end: None,
        })
    }
}

/// The settings of TLS for connections to the server of `plan`: which certificates it may have,
/// which protocol is asked for by ALPN (RFC 7301), and whether sessions are resumed.
///
/// # Errors
/// The file of roots cannot be read, or this machine has none.
pub fn client_config(plan: &TargetPlan) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Plan(format!("TLS cannot be set up: {error}")))?;
    let mut config = plan.trust.apply(builder, &provider)?.with_no_client_auth();
    config.alpn_protocols = vec![if plan.http2 { HTTP2 } else { b"http/1.1" }.to_vec()];
    if plan.full_handshakes {
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

/// A connection under TLS.
pub(crate) struct TlsSession {
    socket: OwnedFd,
    /// When the handshake began.
    begun: Nanos,
    tls: ClientConnection,
    /// How it ended; reported after the bytes before the end.
    end: Option<Received>,
}

/// Progress of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeStep {
    /// Both sides have agreed.
    Done,
    /// It is the server's turn.
    Waits,
    /// The socket takes no more for the moment.
    WantsRoom,
}

impl TlsSession {
    /// Continues the handshake as far as possible.
    pub(crate) fn continue_handshake(&mut self) -> Result<HandshakeStep, Fault> {
        let reset = (
            FailureKind::Tls,
            Some("the connection was reset in the handshake"),
        );
        if !self.drain().map_err(|_| reset)? {
            return Ok(HandshakeStep::WantsRoom);
        }
        let mut raw = [MaybeUninit::uninit(); CIPHERTEXT];
        match rustix::net::recv(&self.socket, &mut raw[..], RecvFlags::empty()) {
            Ok((([], _), _)) => {
                return Err((
                    FailureKind::Tls,
                    Some("the server closed the connection in the handshake"),
                ));
            }
            Ok(((bytes, _), _)) => self.open(bytes, &mut []).1.map_err(|error| {
                // Sends the alert with the reason; whether it arrives does not matter here.
                let _ = self.drain();
                fault(&error)
            })?,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Err(reset),
        }
        let drained = self.drain().map_err(|_| reset)?;
        Ok(if !self.tls.is_handshaking() {
            HandshakeStep::Done
        } else if drained {
            HandshakeStep::Waits
        } else {
            HandshakeStep::WantsRoom
        })
    }

    pub(super) fn recv(&mut self, buffer: &mut [u8], limit: usize) -> Received {
        if let Some(end) = self.end {
            return end;
        }
        let mut raw = [MaybeUninit::uninit(); CIPHERTEXT];
        let room = limit.min(CIPHERTEXT);
        let ciphertext = match rustix::net::recv(&self.socket, &mut raw[..room], RecvFlags::empty())
        {
            Ok((([], _), _)) => {
                self.end = Some(Received::CutOff);
                return Received::CutOff;
            }
            Ok(((bytes, _), _)) => bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
            Err(_) => return Received::Failed((FailureKind::Reset, None)),
        };
        let (count, opened) = self.open(ciphertext, buffer);
        if let Err(error) = opened {
            let _ = self.drain();
            self.end = Some(Received::Failed(fault(&error)));
        }
        match (count, self.end) {
            (0, Some(end)) => end,
            (0, None) => Received::Nothing,
            (count, _) => Received::Bytes(count),
        }
    }

    /// Decrypts into `plaintext`; returns how many bytes it yielded, and whether there was an
    /// error.
    fn open(
        &mut self,
        mut ciphertext: &[u8],
        plaintext: &mut [u8],
    ) -> (usize, Result<(), rustls::Error>) {
        let mut count = 0;
        // An end that is known makes rustls take no more.
        while !ciphertext.is_empty() && self.end.is_none() {
            let before = ciphertext.len();
            let state = match self.tls.read_tls(&mut ciphertext) {
                Ok(_) => self.tls.process_new_packets(),
                Err(error) => Err(rustls::Error::General(error.to_string())),
            };
            let closed = match state {
                Ok(state) => state.peer_has_closed(),
                Err(error) => return (count, Err(error)),
            };
            while let Ok(more @ 1..) = self.tls.reader().read(&mut plaintext[count..]) {
                count += more;
            }
            if closed {
                self.end = Some(Received::Closed);
            } else if ciphertext.len() == before {
                return (count, Err(rustls::Error::General("no progress".to_owned())));
            }
        }
        (count, Ok(()))
    }

    /// When the handshake began.
    pub(crate) const fn begun(&self) -> Nanos {
        self.begun
    }

    /// True if the handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(super) fn is_for_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(HTTP2)
    }

    /// Plaintext that arrived with the last messages of the handshake, if the server speaks first.
    pub(super) fn recv_early(&mut self, buffer: &mut [u8]) -> usize {
        let mut count = 0;
        while let Ok(more @ 1..) = self.tls.reader().read(&mut buffer[count..]) {
            count += more;
        }
        count
    }

    pub(super) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        if !self.drain()? {
            return Err(Errno::AGAIN);
        }
        let record = &bytes[..bytes.len().min(RECORD)];
        let count = self.tls.writer().write(record).map_err(|_| Errno::IO)?;
        self.drain()?;
        Ok(count)
    }

    pub(super) fn drain(&mut self) -> Result<bool, Errno> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Raw(&self.socket)) {
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => return Ok(false),
                    Some(Errno::INTR) => {}
                    errno => return Err(errno.unwrap_or(Errno::IO)),
                },
            }
        }
        Ok(true)
    }
}

impl AsFd for TlsSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for TlsSession {
    /// Sends `close_notify` if the socket takes it at once, so that the server does not take the
    /// end for an attack.
    fn drop(&mut self) {
        self.tls.send_close_notify();
        let _ = self.drain();
    }
}

/// The socket for rustls to write to.
struct Raw<'a>(&'a OwnedFd);

impl io::Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        if let [one] = buffers {
            return self.write(one);
        }
        let mut nothing = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(
            self.0,
            buffers,
            &mut nothing,
            SendFlags::NOSIGNAL,
        )?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error of rustls as text for a report.
fn fault(error: &rustls::Error) -> Fault {
    use rustls::Error as Tls;
    let example = match error {
        Tls::InvalidCertificate(error) => certificate(error),
        Tls::InvalidMessage(_) => "the server's answer is not TLS",
        Tls::PeerIncompatible(_) => "no TLS version or cipher suite in common",
        Tls::AlertReceived(AlertDescription::HandshakeFailure) => {
            "the server found no parameters in common"
        }
        Tls::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the server does not speak TLS 1.2 or 1.3"
        }
        Tls::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the server does not know this name"
        }
        Tls::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server asks for a client certificate"
        }
        Tls::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server does not offer the version of HTTP that is asked for (ALPN)"
        }
        Tls::AlertReceived(_) => "the server ended TLS with an alert",
        Tls::PeerMisbehaved(_)
        | Tls::InappropriateMessage { .. }
        | Tls::InappropriateHandshakeMessage { .. } => "the server breaks the rules of TLS",
        Tls::DecryptError => "a record that cannot be decrypted",
        _ => "TLS failed",
    };
    (FailureKind::Tls, Some(example))
}

fn certificate(error: &CertificateError) -> &'static str {
    use CertificateError as Bad;
    match error {
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            "the certificate is not valid for this name"
        }
        // A root with the same name and another key proves nothing.
        Bad::UnknownIssuer | Bad::BadSignature => {
            "the certificate is signed by no trusted authority"
        }
        Bad::Expired | Bad::ExpiredContext { .. } => "the certificate has expired",
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => "the certificate is not valid yet",
        Bad::Revoked => "the certificate is revoked",
        _ => "the certificate is not valid for a server",
    }
}
