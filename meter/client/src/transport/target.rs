//! The address of connections, and how to connect.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

use super::tls::TlsConnector;
use super::{Bandwidth, TlsSession, Wire};
use crate::outcome::{FailureKind, Fault};
use crate::url::Url;
use crate::{Error, TargetPlan};

/// The least receive buffer asked for: enough for two segments, so that acknowledgements flow.
const LEAST_BUFFER: f64 = 8.0 * 1024.0;
/// The most: more would not be throttled by TCP's window before it is read.
const MOST_BUFFER: f64 = 256.0 * 1024.0;

/// The first state of a connected socket.
pub(crate) enum ConnectedSocket {
    /// An open connection.
    Open(Wire),
    /// A TLS handshake is to be made.
    Shaking(Box<TlsSession>),
}

/// The other end of every connection of a run.
pub(crate) struct Target {
    address: SockAddr,
    tls: Option<TlsConnector>,
    /// The kernel's receive buffer in bytes, where TCP's window must throttle the server.
    receive_buffer: Option<usize>,
}

impl Target {
    /// Finds the server of a plan that was checked.
    pub(crate) fn find(plan: &TargetPlan, url: &Url, timeout: Duration) -> Result<Self, Error> {
        let address = match (&plan.unix_socket, &plan.connect_to) {
            (Some(path), _) => unix(path)?,
            (None, Some(other)) => {
                let (host, port) = crate::url::host_and_port(other)?;
                resolve(&host, port, timeout)?.into()
            }
            (None, None) => resolve(&url.host, url.port, timeout)?.into(),
        };
        let tls = if url.secure {
            Some(TlsConnector::new(plan, &url.host)?)
        } else {
            None
        };
        Ok(Self {
            address,
            tls,
            receive_buffer: plan.throttle_down.map(receive_buffer),
        })
    }

    /// The address of connections.
    pub(crate) fn address(&self) -> &SockAddr {
        &self.address
    }

    /// Begins to connect.
    pub(crate) fn connect(&self) -> Result<OwnedFd, Fault> {
        let failed = |_| (FailureKind::ConnectFailed, None);
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::from(i32::from(self.address.family())), kind, None)
            .map_err(failed)?;
        // A socket that cannot turn off Nagle's algorithm does not use it.
        let _ = socket.set_tcp_nodelay(true);
        if let Some(bytes) = self.receive_buffer {
            // Before connecting, as the window is announced with the first segment.
            socket.set_recv_buffer_size(bytes).map_err(failed)?;
        }
        match socket.connect(&self.address) {
            Ok(()) => Ok(socket.into()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INPROGRESS) => Ok(socket.into()),
                Some(errno) => Err(kind_of_connect(errno)),
                None => Err((FailureKind::ConnectFailed, None)),
            },
        }
    }

    /// Continues with a connected socket: opens the connection or begins the handshake.
    pub(crate) fn begin(&self, socket: OwnedFd) -> Result<ConnectedSocket, Fault> {
        Ok(match &self.tls {
            None => ConnectedSocket::Open(Wire::Plain(socket)),
            Some(client) => ConnectedSocket::Shaking(Box::new(client.begin(socket)?)),
        })
    }
}

/// How a failed attempt to connect is counted.
pub(crate) fn kind_of_connect(errno: Errno) -> Fault {
    match errno {
        Errno::CONNREFUSED => (FailureKind::ConnectRefused, None),
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => (FailureKind::NoSourcePort, None),
        Errno::TIMEDOUT => (FailureKind::Timeout, None),
        // Only a Unix socket reports this at once; over TCP the connections are not accepted
        // instead.
        Errno::AGAIN => (
            FailureKind::ConnectRefused,
            Some("the socket's queue of connections to be accepted is full"),
        ),
        Errno::ACCESS => (
            FailureKind::ConnectFailed,
            Some("no permission to connect to the socket"),
        ),
        Errno::NOENT => (FailureKind::ConnectFailed, Some("the socket is gone")),
        _ => (FailureKind::ConnectFailed, None),
    }
}

/// Bytes that a line carries in a quarter of a second; the kernel doubles it for its overhead.
fn receive_buffer(bandwidth: Bandwidth) -> usize {
    (bandwidth.bytes_per_second() / 4.0).clamp(LEAST_BUFFER, MOST_BUFFER) as usize
}

fn unix(path: &Path) -> Result<SockAddr, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::Plan(format!("{}: {why}", path.display()));
    let there = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    if !there.file_type().is_socket() {
        return Err(wrong(&"is no Unix socket"));
    }
    SockAddr::unix(path).map_err(|error| wrong(&error))
}

/// The server's address: of several, the first that accepts a connection.
fn resolve(host: &str, port: u16, timeout: Duration) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Resolve {
        name: format!("{host}:{port}"),
        source,
    };
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    let accepting = || {
        addresses
            .iter()
            .find(|address| TcpStream::connect_timeout(address, timeout).is_ok())
    };
    let chosen = if addresses.len() > 1 {
        accepting().or(addresses.first())
    } else {
        addresses.first()
    };
    chosen
        .copied()
        .ok_or_else(|| failed(std::io::Error::other("the name has no address")))
}
