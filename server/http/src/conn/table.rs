//! The connections of a worker, their deadlines, and the order in which they continue.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use base_clock::Boottime;

use super::handshakes::Handshakes;
use super::{Connection, Stage};
use crate::client::Client;
use crate::event::{Slab, Timers, Token};

/// See the [module](self).
pub(crate) struct Table {
    pub(crate) slab: Slab<Connection>,
    pub(crate) timers: Timers,
    /// Connections that continue without an event, after the others had their turn.
    pub(super) runnable: VecDeque<Token>,
    /// Connections whose handshakes continue after all others had their turn, one in each.
    pub(super) handshakes: Handshakes,
    /// The connections that are open and not over the limit.
    pub(crate) open: Rc<Cell<usize>>,
}

impl Table {
    /// Makes a table without connections.
    pub(crate) fn new(now: Boottime) -> Self {
        Self {
            slab: Slab::default(),
            timers: Timers::new(now),
            runnable: VecDeque::new(),
            handshakes: Handshakes::default(),
            open: Rc::default(),
        }
    }

    /// Returns whether a connection continues without an event.
    #[inline]
    pub(crate) fn has_runnable(&self) -> bool {
        !self.runnable.is_empty() || !self.handshakes.is_empty()
    }

    /// Lets a connection continue after the others had their turn.
    #[inline]
    pub(crate) fn queue_runnable(&mut self, connection: &mut Connection) {
        if std::mem::replace(&mut connection.is_queued, true) {
            return;
        }
        match connection.stage {
            Stage::Handshake => self.queue_handshake(connection.peer.address, connection.token),
            _ => self.runnable.push_back(connection.token),
        }
    }

    #[inline(never)]
    pub(super) fn queue_handshake(&mut self, peer: SocketAddr, token: Token) {
        let connections = &mut self.slab;
        self.handshakes.forget_ended(self.open.get(), |token| {
            connections.get_mut(token).is_some()
        });
        self.handshakes
            .push(Client::new(peer.ip()).network(), token);
    }

    /// Schedules the timer for the deadline.
    #[inline]
    pub(crate) fn schedule_deadline(&mut self, connection: &mut Connection) {
        if connection.deadline < connection.timer_at {
            connection.timer_at = connection.deadline;
            self.timers
                .schedule(connection.token.index(), connection.deadline);
        }
    }

    /// Forgets a connection that ends.
    pub(super) fn release(&mut self, token: Token) {
        self.timers.forget(token.index());
        self.slab.release(token);
    }

    /// Lets sessions of HTTP/2 say that they end, and connections without a request time out at
    /// `until`, which those whose first bytes are there then outlive.
    pub(crate) fn drain(&mut self, until: Boottime) {
        for connection in self.slab.iter_mut() {
            match connection.stage {
                Stage::Http2 if !connection.is_queued => {
                    connection.is_queued = true;
                    self.runnable.push_back(connection.token);
                }
                Stage::ProxyHeader | Stage::Handshake | Stage::Idle => {
                    connection.deadline = connection.deadline.min(until);
                    connection.timer_at = connection.timer_at.min(until);
                    self.timers.schedule(connection.token.index(), until);
                }
                _ => {}
            }
        }
    }
}
