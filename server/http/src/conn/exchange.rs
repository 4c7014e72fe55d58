//! The buffers of a connection that is not idle, borrowed from the worker's pool.

use std::future::Future;
use std::pin::Pin;
use std::task::Waker;

use base_clock::Boottime;

use super::output::Output;
use super::response_cache::RequestHash;
use crate::body_file::BodyFile;
use crate::event::StreamToken;
use crate::h1::{Decoder, Head};
use crate::limits::SPARE_BUFFERS;
use crate::progress::TransferProgress;
use crate::request::Request;
use crate::request_counts::{CountedRequest, RequestCounter, RequestKind, SeriesKey};
use crate::response::Response;
use crate::streamed::BodyReceiver;

/// State of a connection from the first byte of a request to the last byte of its response.
pub(crate) struct Exchange {
    pub(super) decoder: Decoder,
    pub(super) output: Output,
    /// The time of the last read, or after the last wait. Saves readings of the clock.
    pub(super) now: Boottime,
    /// When the client started to send the present head.
    pub(super) head_since: Boottime,
    pub(super) body: Option<TransferProgress>,
    /// Place to which the body goes.
    pub(super) body_place: BodyPlace,
    /// Takes the body as it arrives, instead of that place.
    pub(super) receiver: Option<Box<dyn BodyReceiver>>,
    /// The name under which the worker's budgets count the exchange, if they do.
    pub(super) holder: Option<StreamToken>,
    /// Since the socket was first full.
    pub(super) sending: Option<TransferProgress>,
    /// Bytes of the present output that were sent.
    pub(super) sent: u64,
    /// Requests answered in this turn, which ends when other connections had their turn or no more
    /// bytes have arrived.
    pub(super) answered: usize,
    pub(super) pending: Option<PendingResponse>,
    /// The next request, if its head is complete and the response cache has no response.
    pub(super) cache_miss: Option<RequestHash>,
    /// The first request, if it was looked up before the exchange began and the response cache has
    /// no response.
    pub(super) first_miss: Option<RequestHash>,
    /// The request whose head is complete, until its response is queued.
    pub(super) open: Option<OpenRequest>,
    /// The status with which the last request was refused, until the service is notified.
    pub(super) refused: Option<u16>,
}

/// Place to which the bytes of a body go as they arrive.
pub(super) enum BodyPlace {
    Memory,
    /// Memory, because no file can be had.
    MemoryOnly,
    File(BodyFile),
}

/// Facts of a request by which it is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRequest {
    kind: RequestKind,
    received: Boottime,
}

impl OpenRequest {
    pub(super) fn of(request: &Request<'_>) -> Self {
        Self {
            kind: RequestKind::of(request),
            received: request.received,
        }
    }

    /// A request whose head could not be read.
    pub(super) fn unread(is_secure: bool, received: Boottime) -> Self {
        Self {
            kind: RequestKind::unread(is_secure),
            received,
        }
    }

    /// Returns where the request counts with its response; without one the status is 0.
    pub(super) fn counted(
        self,
        requests: &mut RequestCounter,
        status: u16,
        label: u32,
    ) -> CountedRequest {
        let kind = self.kind;
        CountedRequest {
            series: requests.series(SeriesKey {
                label,
                status,
                kind,
            }),
            received: self.received,
        }
    }
}

/// A response that is being made.
pub(super) struct PendingResponse {
    pub(super) head: Head,
    pub(super) response: Pin<Box<dyn Future<Output = Response>>>,
    /// Created at the first poll.
    pub(super) waker: Option<Waker>,
}

impl Exchange {
    fn new(is_secured: bool) -> Self {
        Self {
            decoder: Decoder::new().secured(is_secured).announcing(),
            output: Output::default(),
            now: Boottime::default(),
            head_since: Boottime::default(),
            body: None,
            body_place: BodyPlace::Memory,
            receiver: None,
            holder: None,
            sending: None,
            sent: 0,
            answered: 0,
            pending: None,
            cache_miss: None,
            first_miss: None,
            open: None,
            refused: None,
        }
    }

    /// Resets the exchange for another connection; false if its buffers are larger than usual.
    fn renew(&mut self) -> bool {
        debug_assert_eq!(self.holder, None, "a request that is gone is still counted");
        debug_assert_eq!(
            self.refused, None,
            "the service was not notified of a refusal"
        );
        self.refused = None;
        self.body_place = BodyPlace::Memory;
        self.receiver = None;
        self.pending = None;
        self.open = None;
        self.output.streamed = None;
        self.cache_miss = None;
        self.sending = None;
        self.sent = 0;
        self.decoder.renew() && self.output.is_small()
    }

    /// Bytes of memory that the exchange takes while it waits for the rest of a request.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.decoder.memory()
    }

    /// Begins with the first bytes of a request, which arrived at `now`.
    pub(super) fn begin(&mut self, now: Boottime) {
        (self.now, self.head_since) = (now, now);
        self.body = None;
        self.sending = None;
        self.sent = 0;
        self.answered = 0;
        self.first_miss = None;
    }
}

/// Exchanges for reuse, so that the ready path allocates nothing.
pub(crate) struct Pool {
    // Boxed, so that a connection stays small and borrowing an exchange moves a pointer.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Exchange>>,
    is_secured: bool,
}

impl Pool {
    /// Exchanges for connections of one listener: with TLS, if `is_secured`.
    pub(crate) const fn new(is_secured: bool) -> Self {
        Self {
            spare: Vec::new(),
            is_secured,
        }
    }

    pub(super) fn take(&mut self) -> Box<Exchange> {
        let spare = self.spare.pop();
        spare.unwrap_or_else(|| Box::new(Exchange::new(self.is_secured)))
    }

    /// Takes an exchange back, unless its buffers are too large or the pool is full. Also after a
    /// refusal or a lost client, so that neither costs a new buffer.
    pub(super) fn put(&mut self, mut exchange: Box<Exchange>) {
        // Before it is renewed: that may give it its usual buffer again.
        if self.spare.len() < SPARE_BUFFERS && exchange.renew() {
            self.spare.push(exchange);
        }
    }
}
