//! TLS for a connection that polls its socket itself.
//!
//! Whom to trust is decided where connections for reads and writes are made; the feed takes the
//! same configuration.

use std::io;
use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::socket::Socket;
use super::wait::FeedEnd;

/// Plaintext taken out at once.
const CHUNK: usize = 16 * 1024;

/// A session on a socket.
pub(crate) struct TlsSession(Box<ClientConnection>);

impl TlsSession {
    /// For a server that is to be `host`.
    pub(crate) fn new(config: &Arc<ClientConfig>, host: &str) -> Result<Self, FeedEnd> {
        let name = ServerName::try_from(host.to_owned()).map_err(FeedEnd::lost)?;
        let session = ClientConnection::new(Arc::clone(config), name).map_err(FeedEnd::lost)?;
        Ok(Self(Box::new(session)))
    }

    /// Takes the handshake as far as it goes; whether it is still not done.
    pub(crate) fn shakes_hands(&mut self, socket: &mut Socket) -> Result<bool, FeedEnd> {
        loop {
            let sent = self.drain(socket)?;
            if !self.0.is_handshaking() {
                return Ok(!sent);
            }
            match self.0.read_tls(socket) {
                Ok(0) => return Err(FeedEnd::lost("the server ends the TLS handshake")),
                Ok(_) => self.open(socket)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the events that the socket is to be polled for during the handshake.
    pub(crate) fn waits_for(&self) -> PollFlags {
        if self.0.wants_write() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.0.wants_write()
    }

    fn open(&mut self, socket: &mut Socket) -> io::Result<()> {
        if let Err(error) = self.0.process_new_packets() {
            // The alert that says why; whether it arrives makes no difference here.
            let _ = self.drain(socket);
            return Err(io::Error::other(format!("TLS: {error}")));
        }
        Ok(())
    }

    /// Sends what is sealed, and whether that was all.
    fn drain(&mut self, socket: &mut Socket) -> io::Result<bool> {
        while self.0.wants_write() {
            match self.0.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Seals and sends as much of `bytes` as there is room for.
    pub(crate) fn send(&mut self, bytes: &mut BytesMut, socket: &mut Socket) -> io::Result<()> {
        while self.drain(socket)? && !bytes.is_empty() {
            let taken = io::Write::write(&mut self.0.writer(), bytes)?;
            bytes.advance(taken);
        }
        Ok(())
    }

    /// Receives once, and opens it into `into`; the bytes that came, 0 at the end.
    pub(crate) fn receive(
        &mut self,
        socket: &mut Socket,
        into: &mut BytesMut,
    ) -> io::Result<usize> {
        let received = self.0.read_tls(socket)?;
        self.open(socket)?;
        let mut chunk = [0; CHUNK];
        loop {
            match io::Read::read(&mut self.0.reader(), &mut chunk) {
                Ok(0) => return Ok(0),
                Ok(count) => into.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(received),
                // The peer went without saying so; what it sent is whole frames or nothing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }
}
