//! The addresses of connections, and how to connect.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// At least one.
    addresses: Vec<SockAddr>,
    /// Connections that were begun, if there are several addresses.
    begun: AtomicUsize,
    tls: Option<TlsConnector>,
    /// The kernel's receive buffer in bytes, where TCP's window must throttle the server.
    receive_buffer: Option<usize>,
}

impl Target {
    /// Finds the server of a plan that was checked.
    pub(crate) fn find(plan: &TargetPlan, url: &Url, timeout: Duration) -> Result<Self, Error> {
        let addresses = match &plan.unix_socket {
            Some(path) => vec![unix(path)?],
            None => addresses(plan, url, timeout)?,
        };
        let tls = if url.secure {
            Some(TlsConnector::new(plan, &url.host)?)
        } else {
            None
        };
        Ok(Self {
            addresses,
            begun: AtomicUsize::new(0),
            tls,
            receive_buffer: plan.throttle_down.map(receive_buffer),
        })
    }

    /// The addresses of connections.
    pub(crate) fn addresses(&self) -> &[SockAddr] {
        &self.addresses
    }

    /// The address of the next connection.
    fn next_address(&self) -> &SockAddr {
        match &*self.addresses {
            [only] => only,
            several => {
                let turn = self.begun.fetch_add(1, Ordering::Relaxed);
                &several[turn % several.len()]
            }
        }
    }

    /// Begins to connect: with several addresses, to the one whose turn it is.
    pub(crate) fn connect(&self) -> Result<OwnedFd, Fault> {
        let failed = |_| (FailureKind::ConnectFailed, None);
        let address = self.next_address();
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket =
            Socket::new(Domain::from(i32::from(address.family())), kind, None).map_err(failed)?;
        // A socket that cannot turn off Nagle's algorithm does not use it.
        let _ = socket.set_tcp_nodelay(true);
        if let Some(bytes) = self.receive_buffer {
            // Before connecting, as the window is announced with the first segment.
            socket.set_recv_buffer_size(bytes).map_err(failed)?;
        }
        match socket.connect(address) {
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

/// Returns the addresses of the connections of a plan over TCP.
fn addresses(plan: &TargetPlan, url: &Url, timeout: Duration) -> Result<Vec<SockAddr>, Error> {
    let mut places = Vec::new();
    for other in &plan.connect_to {
        places.push(crate::url::host_and_port(other)?);
    }
    if places.is_empty() {
        places.push((url.host.clone(), url.port));
    }
    let mut found = Vec::new();
    for (host, port) in places {
        let failed = |source| Error::Resolve {
            name: format!("{host}:{port}"),
            source,
        };
        let known: Vec<SocketAddr> = (&*host, port).to_socket_addrs().map_err(failed)?.collect();
        let chosen = choose(known, plan.round_robin, timeout);
        if chosen.is_empty() {
            return Err(failed(std::io::Error::other("the name has no address")));
        }
        found.extend(chosen.into_iter().map(SockAddr::from));
    }
    Ok(found)
}

/// Of the addresses of a name all, or the first that accepts a connection.
fn choose(mut known: Vec<SocketAddr>, all: bool, timeout: Duration) -> Vec<SocketAddr> {
    if !all && known.len() > 1 {
        let accepts = |address: &SocketAddr| TcpStream::connect_timeout(address, timeout).is_ok();
        let first = known.iter().position(accepts).unwrap_or(0);
        known.swap(0, first);
        known.truncate(1);
    }
    known
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn of_several_addresses_one_is_chosen_or_all_have_turns() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = server.local_addr().unwrap();
        let gone = SocketAddr::from(([127, 0, 0, 1], 1));
        let choose = |all| choose(vec![gone, there], all, Duration::from_secs(5));
        assert_eq!(choose(false), [there]);
        assert_eq!(choose(true), [gone, there]);
    }

    #[test]
    fn connections_take_the_addresses_in_turn() {
        let mut plan = TargetPlan::new("http://h/");
        plan.connect_to = vec!["127.0.0.1:1".into(), "127.0.0.1:2".into()];
        let url = Url::parse(&plan.url).unwrap();
        let target = Target::find(&plan, &url, Duration::from_secs(5)).unwrap();
        let port = || target.next_address().as_socket().unwrap().port();
        assert_eq!([port(), port(), port()], [1, 2, 1]);
        assert_eq!(target.addresses().len(), 2);
    }
}
