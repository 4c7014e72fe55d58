//! New connections: accepted, or answered with 503 over the limit.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use base_clock::Boottime;
use bytes::Bytes;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{RecvFlags, SendFlags, SocketAddrAny, SocketFlags, acceptfrom_with, recv, send};

use super::{LISTENER, Worker};
use crate::client::{NamedBy, is_in};
use crate::client_counts::ClientConnection;
use crate::conn::{Connection, Stage, TOO_MANY_CONNECTIONS};
use crate::event::{Mailbox, Token};
use crate::limits::{ACCEPT_PAUSE, ACCEPTS, READ_BUFFER, REFUSALS_LINGERING};
use crate::peer::Peer;
use crate::response::{Response, Service};
use crate::worker_group::ConnectionPermit;

/// Connections and a descriptor of a worker for clients that it refuses when descriptors are
/// scarce.
#[derive(Default)]
pub(super) struct Refusals {
    /// Refused connections that linger, the oldest first; some may have ended.
    lingering: VecDeque<Token>,
    /// A descriptor that is given up for the next client, and taken again.
    reserve: Option<OwnedFd>,
}

impl Refusals {
    /// The reserve is another descriptor of the bell. One of the listener would keep it open after
    /// a shutdown began.
    pub(super) fn with_reserve(mailbox: &Mailbox) -> Self {
        Self {
            lingering: VecDeque::new(),
            reserve: fcntl_dupfd_cloexec(mailbox.bell(), 0).ok(),
        }
    }
}

