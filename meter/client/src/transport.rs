//! The transport of a connection: TCP or a Unix socket, plain or with TLS, at full speed or paced.
//!
//! The engine's epoll loop drives everything here, and nothing blocks. A plain connection costs one
//! match more than a bare socket: one `recv` for a response, one `send` for a request.

mod bandwidth;
mod bandwidth_pace;
mod paced_line;
mod reach;
mod target;
mod tls;
mod trust;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::outcome::{FailureKind, Fault};

pub use bandwidth::Bandwidth;
pub(crate) use bandwidth_pace::BandwidthPace;
pub(crate) use paced_line::{PacedLine, Turn};
pub use reach::reach;
pub(crate) use target::{ConnectedSocket, Target, kind_of_connect};
pub use tls::client_config;
pub(crate) use tls::{HandshakeStep, TlsSession};
pub use trust::Trust;

/// An open connection.
pub(crate) enum Wire {
    /// A bare socket.
    Plain(OwnedFd),
    /// A socket under TLS.
    Tls(Box<TlsSession>),
}

/// Result of a read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// This number of bytes at the beginning of the buffer.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The server has closed the connection cleanly.
    Closed,
    /// The connection ended without the `close_notify` of TLS: the response may be cut short (RFC
    /// 8446, section 6.1).
    CutOff,
    /// The connection has failed.
    Failed(Fault),
}

impl Wire {
    /// Reads the available bytes, at most `limit` from the socket.
    #[inline]
    pub(crate) fn recv(&mut self, buffer: &mut [u8], limit: usize) -> Received {
        match self {
            Self::Plain(socket) => {
                let room = limit.min(buffer.len());
                match rustix::net::recv(socket, &mut buffer[..room], RecvFlags::empty()) {
                    Ok((_, 0)) => Received::Closed,
                    Ok((_, count)) => Received::Bytes(count),
                    Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
                    Err(_) => Received::Failed((FailureKind::Reset, None)),
                }
            }
            Self::Tls(session) => session.recv(buffer, limit),
        }
    }

    /// True if the end of the connection is known already, without another read.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(session) => session.is_ended(),
        }
    }

    /// Offers bytes to be sent; returns how many were taken.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Plain(socket) => rustix::net::send(socket, bytes, SendFlags::NOSIGNAL),
            Self::Tls(session) => session.send(bytes),
        }
    }

    /// Writes the bytes taken by [`send`](Self::send) to the socket; true if all were written.
    #[inline]
    pub(crate) fn drain(&mut self) -> Result<bool, Errno> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(session) => session.drain(),
        }
    }

    /// True if both sides agreed on HTTP/2; always true in clear text.
    pub(crate) fn is_for_http2(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(session) => session.is_for_http2(),
        }
    }

    /// Takes the bytes that arrived with the end of the handshake.
    pub(crate) fn recv_early(&mut self, buffer: &mut [u8]) -> usize {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(session) => session.recv_early(buffer),
        }
    }

    /// Bytes that the socket holds, with TLS.
    pub(crate) fn waiting(&self) -> usize {
        // Fails only if the descriptor is not a socket.
        rustix::io::ioctl_fionread(self).map_or(0, |count| count as usize)
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(socket) => socket.as_fd(),
            Self::Tls(session) => session.as_fd(),
        }
    }
}
