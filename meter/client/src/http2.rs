//! HTTP/2 (RFC 9113): one connection with its streams, without a socket, a clock or a runtime.
//!
//! The crate `h2` has the protocol. Its connection is a future over two queues in memory. The
//! engine's loop fills one queue from the socket, polls the connection and the streams with news,
//! and writes the other queue to the socket. The first request waits for the server's first
//! SETTINGS, so that no more streams are opened than the server allows.

mod faults;
mod pipe;
mod ready_slots;
mod request;
mod stream;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client;
use rustix::io::Errno;

use crate::body::BodySink;
use crate::outcome::{FailureKind, Fault};
use crate::recorder::Pending;
use crate::request::Requests;
use crate::transport::Wire;
use base_clock::Nanos;
use pipe::Pipe;
use ready_slots::ReadySlots;
pub(crate) use request::Http2Request;
use stream::{Stream, StreamFailure};

/// Bytes that a stream may carry before this side has read them. This side reads at once, so the
/// window covers one round trip.
const STREAM_WINDOW: u32 = 1 << 20;
/// Bytes that all streams of a connection together may carry before this side has read them.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Longest head of a response, as for HTTP/1.1.
const HEAD: u32 = 64 * 1024;
/// Streams given up by this side whose late frames are accepted; a late frame of another stream
/// breaks the protocol.
const GIVEN_UP: usize = 10_000;

/// How a request on a stream ended.
pub(crate) enum StreamEnd {
    /// With a complete response.
    Answered {
        request: Pending,
        status: u16,
        /// Bytes received on the connection since the response before. Heads are compressed
        /// together, so only the sum over all responses has a meaning.
        bytes: u64,
        /// Result of checking the body against the plan.
        body: Result<(), &'static str>,
    },
    /// Without a response.
    Failed(Pending, Fault),
    /// Not processed by the server, which is about to close the connection.
    Unseen(Pending),
}

/// A place for one stream at a time.
struct StreamSlot {
    stream: Option<Stream>,
    waker: Waker,
    /// Receives the body, if bodies are checked.
    sink: Option<Box<BodySink>>,
}

/// One connection.
pub(crate) struct Http2 {
    pipe: Pipe,
    connection: client::Connection<Pipe, Bytes>,
    sender: client::SendRequest<Bytes>,
    places: Vec<StreamSlot>,
    /// Bytes of each body that are kept for a check at most.
    body_room: usize,
    free: Vec<usize>,
    ready: Arc<ReadySlots>,
    /// The places being polled; kept to reuse its memory.
    looked_at: Vec<usize>,
    /// Since when it is opening; `None` after the server's SETTINGS arrived.
    opening_since: Option<Nanos>,
    /// The connection takes no more requests.
    is_draining: bool,
    /// Fault of the connection that this side found.
    fault: Option<Fault>,
    /// Bytes received since the last response.
    received: u64,
    heard_at: Nanos,
}

