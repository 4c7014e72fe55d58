//! How a connection is found out whose packets do not arrive any more.
//!
//! TCP alone would take a quarter of an hour to give up what it has sent, and never asks after an
//! idle peer that is gone. So both ends ask. On ours an idle connection is probed after [`IDLE`],
//! and one from which nothing arrived for [`SILENCE`] although something was sent is given up by
//! the kernel: its waiter gets an error, and the connection is not used again. That is about what a
//! new connection may take, and less than the limit of a statement. What the owner's URL says
//! stands.
//!
//! The server's end is told the same by settings of the session ([`SERVER_SIDE`]): PostgreSQL would
//! keep the session of a node that is gone, and one of its `max_connections`, for the two hours of
//! the kernel's own habit.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
    set_tcp_user_timeout,
};
use tokio_postgres::Config;

/// An idle connection is probed after this.
const IDLE: Duration = Duration::from_secs(2);
/// From one probe to the next: three are lost before a connection is.
const INTERVAL: Duration = Duration::from_secs(1);
const PROBES: u32 = 3;
/// So long what was sent may stay unacknowledged, probes included.
const SILENCE: Duration = Duration::from_secs(5);

/// Settings of the sessions for the server's end, as names and values. A silent stream is
/// `wal_sender_timeout`'s.
pub(super) const SERVER_SIDE: [(&str, &str); 3] = [
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
];

/// Sets what the query string of the URL leaves open.
pub(super) fn complete(config: &mut Config, named: impl Fn(&str) -> bool) {
    if !named("keepalives_idle") {
        config.keepalives_idle(IDLE);
    }
    if !named("keepalives_interval") {
        config.keepalives_interval(INTERVAL);
    }
    if !named("keepalives_retries") {
        config.keepalives_retries(PROBES);
    }
    if !named("tcp_user_timeout") {
        config.tcp_user_timeout(SILENCE);
    }
}

/// Does for a TCP socket of our own what the driver does for its own.
pub(super) fn watch(socket: impl AsFd, config: &Config) -> Result<(), Errno> {
    if let Some(silence) = config.get_tcp_user_timeout() {
        let millis = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
        set_tcp_user_timeout(&socket, millis)?;
    }
    set_socket_keepalive(&socket, config.get_keepalives())?;
    if config.get_keepalives() {
        set_tcp_keepidle(&socket, config.get_keepalives_idle())?;
        if let Some(interval) = config.get_keepalives_interval() {
            set_tcp_keepintvl(&socket, interval)?;
        }
        if let Some(probes) = config.get_keepalives_retries() {
            set_tcp_keepcnt(&socket, probes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Duration;

    use rustix::net::sockopt::{
        socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl, tcp_user_timeout,
    };

    use super::watch;
    use crate::postgres::options::ConnectionTarget;

    fn watched(url: &str) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        watch(&socket, &ConnectionTarget::parse(url).unwrap().config).unwrap();
        socket
    }

    #[test]
    fn a_silent_peer_is_given_up_within_seconds() {
        let socket = watched("postgres://u@h/db");
        let silence = Duration::from_millis(tcp_user_timeout(&socket).unwrap().into());
        let probed = tcp_keepidle(&socket).unwrap() + tcp_keepintvl(&socket).unwrap();
        assert!(socket_keepalive(&socket).unwrap());
        assert!(probed < silence && silence <= Duration::from_secs(5));
    }

    #[test]
    fn what_the_owner_says_stands() {
        let socket = watched(
            "postgres://u@h/db?keepalives_idle=60&keepalives_interval=7&keepalives_retries=9&tcp_user_timeout=90",
        );
        assert_eq!(tcp_keepidle(&socket).unwrap(), Duration::from_secs(60));
        assert_eq!(tcp_keepintvl(&socket).unwrap(), Duration::from_secs(7));
        assert_eq!(tcp_keepcnt(&socket).unwrap(), 9);
        assert_eq!(tcp_user_timeout(&socket).unwrap(), 90_000);
        let socket = watched("postgres://u@h/db?keepalives=0&tcp_user_timeout=0");
        assert!(!socket_keepalive(&socket).unwrap());
        assert_eq!(tcp_user_timeout(&socket).unwrap(), 0);
    }
}
