//! New connections: accepted, or answered with 503 over the limit.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use base_clock::Boottime;
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use super::{ConnectionPermit, LISTENER, Worker};
use crate::conn::Connection;
use crate::limits::{ACCEPT_PAUSE, ACCEPTS, REFUSALS_LINGERING};
use crate::response::{Response, Service};
use crate::worker_group::OpenConnection;

impl<S: Service> Worker<S> {
    /// Accepts waiting connections, up to a batch; the listener has another event if more wait.
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match self.accept_one() {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => {
                    self.counters.accept_errors.add(1);
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
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                if let Some(peer) = peer {
                    self.admit(socket, peer);
                }
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            // These errors belong to the connection that would be returned; the next may be good
            // (accept(2)).
            Err(errno) if is_about_one_connection(errno) => {
                self.counters.accept_errors.add(1);
                Ok(true)
            }
            Err(errno) => Err(errno.into()),
        }
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
        self.counters.accepted.add(1);
        match self.group.admit(self.limits.connections) {
            Some(open) => {
                let permit = ConnectionPermit::new(Some(open), &self.open);
                if let Some(mut connection) = self.register(socket, peer, permit) {
                    connection.deadline = self.idle_until(Boottime::now());
                    self.schedule_deadline(&mut connection);
                    self.connections.put(connection.token, connection);
                }
            }
            None => self.refuse_connection(socket, peer),
        }
    }

    /// A new connection that is watched; none if the kernel has no memory to watch it with.
    fn register(
        &mut self,
        socket: OwnedFd,
        peer: SocketAddr,
        permit: ConnectionPermit,
    ) -> Option<Box<Connection>> {
        let token = self.connections.reserve();
        if self.poller.watch(&socket, token).is_err() {
            self.counters.accept_errors.add(1);
            self.connections.release(token);
            return None;
        }
        Some(Box::new(Connection::new(socket, peer, token, permit)))
    }

    /// Answers a connection over the limit, without reading from it first.
    fn refuse_connection(&mut self, socket: OwnedFd, peer: SocketAddr) {
        self.counters.over_limit.add(1);
        self.notify(|service| service.refused(peer, 503));
        if self.lingering.get() >= REFUSALS_LINGERING {
            return;
        }
        let permit = ConnectionPermit::new(None, &self.lingering);
        if let Some(connection) = self.register(socket, peer, permit) {
            let token = connection.token;
            self.connections.put(token, connection);
            let response = Response::text(503, "too many connections\n")
                .with_extra(Bytes::from_static(b"Retry-After: 1\r\n"));
            self.advance(token, |worker, connection| {
                Some(worker.respond_and_linger(connection, response))
            });
        }
    }
}

impl ConnectionPermit {
    fn new(open: Option<OpenConnection>, count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self {
            _open: open,
            count: Rc::clone(count),
        }
    }
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
