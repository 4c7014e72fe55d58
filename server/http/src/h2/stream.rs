//! A stream: one request and its response (RFC 9113 section 5.1).

use std::rc::Rc;

use base_clock::Boottime;
use bytes::{Bytes, BytesMut};

use super::flow::{ReceiveWindow, SendWindow, StallClock};
use super::head::Http2Head;
use super::holdings::StreamHolding;
use super::known::KnownResponse;
use super::priority::Priority;
#[cfg(doc)]
use super::session::Session;
use crate::limits::{SPARE_STREAMS, STREAM_WINDOW};
use crate::peer::Peer;
use crate::progress::TransferProgress;
use crate::request::Request;
use crate::request_counts::{CountedRequest, RequestCounter, RequestKind, SeriesKey};
use crate::response::Body;

/// The number of a stream on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub(super) u32);

impl StreamId {
    /// A stream of the client; none for number 0, which is the connection.
    pub(crate) fn of_client(number: u32) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// The number itself.
    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

/// How the request on a stream arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RequestPart {
    /// The head is there, the body is not.
    #[default]
    Body,
    /// The request was refused before its body had arrived. DATA is dropped.
    Refused,
    /// All is there: half-closed (remote).
    Complete,
}

/// A stream that is open, or whose handler is still running, or that ended and is shown to the
/// driver once more. Its buffers are used again by later streams of the worker.
#[derive(Debug, Default)]
pub(crate) struct Http2Stream {
    pub(super) id: u32,
    pub(super) head: Http2Head,
    /// The response that is given again. It has the head of the request, which may not be in
    /// `head`.
    pub(super) repeated: Option<Rc<KnownResponse>>,
    pub(super) priority: Priority,

    pub(super) part: RequestPart,
    /// The header block, if an equal block means the same request.
    pub(super) block: Vec<u8>,
    /// The generation of the dynamic table for which it does.
    pub(super) generation: Option<u64>,
    pub(super) content_length: Option<u64>,
    /// Bytes of the body that have arrived and are in memory.
    pub(super) body: BytesMut,
    /// Bytes of the body before these, which the driver has [moved](Session::move_body) elsewhere.
    pub(super) moved: usize,
    /// Bytes of the body that the driver has [given](Session::give_body) to who takes them.
    pub(super) given: usize,
    /// The most bytes that the body may have.
    pub(super) body_limit: usize,
    /// The driver opens the window, when it has room for more.
    pub(super) is_streamed: bool,
    /// Since when it has none.
    pub(super) paused_since: Option<Boottime>,
    /// The whole body, if the driver has put it together.
    pub(super) whole_body: Option<Bytes>,
    /// When the request was received, as far as it has been.
    pub(super) received: Boottime,
    pub(super) receive_window: ReceiveWindow,
    pub(super) receiving: TransferProgress,
    /// 100 (Continue) is to be sent.
    pub(super) owes_continue: bool,

    /// The driver was given the request, and gave neither a response nor the end of the handler
    /// back.
    pub(super) has_handler: bool,
    /// Bytes of the body in memory that its handler may still hold.
    pub(super) lent: usize,
    /// Bytes that the driver has counted for the stream.
    pub(super) counted: StreamHolding,
    /// The stream is closed, and waits for the end of its handler.
    pub(super) is_reset: bool,

    pub(super) send_window: SendWindow,
    pub(super) response: QueuedReply,
    pub(super) stall: StallClock,
}

/// The response on its way.
#[derive(Debug, Default)]
pub(super) struct QueuedReply {
    pub(super) status: u16,
    /// The label by which the request is counted.
    pub(super) label: u32,
    /// The header block; empty when it is written, or when there is no response yet.
    pub(super) block: Vec<u8>,
    pub(super) body: Body,
    /// Bytes of the pieces before `body`, if the body is made while it is sent.
    pub(super) before: u64,
    /// The body is made while it is sent, and another piece may follow.
    pub(super) is_open: bool,
    /// Bytes of the body that are written, and of the pieces before.
    pub(super) sent: u64,
    /// The last frame of the response is written.
    pub(super) is_complete: bool,
}

impl QueuedReply {
    /// True if frames are waiting to be written.
    pub(super) fn is_waiting(&self) -> bool {
        self.status != 0 && !self.is_complete
    }

    pub(super) fn left(&self) -> u64 {
        self.before + self.body.len() - self.sent
    }

    /// True if the last frame is written when nothing is left.
    pub(super) fn has_all(&self) -> bool {
        self.left() == 0 && !self.is_open
    }
}

