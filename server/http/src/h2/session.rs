//! One connection: what is kept of it, and what its driver asks and tells.

use std::rc::Rc;

use base_clock::Boottime;
use bytes::Bytes;

use super::flow::{INITIAL_WINDOW, ReceiveWindow, SendWindow, StallClock};
use super::frame::{ErrorCode, push_go_away, push_reset, push_window_update};
use super::hpack::HpackDecoder;
use super::known::{KnownBlocks, KnownResponse};
use super::priority::Priority;
use super::receive::{InputPhase, PendingBlock};
use super::settings::{self, ClientSettings};
use super::stream::{Http2Stream, SharedBuffers, StreamId};
use super::streams::{ClosedBy, Streams};
use super::waste::{Waste, WasteBudget};
use crate::h1::Refusal;
use crate::limits::{CONNECTION_WINDOW, Limits};
use crate::peer::Peer;
use crate::request::Request;

/// Event that the bytes of the client result in.
#[derive(Debug)]
#[cfg_attr(test, derive(PartialEq))]
pub(crate) enum SessionEvent {
    /// The head of a request whose body follows: [`Session::accept_body`] or
    /// [`Session::reject_body`] says what becomes of it. Only from a session that
    /// [announces](Session::announcing) bodies.
    Body(StreamId),
    /// A request is complete: [`Session::request`] has it, and [`Session::respond`] wants its
    /// response.
    Request(StreamId),
    /// A request whose header block was [learned](Session::learn), so that it was not decoded, and
    /// its response, which is valid now: [`Session::repeat`] wants it.
    Repeated(StreamId, Rc<KnownResponse>),
    /// A request that is not given to the service: the driver responds with the status of the
    /// refusal. Its head may be incomplete.
    Refused(StreamId, Refusal),
    /// A stream is closed before its response was written, so its handler may stop. The driver
    /// says [when it has](Session::handler_is_gone).
    Reset(StreamId),
}

/// Context that the worker gives to a session while bytes are received.
pub(crate) struct ReceiveContext<'a> {
    /// The time of the read.
    pub(crate) now: Boottime,
    pub(crate) limits: &'a Limits,
    pub(crate) buffers: &'a mut SharedBuffers,
}

/// The stages of a connection, up to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    Open,
    /// The client was told that the connection ends; it may not have heard it yet.
    Announced {
        at: Boottime,
    },
    /// The client was told the last stream that is answered. No further one is opened.
    Ending {
        last: u32,
    },
    /// An error was sent. Nothing is read, and only control frames are written.
    Failed(ErrorCode),
}

/// An HTTP/2 connection as a state machine: bytes in, [events](SessionEvent) out; responses in,
/// bytes out. It knows no socket and reads no clock.
///
/// Its driver writes nothing while the socket does not take what was written, and reads all the
/// same: what a client may then make the session hold is bounded by its streams and by
/// [`CONTROL_FRAMES`](crate::limits::CONTROL_FRAMES).
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) hpack: HpackDecoder,
    pub(super) input: InputPhase,
    /// The part of a frame that has arrived, unless it is DATA.
    pub(super) partial: Vec<u8>,
    /// A header block whose last frame has not come.
    pub(super) block: Option<PendingBlock>,
    /// Since when a frame or a block is incomplete.
    pub(super) incomplete_since: Option<Boottime>,
    /// True if the connection is secured, so that `https` resources may be asked for.
    pub(super) is_secured: bool,
    /// True if [`SessionEvent::Body`] comes before a body.
    pub(super) announces: bool,
    pub(super) client: ClientSettings,
    pub(super) streams: Streams,
    pub(super) known: KnownBlocks,
    /// Priorities of streams that are not open yet (RFC 9218 section 7.1).
    pub(super) early_priorities: Vec<(u32, Priority)>,
    // Boxed, as they are everywhere.
    #[allow(clippy::vec_box)]
    pub(super) ended: Vec<Box<Http2Stream>>,
    pub(super) receive_window: ReceiveWindow,
    pub(super) send_window: SendWindow,
    /// Bytes of DATA that were written.
    pub(super) sent: u64,
    pub(super) stall: StallClock,
    pub(super) waste: WasteBudget,
    pub(super) lifetime: Lifetime,
    /// Frames that go before those of responses.
    pub(super) control: Vec<u8>,
    /// The incremental stream that was served last.
    pub(super) served_last: u32,
    /// The next header block must say that the dynamic table is not used.
    pub(super) owes_table_update: bool,
}

