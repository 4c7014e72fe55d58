//! What a connection has while it is doing something, lent from the worker's pool. An idle connection has none.

use std::future::Future;
use std::pin::Pin;
use std::task::Waker;

use base_clock::Boottime;

use super::output::Output;
use super::progress::Progress;
use super::response_cache::RequestHash;
use crate::h1::{Decoder, Head};
use crate::limits::SPARE_BUFFERS;
use crate::response::Response;

/// What a connection needs from the first byte of a request to the last byte of its response.
pub(crate) struct Exchange {
    pub(super) decoder: Decoder,
    pub(super) output: Output,
    /// The newest moment known: of the last read, or after the last wait. Saves readings of the clock.
    pub(super) now: Boottime,
    /// Since when the present head is being sent.
    pub(super) head_since: Boottime,
    pub(super) body: Option<Progress>,
    /// Bytes of that body that the worker counts, until its request is answered.
    pub(super) charged: usize,
    /// Since the socket was first found full.
    pub(super) sending: Option<Progress>,
    /// Bytes of the present output that are sent.
    pub(super) sent: u64,
    /// Requests answered in this turn, which ends when others have had theirs or nothing more has come.
    pub(super) answered: usize,
    pub(super) pending: Option<Pending>,
    /// The request that comes next, if its head is there and it has no answer yet.
    pub(super) unknown: Option<RequestHash>,
    /// The same of the first request, if it was looked for before the exchange began.
    pub(super) looked_for: Option<RequestHash>,
    /// The status with which the last request was refused, until the service is told.
    pub(super) refused: Option<u16>,
}

/// A response that is being made.
pub(super) struct Pending {
    pub(super) head: Head,
    pub(super) response: Pin<Box<dyn Future<Output = Response>>>,
    /// Made when it is first needed.
    pub(super) waker: Option<Waker>,
}

impl Exchange {
    fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            output: Output::default(),
            now: Boottime::default(),
            head_since: Boottime::default(),
            body: None,
            charged: 0,
            sending: None,
            sent: 0,
            answered: 0,
            pending: None,
            unknown: None,
            looked_for: None,
            refused: None,
        }
    }

    /// Makes it ready for another connection; false if it has grown beyond the usual.
    fn renew(&mut self) -> bool {
        debug_assert_eq!(self.charged, 0, "a body that is gone is counted on");
        debug_assert_eq!(self.refused, None, "nobody was told of a refusal");
        self.refused = None;
        self.pending = None;
        self.unknown = None;
        self.sending = None;
        self.sent = 0;
        self.decoder.renew() && self.output.is_small()
    }

    /// The first bytes of a request have come at `now`.
    pub(super) fn begin(&mut self, now: Boottime) {
        (self.now, self.head_since) = (now, now);
        self.body = None;
        self.sending = None;
        self.sent = 0;
        self.answered = 0;
        self.looked_for = None;
    }
}

/// Exchanges for reuse, so that the ready path allocates nothing.
// The box is what is lent: a connection stays small, and taking one moves a pointer.
#[derive(Default)]
pub(crate) struct Pool(#[allow(clippy::vec_box)] Vec<Box<Exchange>>);

impl Pool {
    pub(super) fn take(&mut self) -> Box<Exchange> {
        self.0.pop().unwrap_or_else(|| Box::new(Exchange::new()))
    }

    /// Takes an exchange back, unless it grew beyond the usual or there are enough. What it was in the middle of is over: a client
    /// that is refused or leaves costs no new buffer.
    pub(super) fn put(&mut self, mut exchange: Box<Exchange>) {
        if exchange.renew() && self.0.len() < SPARE_BUFFERS {
            self.0.push(exchange);
        }
    }
}
