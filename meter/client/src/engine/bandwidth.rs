//! Connections with limited bandwidth: a direction is not used until its line has carried the last
//! portion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustix::event::epoll;

use super::{Engine, interest};
use crate::connection::ConnectionState;
use crate::outcome::FailureKind;
use crate::transport::Turn;
use base_clock::Nanos;

/// Times at which connections may continue, the next first, with the connection's index.
#[derive(Default)]
pub(super) struct LineTimers(BinaryHeap<Reverse<(Nanos, usize)>>);

impl LineTimers {
    /// When the thread must be awake again.
    pub(super) fn next(&self) -> Nanos {
        self.0.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    pub(super) fn add(&mut self, at: Nanos, id: usize) {
        self.0.push(Reverse((at, id)));
    }

    fn take(&mut self, now: Nanos) -> Option<usize> {
        let Reverse((at, id)) = *self.0.peek()?;
        (at <= now).then(|| {
            self.0.pop();
            id
        })
    }
}

impl Engine<'_> {
    /// Bytes that may be read from an open connection now; `None` while its line is busy.
    #[inline]
    pub(super) fn reading_room(&mut self, id: usize) -> Option<usize> {
        if self.connections[id].pace.is_none() {
            return Some(usize::MAX);
        }
        self.paced_room(id)
    }

    fn paced_room(&mut self, id: usize) -> Option<usize> {
        let connection = &mut self.connections[id];
        let (ConnectionState::Open(wire), Some(pace)) = (&connection.state, &mut connection.pace)
        else {
            return Some(usize::MAX);
        };
        let (Some(line), waiting @ 1..) = (&mut pace.down, wire.waiting()) else {
            // Not limited, or only an end or an error is readable.
            return Some(usize::MAX);
        };
        match line.ask(waiting, base_clock::now()) {
            Turn::Now(count) => {
                line.passed(count);
                self.hold_input(id, false);
                Some(count)
            }
            Turn::At(at) => {
                if !connection.holds_input {
                    self.wakes.add(at, id);
                    self.hold_input(id, true);
                }
                None
            }
        }
    }

    fn hold_input(&mut self, id: usize, holds: bool) {
        if self.connections[id].holds_input != holds {
            self.connections[id].holds_input = holds;
            self.watch(id);
        }
    }

    /// Registers with epoll what the connection waits for.
    pub(super) fn watch(&mut self, id: usize) {
        let connection = &self.connections[id];
        let Some(socket) = connection.socket() else {
            return;
        };
        let data = epoll::EventData::new_u64(id as u64);
        let flags = interest(connection.watches_room, !connection.holds_input);
        if let Err(errno) = epoll::modify(&self.epoll, socket, data, flags) {
            // Cannot fail for a registered socket. If it does, the connection is of no more use.
            debug_assert!(false, "epoll_ctl: {errno}");
            self.fail(id, FailureKind::ConnectFailed, None);
        }
    }

    /// Continues the connections whose lines have carried their portion.
    pub(super) fn resume_paced(&mut self, now: Nanos) {
        while let Some(id) = self.wakes.take(now) {
            // The connection that set this timer may be closed, and another one may be in its
            // place.
            let connection = &self.connections[id];
            let (ConnectionState::Open(_), Some(pace)) = (&connection.state, &connection.pace)
            else {
                continue;
            };
            let is_ready = |line: &Option<_>| {
                line.as_ref()
                    .is_some_and(|line: &crate::transport::PacedLine| !line.is_busy(now))
            };
            let (down, up) = (
                connection.holds_input && is_ready(&pace.down),
                is_ready(&pace.up),
            );
            if down {
                self.readable(id);
            }
            if up {
                self.write(id);
            }
        }
    }
}