impl Session {
    /// A connection that was accepted at `now`. Its first bytes are our SETTINGS.
    pub(crate) fn new(limits: &Limits, is_secured: bool, now: Boottime) -> Self {
        let mut control = Vec::with_capacity(64);
        settings::push_own(&mut control, limits);
        push_window_update(&mut control, 0, CONNECTION_WINDOW - INITIAL_WINDOW);
        Self {
            hpack: HpackDecoder::new(),
            input: InputPhase::Preface(0),
            partial: Vec::new(),
            block: None,
            incomplete_since: Some(now),
            is_secured,
            announces: false,
            client: ClientSettings::new(),
            streams: Streams::default(),
            known: KnownBlocks::default(),
            early_priorities: Vec::new(),
            ended: Vec::new(),
            receive_window: ReceiveWindow::new(CONNECTION_WINDOW),
            send_window: SendWindow::new(INITIAL_WINDOW),
            sent: 0,
            stall: StallClock::default(),
            waste: WasteBudget::new(now),
            lifetime: Lifetime::Open,
            control,
            served_last: 0,
            owes_table_update: false,
        }
    }

    /// Returns a session that gives [`SessionEvent::Body`] before each body. Without it a body may
    /// be as long as the limits say.
    pub(crate) fn announcing(self) -> Self {
        Self {
            announces: true,
            ..self
        }
    }

    /// A request that an event has announced, with its body the first time it is asked for. None if
    /// the stream is gone.
    pub(crate) fn request(
        &mut self,
        stream: StreamId,
        peer: &Peer,
        received: Boottime,
    ) -> Option<Request<'_>> {
        let stream = self.streams.get_mut(stream.0)?;
        stream.received = received;
        let body = match stream.whole_body.take() {
            Some(body) => body,
            None if stream.body.is_empty() => Bytes::new(),
            None => {
                let body = std::mem::take(&mut stream.body).freeze();
                stream.lent += body.len();
                body
            }
        };
        Some(stream.head.request(body, peer, received))
    }

    /// A stream that has ended since the last call, for the access log; then
    /// [`SharedBuffers::give_back`] wants it.
    pub(crate) fn next_ended(&mut self) -> Option<Box<Http2Stream>> {
        self.ended.pop()
    }

    /// True if nothing is being received, answered or written: the driver's idle timeout runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.incomplete_since.is_none() && self.control.is_empty()
    }

    /// Gives back memory, as far as the connection can do without it while it is idle.
    pub(crate) fn shrink(&mut self) {
        self.hpack.shrink();
        self.partial.shrink_to_fit();
        self.control.shrink_to_fit();
        self.ended.shrink_to_fit();
        self.early_priorities.shrink_to_fit();
        self.streams.shrink();
    }

    /// Charges the budget of wasted work; an error ends the connection.
    pub(super) fn charge(&mut self, waste: Waste, now: Boottime) -> Result<(), ErrorCode> {
        if self.waste.charge(waste, now) {
            Ok(())
        } else {
            Err(ErrorCode::EnhanceYourCalm)
        }
    }

    /// A stream error by a mistake of the client (section 5.4.2). The stream may be one that is not
    /// in the table.
    pub(super) fn stream_error(
        &mut self,
        id: u32,
        error: ErrorCode,
        now: Boottime,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        self.charge(Waste::Fault, now)?;
        if let Some(at) = self.streams.place(id)
            && !self.streams.at(at).is_reset
        {
            return Ok(self.reset_at(at, error));
        }
        push_reset(&mut self.control, id, error);
        self.streams.remember(id, ClosedBy::Us);
        Ok(None)
    }

    /// Gives up the open stream at this place.
    pub(super) fn reset_at(&mut self, at: usize, error: ErrorCode) -> Option<SessionEvent> {
        let id = self.streams.at(at).id;
        push_reset(&mut self.control, id, error);
        self.close_at(at, ClosedBy::Us)
    }

    /// The open stream at this place is closed. It stays in the table as long as its handler runs.
    pub(super) fn close_at(&mut self, at: usize, by: ClosedBy) -> Option<SessionEvent> {
        let stream = self.streams.at(at);
        stream.close();
        let (id, has_handler) = (stream.id, stream.has_handler);
        self.streams.remember(id, by);
        if has_handler {
            return Some(SessionEvent::Reset(StreamId(id)));
        }
        self.retire(at);
        None
    }

    /// Shows a stream to the driver for the last time.
    pub(super) fn retire(&mut self, at: usize) {
        let stream = self.streams.remove(at);
        self.ended.push(stream);
    }

    /// A connection error (section 5.4.1): all streams are closed, and GOAWAY is the last frame.
    pub(super) fn fail(&mut self, error: ErrorCode) {
        if matches!(self.lifetime, Lifetime::Failed(_)) {
            return;
        }
        let last = match self.lifetime {
            Lifetime::Ending { last } => last,
            _ => self.streams.last(),
        };
        self.lifetime = Lifetime::Failed(error);
        (self.partial, self.block, self.incomplete_since) = (Vec::new(), None, None);
        push_go_away(&mut self.control, last, error);
        for at in (0..self.streams.len()).rev() {
            if !self.streams.at(at).is_reset {
                self.close_at(at, ClosedBy::Us);
            }
        }
    }
}