impl<S: Service> Worker<S> {
    /// Accepts waiting connections, up to a batch; the listener has another event if more wait.
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match self.accept_one() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) if is_about_descriptors(&error) && self.free_descriptor() => {
                    self.host().counters.accept_errors.add(1);
                }
                Err(_) => {
                    self.host().counters.accept_errors.add(1);
                    return self.pause_accepting();
                }
            }
        }
    }

    /// Accepts one connection; false if none waits.
    pub(super) fn accept_one(&mut self) -> io::Result<bool> {
        let Some(listener) = &self.listener else {
            return Ok(false);
        };
        match acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((socket, peer)) => {
                self.admit(socket, address_of(peer));
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            // These errors belong to the connection that would be returned; the next may be good
            // (accept(2)).
            Err(errno) if is_about_one_connection(errno) => {
                self.host().counters.accept_errors.add(1);
                Ok(true)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Descriptors are used up: ends the oldest refused connection that lingers, or answers the
    /// next client with the descriptor in reserve. False if neither can be done, so that a further
    /// attempt would fail.
    fn free_descriptor(&mut self) -> bool {
        while let Some(token) = self.refusals.lingering.pop_front() {
            let connection = self.connections.table.slab.get_mut(token);
            if connection.is_some_and(|it| matches!(it.stage, Stage::Lingering(_))) {
                self.connections.advance(token, |_, _| None);
                return true;
            }
        }
        if self.refusals.reserve.take().is_none() {
            return false;
        }
        self.refuse_next();
        self.refusals.reserve = fcntl_dupfd_cloexec(self.host().mailbox.bell(), 0).ok();
        self.refusals.reserve.is_some()
    }

    /// Answers the next client, whose connection is then closed at once.
    fn refuse_next(&mut self) {
        let Some(listener) = &self.listener else {
            return;
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let Ok((socket, peer)) = acceptfrom_with(listener, flags) else {
            return;
        };
        self.host().counters.accepted.add(1);
        self.host().counters.over_limit.add(1);
        // Bytes that are unread when the connection is closed reset it.
        let _ = recv(&socket, &mut [0; READ_BUFFER], RecvFlags::empty());
        let _ = send(&socket, TOO_MANY_CONNECTIONS, SendFlags::NOSIGNAL);
        let peer = address_of(peer);
        self.host().notify(|service| service.refused(peer, 503));
    }

    /// EMFILE and similar errors last until a descriptor is closed; trying at once would only spin.
    fn pause_accepting(&mut self) {
        if let Some(listener) = &self.listener
            && self.poller.unwatch(listener).is_ok()
        {
            self.accepts_at = Some(Boottime::now().plus(ACCEPT_PAUSE));
        }
    }

    /// Ends the pause.
    pub(super) fn accept_again(&mut self) {
        let Some(listener) = &self.listener else {
            self.accepts_at = None;
            return;
        };
        self.accepts_at = match self.poller.watch_input(listener, LISTENER, false) {
            Ok(()) => None,
            Err(_) => Some(Boottime::now().plus(ACCEPT_PAUSE)),
        };
    }

    fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        self.host().counters.accepted.add(1);
        let peer = Peer::new(peer, NamedBy::Peer, &self.host().proxies);
        // The client of such a peer is not known yet.
        let is_proxy = is_in(&self.host().proxies.protocol, peer.address.ip());
        let client = match is_proxy {
            true => Some(ClientConnection::default()),
            false => self.host().count_connection(&peer),
        };
        let open = self.host().group.admit(self.host().limits.connections);
        let (Some(client), Some(open)) = (client, open) else {
            return self.refuse_connection(socket, peer);
        };
        let permit = ConnectionPermit::new(Some(open), &self.connections.table.open);
        if let Some(mut connection) = self.register(socket, peer, permit) {
            let now = Boottime::now();
            // A handshake, and a header of a proxy, have the time of the head of a request.
            connection.deadline = match self.tls {
                None if !is_proxy => self.host().idle_until(now),
                _ => now.plus(self.host().limits.head_timeout),
            };
            if is_proxy {
                connection.stage = Stage::ProxyHeader;
            }
            connection.bytes_left = self.host().byte_batch(client.0.as_ref());
            connection.client = client;
            let table = &mut self.connections.table;
            table.schedule_deadline(&mut connection);
            table.slab.put(connection.token, connection);
        }
    }

    /// A new connection that is watched; none if the kernel has no memory to watch it with.
    fn register(
        &mut self,
        socket: OwnedFd,
        peer: Peer,
        permit: ConnectionPermit,
    ) -> Option<Box<Connection>> {
        let token = self.connections.table.slab.reserve();
        if self.poller.watch(&socket, token).is_err() {
            self.host().counters.accept_errors.add(1);
            self.connections.table.slab.release(token);
            return None;
        }
        let tls = self.tls.as_ref();
        Some(Box::new(Connection::new(socket, peer, token, permit, tls)))
    }

    /// Answers a connection over the limit, without reading from it first.
    fn refuse_connection(&mut self, socket: OwnedFd, peer: Peer) {
        self.host().counters.over_limit.add(1);
        let address = peer.address;
        self.host().notify(|service| service.refused(address, 503));
        if self.lingering.get() >= REFUSALS_LINGERING {
            return;
        }
        let permit = ConnectionPermit::new(None, &self.lingering);
        if let Some(connection) = self.register(socket, peer, permit) {
            let token = connection.token;
            if self.refusals.lingering.len() >= REFUSALS_LINGERING {
                self.refusals.lingering.pop_front();
            }
            self.refusals.lingering.push_back(token);
            self.connections.table.slab.put(token, connection);
            let response = Response::text(503, "too many connections\n")
                .with_extra(Bytes::from_static(b"Retry-After: 1\r\n"));
            self.connections.advance(token, |all, connection| {
                Some(all.respond_and_linger(connection, response))
            });
        }
    }
}

/// The address of a client. One that comes by a unix socket has none, and is of this machine.
fn address_of(peer: Option<SocketAddrAny>) -> SocketAddr {
    peer.and_then(|peer| SocketAddr::try_from(peer).ok())
        .unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))
}

fn is_about_descriptors(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE];
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| shortages.contains(&errno))
}

fn is_about_one_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::INTR
            | Errno::PROTO
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH
            | Errno::PERM
            | Errno::TIMEDOUT
    )
}
