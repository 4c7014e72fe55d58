//! Listening sockets that several workers share by `SO_REUSEPORT`.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

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

fn bind(addr: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(addr),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&addr.into())?;
    Ok(socket)
}

/// The backlog that the kernel really gives, if it is less than the [`BACKLOG`] that [`listen`]
/// asks for: worth a line at start, because a burst of connections beyond it is delayed by a second
/// and more. `net.core.somaxconn` raises it, of the network namespace and before the sockets
/// listen. None where `/proc` is not there.
#[must_use]
pub fn backlog_clamp() -> Option<u32> {
    clamped(&std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?)
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
