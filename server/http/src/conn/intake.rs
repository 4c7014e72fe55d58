//! The intake of a worker: of connections that were idle, up to [`FULL`] are read one after the other before the first of them is answered.
//!
//! Where a thousand answers are in turn, most of what a look-up costs is waiting for three lines of memory that are in no cache, each
//! found by the one before: the place in the table, what is kept there, and the request it is for. Of one request alone there is no way
//! around it. Of several, the lines of all come at the same time, while the others are read.
//!
//! They are answered in the order in which they were read, and before any other connection goes on.

use base_clock::Boottime;

use super::response_cache::RequestHash;
use super::socket::Moved;
use super::{Connection, Stage, Step};
use crate::event::Token;
use crate::limits::READ_BUFFER;
use crate::response::Service;
use crate::worker::Worker;

/// Requests that are read at most before they are answered: the first of them waits for the others.
const FULL: usize = 16;
/// From one place to the next: lines at the same distance from a page's beginning would be in each other's way in the cache.
const STRIDE: usize = READ_BUFFER + 3 * 64;

/// See the [module](self).
pub(crate) struct Intake {
    /// One place more than may be taken, for what is read and done with at once.
    room: Box<[u8]>,
    taken: Vec<Taken>,
}

/// The first bytes of a connection, in the place of the same number.
#[derive(Clone, Copy)]
struct Taken {
    token: Token,
    first: First,
}

/// First bytes of a request.
#[derive(Clone, Copy)]
pub(super) struct First {
    place: usize,
    len: usize,
    /// None if they are not the whole of a head and nothing else.
    pub(super) hash: Option<RequestHash>,
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            room: vec![0; (FULL + 1) * STRIDE].into(),
            taken: Vec::with_capacity(FULL),
        }
    }
}

impl Intake {
    /// The place that is free.
    pub(super) fn free(&mut self) -> &mut [u8] {
        let start = self.taken.len() * STRIDE;
        &mut self.room[start..start + READ_BUFFER]
    }

    pub(super) fn bytes(&self, first: First) -> &[u8] {
        &self.room[first.place * STRIDE..][..first.len]
    }
}

impl<S: Service> Worker<S> {
    /// Reads the first bytes of a request, to be answered with those of others by [`Worker::answer_intake`].
    pub(crate) fn take_in(&mut self, token: Token) {
        if self.intake.taken.len() == FULL {
            self.answer_intake();
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        match connection.receive(self.intake.free()) {
            Moved::Bytes(len) => {
                let first = self.first(len);
                self.intake.taken.push(Taken { token, first });
            }
            Moved::Nothing => {}
            Moved::End => self.advance(token, |_, _| None),
        }
    }

    /// The bytes that were just read into the free place.
    pub(super) fn first(&self, len: usize) -> First {
        self.counters.bytes_in.add(len as u64);
        let mut first = First {
            place: self.intake.taken.len(),
            len,
            hash: None,
        };
        first.hash = self.response_cache.hash_alone(self.intake.bytes(first));
        first
    }

    /// Answers what was taken in, in the order in which it was.
    pub(crate) fn answer_intake(&mut self) {
        let count = self.intake.taken.len();
        if count == 0 {
            return;
        }
        if count > 1 {
            let hashes = || {
                self.intake
                    .taken
                    .iter()
                    .filter_map(|taken| taken.first.hash)
            };
            hashes().for_each(|hash| self.response_cache.prefetch_entry(hash));
            hashes().for_each(|hash| self.response_cache.prefetch_response(hash));
        }
        // Not before any of them was received.
        let mut now = Boottime::now();
        for at in 0..count {
            let Taken { token, first } = self.intake.taken[at];
            let mut is_known = false;
            self.advance(token, |worker, connection| {
                let step = worker.answer_first(connection, first, now);
                is_known = step == Step::Post && connection.exchange.is_none();
                Some(step)
            });
            if !is_known {
                // That may have taken long.
                now = Boottime::now();
            }
        }
        self.intake.taken.clear();
    }

    fn answer_first(&mut self, connection: &mut Connection, first: First, now: Boottime) -> Step {
        // Nothing acts on a connection between its reading and this: its bytes would come out of order.
        debug_assert!(connection.stage == Stage::Idle && connection.exchange.is_none());
        if connection.stage != Stage::Idle {
            return Step::End;
        }
        let mut lent = None;
        match self.begin(connection, &mut lent, first, now) {
            Some(step) => step,
            None => {
                connection.exchange = lent;
                self.go_on(connection)
            }
        }
    }
}
