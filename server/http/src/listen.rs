//! Listening sockets: of an address, which several workers share by `SO_REUSEPORT`, or of a path.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::net::{SocketAddrAny, SocketAddrUnix, getsockname};
use socket2::{Domain, Protocol, Socket, Type};

/// An address at which a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port.
    Ip(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Returns where `socket` listens.
    ///
    /// # Errors
    /// It is no socket, or one of another family.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let address: SocketAddrAny = getsockname(socket)?;
        if let Ok(address) = SocketAddr::try_from(address.clone()) {
            return Ok(Self::Ip(address));
        }
        let address = SocketAddrUnix::try_from(address)?;
        let path = address.path_bytes().unwrap_or_default();
        Ok(Self::Unix(
            String::from_utf8_lossy(path).into_owned().into(),
        ))
    }

    /// Returns the IP address and the port; `None` for a path.
    #[must_use]
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// True if only programs of this machine reach it, and no proxy is to be expected before it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.ip().is_some_and(|address| address.ip().is_loopback())
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

/// As the settings write it.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Connections that [`listen`] lets the kernel hold for a worker that has not accepted them yet;
/// [`backlog_clamp`] says whether it does.
pub const BACKLOG: u32 = 4096;

/// A non-blocking listener on `addr` (port 0: any free one) with `SO_REUSEPORT`, so that every
/// worker can have its own queue, `TCP_NODELAY` and a backlog of [`BACKLOG`], which the kernel may
/// lower.
///
/// Two programs of one user can listen like this on one port and would share its connections by
/// chance; [`listen_group`] checks for that first.
///
/// # Errors
/// Those of `socket`, `bind` and `listen`, such as an address in use or a port that needs
/// privileges.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = bind(addr, true)?;
    // Accepted sockets inherit it on Linux: one system call less per connection.
    socket.set_tcp_nodelay(true)?;
    socket.listen(BACKLOG.cast_signed())?;
    Ok(socket.into())
}

/// One listener on `addr` for each of `workers`, all on the same port.
///
/// # Errors
/// As [`listen`]; also `AddrInUse` if another program already listens there, even with
/// `SO_REUSEPORT`.
pub fn listen_group(addr: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    if addr.port() != 0 {
        // Without SO_REUSEPORT a bind fails while anyone listens; the socket is closed again at
        // once.
        drop(bind(addr, false)?);
    }
    let first = listen(addr)?;
    let addr = first.local_addr()?;
    std::iter::once(Ok(first))
        .chain((1..workers).map(|_| listen(addr)))
        .collect()
}

/// A listener on the unix socket at `path`, to which every user may connect who may enter its
/// folder. A socket that a program has left there is replaced.
///
/// # Errors
/// As [`listen`]; `AddrInUse` if a program listens there, or the file is no socket.
pub fn listen_unix(path: &Path) -> io::Result<TcpListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    // A file that is no socket refuses connections too.
    let refuses = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(refuses) {
        fs::remove_file(path)?;
    }
    let socket = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    // Once more, with the backlog of the others.
    let socket = Socket::from(OwnedFd::from(socket));
    socket.listen(BACKLOG.cast_signed())?;
    Ok(socket.into())
}

/// At least `workers` listeners on sockets that exist already: the sockets themselves, and further
/// descriptors of them. No socket is left out, because connections may wait in each, and none is
/// added beside them, because its waiting connections would be lost when it is closed.
///
/// # Errors
/// There are no more file descriptors.
pub fn share(mut sockets: Vec<TcpListener>, workers: usize) -> io::Result<Vec<TcpListener>> {
    let first = sockets.len();
    for number in first..workers.max(first) {
        sockets.push(sockets[number % first].try_clone()?);
    }
    Ok(sockets)
}

fn bind(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(addr),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if addr.is_ipv6() && addr.ip().is_unspecified() {
        // IPv4 too, also where `net.ipv6.bindv6only` says otherwise.
        socket.set_only_v6(false)?;
    }
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// The backlog that the kernel really gives, if it is less than the [`BACKLOG`] that [`listen`]
/// asks for: worth a line at start, because a burst of connections beyond it is delayed by a second
/// and more. `net.core.somaxconn` raises it, of the network namespace and before the sockets
/// listen. None where `/proc` is not there.
#[must_use]
pub fn backlog_clamp() -> Option<u32> {
    clamped(&fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?)
}

/// By the text of `somaxconn`.
fn clamped(somaxconn: &str) -> Option<u32> {
    let allowed = somaxconn.trim().parse::<u32>().ok()?;
    (allowed < BACKLOG).then_some(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_clamped_only_by_less() {
        assert_eq!(clamped("128\n"), Some(128));
        assert_eq!(clamped("4095\n"), Some(4095));
        for enough in ["4096\n", "65535\n", ""] {
            assert_eq!(clamped(enough), None, "{enough:?}");
        }
    }

    #[test]
    fn a_path_is_taken_over_from_a_program_that_is_gone_and_from_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let first = listen_unix(&path).unwrap();
        assert_eq!(
            ListenAddress::of(&first).unwrap(),
            ListenAddress::Unix(path.clone())
        );
        let in_use = listen_unix(&path).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        let shared = share(vec![listen_unix(&path).unwrap()], 3).unwrap();
        assert_eq!(shared.len(), 3);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "no socket").unwrap();
        let in_use = listen_unix(&path).unwrap_err();
        assert_eq!(in_use.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"no socket");
    }

    #[test]
    fn a_group_shares_one_port_and_refuses_a_second_group() {
        let group = listen_group(SocketAddr::from(([127, 0, 0, 1], 0)), 3).unwrap();
        let addr = group[0].local_addr().unwrap();
        assert!(
            group
                .iter()
                .all(|listener| listener.local_addr().unwrap() == addr)
        );
        assert_eq!(
            listen_group(addr, 1).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
    }
}
