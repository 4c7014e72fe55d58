//! The read batch of a worker: up to [`FULL`] connections that were idle are read before the first
//! of their requests is answered.
//!
//! With a thousand different responses, most of a look-up's cost is waiting for three lines of
//! memory that are in no cache, each found by the one before: the set in the table, the cached
//! entry, and the entry's request. A single request cannot avoid that wait. For several requests,
//! the lines of all arrive at the same time, while further connections are read.
//!
//! The requests are answered in the order in which they were read, and before any other connection
//! continues.

use base_clock::Boottime;

use super::connections::Connections;
use super::response_cache::RequestHash;
use super::socket::IoOutcome;
use super::{Connection, NextAction, Stage};
use crate::event::Token;
use crate::limits::READ_BUFFER;
use crate::response::Service;

/// Requests that are read at most before they are answered. The first request waits for the rest.
const FULL: usize = 16;
/// Distance between two buffers: lines at the same distance from the start of a page would displace
/// each other in the cache.
const STRIDE: usize = READ_BUFFER + 3 * 64;

/// See the [module](self).
pub(crate) struct ReadBatch {
    /// One slot more than the batch holds, for bytes that are read and processed at once.
    buffer: Box<[u8]>,
    reads: Vec<BatchedRead>,
}

/// The first bytes of a connection, in the slot of the same number.
#[derive(Clone, Copy)]
struct BatchedRead {
    token: Token,
    first: FirstRead,
}

/// The first bytes of a request.
#[derive(Clone, Copy)]
pub(super) struct FirstRead {
    slot: usize,
    len: usize,
    /// None unless the bytes are probably exactly one complete head.
    pub(super) hash: Option<RequestHash>,
}

impl Default for ReadBatch {
    fn default() -> Self {
        Self {
            buffer: vec![0; (FULL + 1) * STRIDE].into(),
            reads: Vec::with_capacity(FULL),
        }
    }
}

impl ReadBatch {
    /// The slot that is free.
    pub(super) fn free(&mut self) -> &mut [u8] {
        let start = self.reads.len() * STRIDE;
        &mut self.buffer[start..start + READ_BUFFER]
    }

    pub(super) fn bytes(&self, first: FirstRead) -> &[u8] {
        &self.buffer[first.slot * STRIDE..][..first.len]
    }
}

impl<S: Service> Connections<S> {
    /// Reads the first bytes of a request, to be answered with those of others by
    /// [`Connections::answer_batch`].
    #[inline]
    pub(crate) fn read_first(&mut self, token: Token) {
        if self.read_batch.reads.len() == FULL {
            self.answer_batch();
        }
        let Some(connection) = self.table.slab.get_mut(token) else {
            return;
        };
        let received = connection.receive(self.read_batch.free());
        if connection.has_news() {
            return self.advance(token, |all, connection| {
                all.first_secure_bytes(connection, received)
            });
        }
        match received {
            IoOutcome::Bytes(len) => {
                let first = self.first(len);
                self.read_batch.reads.push(BatchedRead { token, first });
            }
            IoOutcome::WouldBlock if connection.is_secure() => {
                self.advance(token, |all, connection| {
                    Some(all.wait_for_record(connection))
                });
            }
            IoOutcome::WouldBlock => {}
            IoOutcome::Closed => self.advance(token, |_, _| None),
        }
    }

    /// The bytes that were just read into the free slot.
    #[inline]
    pub(super) fn first(&self, len: usize) -> FirstRead {
        self.host.counters.bytes_in.add(len as u64);
        let mut first = FirstRead {
            slot: self.read_batch.reads.len(),
            len,
            hash: None,
        };
        first.hash = self
            .host
            .response_cache
            .hash_alone(self.read_batch.bytes(first));
        first
    }

    /// Answers the requests of the batch, in the order in which they were read.
    pub(crate) fn answer_batch(&mut self) {
        let count = self.read_batch.reads.len();
        if count == 0 {
            return;
        }
        if count > 1 {
            let hashes = || {
                self.read_batch
                    .reads
                    .iter()
                    .filter_map(|read| read.first.hash)
            };
            hashes().for_each(|hash| self.host.response_cache.prefetch_entry(hash));
            hashes().for_each(|hash| self.host.response_cache.prefetch_response(hash));
        }
        // Not earlier than the moment at which any of the requests was received.
        let mut now = Boottime::now();
        for at in 0..count {
            let BatchedRead { token, first } = self.read_batch.reads[at];
            let mut is_repeated = false;
            self.advance(token, |all, connection| {
                let step = all.answer_first(connection, first, now);
                is_repeated = step == NextAction::Batch && connection.exchange.is_none();
                Some(step)
            });
            if !is_repeated {
                // The answer may have taken long.
                now = Boottime::now();
            }
        }
        self.read_batch.reads.clear();
    }

    #[inline]
    pub(super) fn answer_first(
        &mut self,
        connection: &mut Connection,
        first: FirstRead,
        now: Boottime,
    ) -> NextAction {
        // No other code acts on the connection after it was read: its bytes would be processed out
        // of order.
        debug_assert!(connection.stage == Stage::Idle && connection.exchange.is_none());
        if connection.stage != Stage::Idle {
            return NextAction::Close;
        }
        let mut borrowed_buffers = None;
        match self.begin(connection, &mut borrowed_buffers, first, now) {
            Some(step) => step,
            None => {
                connection.exchange = borrowed_buffers;
                self.drive(connection)
            }
        }
    }
}
