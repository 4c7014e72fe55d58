//! A socket that never blocks, over TCP or to a file.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::wait::{FeedEnd, Patience};
use crate::postgres::liveness;

/// PostgreSQL's port where none is given.
const PORT: u16 = 5432;

/// One of the servers that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerHost {
    /// Its name, for TLS and for looking it up; none if only an address was given.
    name: Option<String>,
    at: HostAddress,
}

/// How it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostAddress {
    /// By its name, at this port.
    Name(u16),
    /// At an address.
    Address(SocketAddr),
    /// As a file: a Unix socket.
    File(PathBuf),
}

/// All of them, in the owner's order.
pub(crate) fn places(config: &Config) -> Vec<ServerHost> {
    let (hosts, addresses, ports) = (
        config.get_hosts(),
        config.get_hostaddrs(),
        config.get_ports(),
    );
    let place = |index: usize| {
        let port = *ports.get(index).or(ports.first()).unwrap_or(&PORT);
        let address: Option<IpAddr> = addresses.get(index).copied();
        let (name, by_name) = match hosts.get(index) {
            Some(Host::Tcp(name)) => (Some(name.clone()), HostAddress::Name(port)),
            Some(Host::Unix(folder)) => (
                None,
                HostAddress::File(folder.join(format!(".s.PGSQL.{port}"))),
            ),
            None => (None, HostAddress::Name(port)),
        };
        let at = match (by_name, address) {
            (HostAddress::Name(_), Some(address)) => HostAddress::Address((address, port).into()),
            (by_name, _) => by_name,
        };
        ServerHost { name, at }
    };
    (0..hosts.len().max(addresses.len())).map(place).collect()
}

impl ServerHost {
    /// Its name; empty if only an address was given.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// How it is found.
    pub(crate) fn at(&self) -> &HostAddress {
        &self.at
    }

    /// For messages.
    pub(crate) fn describe(&self) -> String {
        match (&self.name, &self.at) {
            (Some(name), HostAddress::Name(port)) => format!("{name}:{port}"),
            (Some(name), HostAddress::Address(address)) => format!("{name} ({address})"),
            (_, HostAddress::Address(address)) => address.to_string(),
            (_, HostAddress::File(path)) => path.display().to_string(),
            (None, HostAddress::Name(port)) => format!("port {port}"),
        }
    }

    /// Returns the host that a certificate must be for: the name, else the address; `None` where
    /// TLS makes no sense.
    pub(crate) fn host(&self) -> Option<String> {
        match (&self.name, &self.at) {
            (Some(name), _) => Some(name.clone()),
            (None, HostAddress::Address(address)) => Some(address.ip().to_string()),
            (None, _) => None,
        }
    }

    /// Connects, to the first address of the name that takes the connection.
    pub(crate) fn connect(
        &self,
        config: &Config,
        patience: Patience<'_>,
    ) -> Result<Socket, FeedEnd> {
        let addresses = match &self.at {
            HostAddress::File(path) => return Socket::file(path, patience),
            HostAddress::Address(address) => vec![*address],
            HostAddress::Name(port) => (self.name(), *port).to_socket_addrs()?.collect(),
        };
        let mut last = FeedEnd::disconnected("the name has no address");
        for address in addresses {
            match Socket::tcp(address, config, patience) {
                Ok(socket) => return Ok(socket),
                Err(FeedEnd::Stopped) => return Err(FeedEnd::Stopped),
                Err(end) => last = end,
            }
        }
        Err(last)
    }
}

/// A connected socket.
pub(crate) struct Socket(OwnedFd);

impl Socket {
    fn tcp(address: SocketAddr, config: &Config, patience: Patience<'_>) -> Result<Self, FeedEnd> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = new(family)?;
        set_tcp_nodelay(&socket, true)?;
        liveness::watch(&socket, config)?;
        settle(&socket, connect(&socket, &address), patience)?;
        Ok(Self(socket))
    }

    fn file(path: &Path, patience: Patience<'_>) -> Result<Self, FeedEnd> {
        let socket = new(AddressFamily::UNIX)?;
        let outcome = connect(&socket, &SocketAddrUnix::new(path)?);
        settle(&socket, outcome, patience)?;
        Ok(Self(socket))
    }
}

fn new(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    socket_with(family, SocketType::STREAM, flags, None)
}

/// Waits for the outcome of a connect.
fn settle(
    socket: &OwnedFd,
    outcome: rustix::io::Result<()>,
    patience: Patience<'_>,
) -> Result<(), FeedEnd> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Errno::INPROGRESS) => {
            // Writable is what a socket becomes when it is connected, and when it cannot be.
            let mut ready = [rustix::event::PollFd::new(socket, PollFlags::OUT)];
            while rustix::event::poll(&mut ready, Some(&rustix::event::Timespec::default()))? == 0 {
                patience.wait(socket.as_fd(), PollFlags::OUT)?;
            }
            Ok(socket_error(socket)??)
        }
        Err(error) => Err(error.into()),
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| {
            rustix::io::read(&self.0, &mut *into)
        })?)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| {
            send(&self.0, bytes, SendFlags::NOSIGNAL)
        })?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_are_those_of_the_url() {
        let of = |text: &str| -> Vec<String> {
            let config: Config = text.parse().unwrap();
            places(&config).iter().map(ServerHost::describe).collect()
        };
        assert_eq!(of("postgres://u@one:1,two/db"), ["one:1", "two:5432"]);
        assert_eq!(of("postgres://u@one,two:2/db"), ["one:5432", "two:2"]);
        assert_eq!(of("postgres://u@%2Frun%2Fpg:7/db"), ["/run/pg/.s.PGSQL.7"]);
        assert_eq!(
            of("host=name hostaddr=127.0.0.1 port=9 user=u"),
            ["name (127.0.0.1:9)"]
        );
        assert_eq!(of("hostaddr=127.0.0.1 user=u"), ["127.0.0.1:5432"]);
        assert_eq!(of("user=u"), [""; 0]);
    }
}