impl Http2Stream {
    /// Its number.
    pub(crate) const fn id(&self) -> StreamId {
        StreamId(self.id)
    }

    /// Returns the request without its body, for the access log.
    pub(crate) fn request(&self, peer: &Peer, received: Boottime) -> Request<'_> {
        let known = self.repeated.as_ref().map(|response| &response.request);
        let head = known.unwrap_or(&self.head);
        head.request(Bytes::new(), peer, received)
    }

    /// The status of its response; none if there was no response.
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.response.status).filter(|&status| status != 0)
    }

    /// Returns where the request counts, with the response that it got.
    pub(crate) fn counted(&self, requests: &mut RequestCounter, peer: &Peer) -> CountedRequest {
        let received = self.received;
        let series = match &self.repeated {
            Some(response) => response.series,
            None => requests.series(SeriesKey {
                label: self.response.label,
                status: self.response.status,
                kind: RequestKind::of(&self.request(peer, received)),
            }),
        };
        CountedRequest { series, received }
    }

    /// Returns whether the last frame of its response was written.
    pub(crate) const fn is_complete(&self) -> bool {
        self.response.is_complete
    }

    /// Bytes of the response's body that were written.
    pub(crate) const fn body_bytes(&self) -> u64 {
        self.response.sent
    }

    /// True if the driver counts something for the stream.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted != StreamHolding::default()
    }

    /// Bytes of the body that have arrived.
    pub(super) fn body_len(&self) -> usize {
        self.moved + self.given + self.body.len()
    }

    pub(super) fn drop_body(&mut self) {
        (self.body, self.moved, self.whole_body) = (BytesMut::new(), 0, None);
    }

    /// How many bytes of the body are still to come, as far as is known.
    pub(super) fn expected(&self) -> u64 {
        let length = self.content_length.unwrap_or(u64::MAX);
        length.saturating_sub(self.body_len() as u64)
    }

    /// Drops all that a stream holds which is closed.
    pub(super) fn close(&mut self) {
        self.is_reset = true;
        self.drop_body();
        (self.response.body, self.response.before) = (Body::Empty, self.response.sent);
        self.response.is_open = false;
        self.response.block.clear();
    }

    /// Becomes a new stream.
    fn begin(&mut self, id: u32, send_window: SendWindow, now: Boottime) {
        self.id = id;
        self.part = RequestPart::Body;
        self.received = now;
        (self.given, self.is_streamed, self.paused_since) = (0, false, None);
        self.receive_window = ReceiveWindow::new(STREAM_WINDOW);
        self.receiving = TransferProgress::new(now);
        self.send_window = send_window;
        self.stall = StallClock::default();
    }

    /// Forgets its request and its response; keeps buffers of the usual size.
    fn clear(&mut self) {
        self.head.clear();
        self.repeated = None;
        self.priority = Priority::default();
        self.block.clear();
        self.block.shrink_to(REPEATED_BLOCK);
        self.generation = None;
        self.content_length = None;
        self.drop_body();
        (self.owes_continue, self.has_handler, self.is_reset) = (false, false, false);
        self.lent = 0;
        self.counted = StreamHolding::default();
        let mut block = std::mem::take(&mut self.response.block);
        block.clear();
        block.shrink_to(KEPT_BLOCK);
        self.response = QueuedReply {
            block,
            ..QueuedReply::default()
        };
    }
}

/// The longest header block that is shown to the driver as one that may come again.
pub(super) const REPEATED_BLOCK: usize = 1 << 10;
/// The buffer for the header block of a response that is kept.
const KEPT_BLOCK: usize = 4 << 10;

/// Memory that all sessions of a worker share, so that the usual request costs no allocation.
#[derive(Debug, Default)]
pub(crate) struct SharedBuffers {
    // Boxed, so that opening a stream moves a pointer.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Http2Stream>>,
    /// The strings of the field that is being decoded.
    pub(super) scratch: Vec<u8>,
}

/// The scratch buffer that is kept.
const KEPT_SCRATCH: usize = 64 << 10;

impl SharedBuffers {
    pub(super) fn take(
        &mut self,
        id: u32,
        send_window: SendWindow,
        now: Boottime,
    ) -> Box<Http2Stream> {
        let spare = self.spare.pop();
        let mut stream = spare.unwrap_or_default();
        stream.begin(id, send_window, now);
        stream
    }

    /// Takes back a stream that has ended.
    pub(crate) fn give_back(&mut self, mut stream: Box<Http2Stream>) {
        self.scratch.shrink_to(KEPT_SCRATCH);
        if self.spare.len() < SPARE_STREAMS {
            stream.clear();
            self.spare.push(stream);
        }
    }
}