impl Http2 {
    /// A connection that has been opening since `since`; its first bytes are ready to be flushed.
    /// `body_room` bytes of a checked body are kept.
    pub(crate) fn begin(since: Nanos, body_room: usize) -> Result<Self, Fault> {
        let pipe = Pipe::default();
        let mut builder = client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD)
            .max_concurrent_reset_streams(GIVEN_UP)
            .initial_max_send_streams(0);
        let handshake = pin!(builder.handshake::<_, Bytes>(pipe.clone()));
        // The queue takes the preface at once, so the handshake never waits.
        let Poll::Ready(Ok((sender, connection))) = handshake.poll(&mut noop_context()) else {
            return Err((
                FailureKind::ConnectFailed,
                Some("HTTP/2 could not be begun"),
            ));
        };
        Ok(Self {
            pipe,
            connection,
            sender,
            places: Vec::new(),
            body_room,
            free: Vec::new(),
            ready: Arc::default(),
            looked_at: Vec::new(),
            opening_since: Some(since),
            is_draining: false,
            fault: None,
            received: 0,
            heard_at: since,
        })
    }

    /// Since when it is opening, if the server's SETTINGS have not arrived.
    pub(crate) fn opening_since(&self) -> Option<Nanos> {
        self.opening_since
    }

    /// If the server's SETTINGS arrived since the last call: the time since which the connection
    /// was opening.
    pub(crate) fn has_opened(&mut self) -> Option<Nanos> {
        if self.sender.current_max_send_streams() == 0 {
            return None;
        }
        self.opening_since.take()
    }

    /// Requests on streams.
    pub(crate) fn in_flight(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// True if it takes no more requests: the server said so, or does not answer any more.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Streams that may be open at a time, of `depth` that are wanted.
    pub(crate) fn room(&self, depth: usize) -> usize {
        if self.is_draining || self.opening_since.is_some() {
            return 0;
        }
        depth.min(self.sender.current_max_send_streams())
    }

    /// Puts a request on its own stream; returns the request if the connection takes none.
    pub(crate) fn send(
        &mut self,
        mut request: Pending,
        requests: &Requests,
        now: Nanos,
    ) -> Result<(), Pending> {
        if !matches!(
            self.sender.poll_ready(&mut noop_context()),
            Poll::Ready(Ok(()))
        ) {
            return Err(request);
        }
        let prepared = requests.prepared(request.index);
        let body = prepared.body.clone();
        let Ok((response, mut stream)) = self
            .sender
            .send_request(prepared.request(), body.is_empty())
        else {
            // The stream numbers are used up, or the connection ended in between.
            self.is_draining = true;
            return Err(request);
        };
        if !body.is_empty() && stream.send_data(body, true).is_err() {
            self.is_draining = true;
            return Err(request);
        }
        if request.sent_at == 0 {
            request.sent_at = now;
        }
        let at = self.free.pop().unwrap_or_else(|| self.add_place());
        let place = &mut self.places[at];
        if requests.has_checks() {
            let new = || Box::new(BodySink::new(self.body_room));
            let sink = place.sink.get_or_insert_with(new);
            sink.begin(requests.checks(request.index));
        }
        place.stream = Some(Stream::new(request, response));
        // The first poll registers the waker.
        self.ready.add(at);
        Ok(())
    }

    fn add_place(&mut self) -> usize {
        let at = self.places.len();
        self.places.push(StreamSlot {
            stream: None,
            waker: self.ready.waker(at),
            sink: None,
        });
        at
    }

    /// Adds bytes that the socket received at `now`.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: Nanos) {
        self.pipe.feed(bytes);
        self.received += bytes.len() as u64;
        self.heard_at = now;
    }

    /// Advances as far as the fed bytes allow. Requests that have ended are put into `ends`. An
    /// error concerns the whole connection and leaves its other requests without a response.
    pub(crate) fn drive(
        &mut self,
        requests: &Requests,
        ends: &mut Vec<StreamEnd>,
    ) -> Result<(), Fault> {
        loop {
            self.poll();
            let mut places = std::mem::take(&mut self.looked_at);
            self.ready.take(&mut places);
            for &at in &places {
                self.poll_stream(at, requests, ends);
            }
            let is_done = places.is_empty();
            self.looked_at = places;
            if is_done {
                break;
            }
        }
        let no_more = self.sender.poll_ready(&mut noop_context());
        self.is_draining |= matches!(no_more, Poll::Ready(Err(_)));
        match self.fault {
            Some(_) if self.opening_since.is_some() => Err((
                FailureKind::BadResponse,
                Some("what came first is not HTTP/2: the server may only speak HTTP/1.1"),
            )),
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Polls the connection itself, which reads and writes frames.
    fn poll(&mut self) {
        match Pin::new(&mut self.connection).poll(&mut noop_context()) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => self.is_draining = true,
            // If the server goes away, each stream says whether its request failed.
            Poll::Ready(Err(error)) if error.is_remote() => self.is_draining = true,
            Poll::Ready(Err(error)) => {
                self.is_draining = true;
                self.fault = Some(faults::of_connection(&error));
            }
        }
    }

    fn poll_stream(&mut self, at: usize, requests: &Requests, ends: &mut Vec<StreamEnd>) {
        let place = &mut self.places[at];
        let Some(stream) = &mut place.stream else {
            return;
        };
        let mut context = Context::from_waker(&place.waker);
        let sink = place.sink.as_deref_mut();
        let Poll::Ready(end) = stream.poll(&mut context, requests.head, sink) else {
            return;
        };
        let request = stream.request;
        ends.push(match end {
            Ok(status) => StreamEnd::Answered {
                request,
                status,
                bytes: std::mem::take(&mut self.received),
                body: match &mut place.sink {
                    Some(sink) => sink.judge(requests.checks(request.index)),
                    None => Ok(()),
                },
            },
            Err(StreamFailure::Failed(fault)) => StreamEnd::Failed(request, fault),
            Err(StreamFailure::Unseen) => StreamEnd::Unseen(request),
        });
        place.stream = None;
        self.free.push(at);
    }

    /// Gives up the requests that were sent at `before` or earlier. If no byte arrived since then,
    /// the connection takes no more requests.
    pub(crate) fn expire(&mut self, before: Nanos, ends: &mut Vec<StreamEnd>) {
        for (at, place) in self.places.iter_mut().enumerate() {
            let is_late = |stream: &mut Stream| stream.request.sent_at <= before;
            if let Some(stream) = place.stream.take_if(is_late) {
                self.is_draining |= self.heard_at <= stream.request.sent_at;
                self.free.push(at);
                ends.push(StreamEnd::Failed(
                    stream.request,
                    (FailureKind::Timeout, None),
                ));
            }
        }
    }

    /// Writes the unsent bytes; true if the socket took all.
    pub(crate) fn flush(&mut self, wire: &mut Wire) -> Result<bool, Errno> {
        loop {
            self.poll();
            if !self.pipe.drain(wire)? {
                return Ok(false);
            }
            if !self.pipe.was_stalled() {
                return Ok(true);
            }
        }
    }

    /// The socket takes no more: what is in flight may still be answered.
    pub(crate) fn stop_writing(&mut self) {
        self.pipe.stop_writing();
        self.is_draining = true;
    }

    /// The requests in flight, when the connection is given up.
    pub(crate) fn into_requests(self) -> impl Iterator<Item = Pending> {
        let streams = self.places.into_iter().filter_map(|place| place.stream);
        streams.map(|stream| stream.request)
    }
}

/// A context that wakes nothing: the connection is polled after every possible change.
fn noop_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
