//! Bytes become frames, however they are cut (RFC 9113 sections 3.4, 4 and 5.5).

use super::data::DataInput;
use super::frame::{
    DEFAULT_FRAME, END_HEADERS, ErrorCode, FRAME_HEAD, FrameHead, FrameKind, PREFACE,
};
use super::session::{Lifetime, ReceiveContext, Session, SessionEvent};
use crate::limits::CONTROL_FRAMES;

/// Part of the input that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputPhase {
    /// The preface, of which this number of bytes arrived.
    Preface(usize),
    /// The head of the first frame, which is SETTINGS.
    FirstHead,
    /// The head of a frame.
    Head,
    /// The payload of a frame that is handled as a whole.
    Payload(FrameHead),
    /// The payload of DATA, which is handled as it comes.
    Data(DataInput),
}

/// A header block whose last frame has not come.
#[derive(Debug)]
pub(super) struct PendingBlock {
    pub(super) headers: HeadersFrame,
    pub(super) bytes: Vec<u8>,
}

impl PendingBlock {
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Fields of HEADERS beside its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadersFrame {
    pub(super) stream: u32,
    pub(super) ends_stream: bool,
    /// It has a priority that depends on its own stream.
    pub(super) depends_on_itself: bool,
}

impl Session {
    /// Lets the client ask for, and waste, as much as it may in one turn.
    pub(crate) const fn begin_turn(&mut self) {
        self.waste.begin_turn();
    }

    /// True if the client has asked for, or wasted, so much that others should have their turn.
    pub(crate) const fn is_turn_over(&self) -> bool {
        self.waste.is_turn_over()
    }

    /// Takes bytes off `input` until they result in an event; none when all are taken, or when the
    /// [turn is over](Session::is_turn_over): what is left comes first in the next turn. An error
    /// of the client ends the connection without an event: see [`Session::has_failed`]. The
    /// handlers that are running then may stop.
    pub(crate) fn receive(
        &mut self,
        input: &mut &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Option<SessionEvent> {
        while !input.is_empty() {
            if self.has_failed() {
                *input = &[];
                return None;
            }
            if self.waste.is_turn_over() {
                return None;
            }
            let mut outcome = self.receive_some(input, context);
            if self.control.len() > CONTROL_FRAMES {
                // The client makes us write, and does not read.
                outcome = Err(ErrorCode::EnhanceYourCalm);
            }
            self.note_incomplete(context);
            match outcome {
                Ok(None) => {}
                Ok(event) => {
                    self.waste.note_request();
                    return event;
                }
                Err(error) => self.fail(error),
            }
        }
        None
    }

    fn receive_some(
        &mut self,
        input: &mut &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let mut event = None;
        match self.input {
            InputPhase::Preface(matched) => {
                self.receive_preface(matched, input)?;
                return Ok(None);
            }
            InputPhase::FirstHead | InputPhase::Head => {
                let Some(head) = self.take_head(input) else {
                    return Ok(None);
                };
                event = self.begin_frame(head, context)?;
            }
            InputPhase::Payload(_) | InputPhase::Data(_) => {}
        }
        let later = match self.input {
            InputPhase::Payload(head) => self.receive_payload(head, input, context)?,
            InputPhase::Data(data) => self.receive_data(data, input, context)?,
            _ => None,
        };
        // If a frame is an error by its head, nothing comes of its payload.
        Ok(event.or(later))
    }

    /// Section 3.4.
    fn receive_preface(&mut self, matched: usize, input: &mut &[u8]) -> Result<(), ErrorCode> {
        let rest = &PREFACE[matched..];
        let len = rest.len().min(input.len());
        let (bytes, behind) = input.split_at(len);
        if bytes != &rest[..len] {
            return Err(ErrorCode::ProtocolError);
        }
        *input = behind;
        self.input = if len == rest.len() {
            InputPhase::FirstHead
        } else {
            InputPhase::Preface(matched + len)
        };
        Ok(())
    }

    /// The head of a frame, once it is complete.
    fn take_head(&mut self, input: &mut &[u8]) -> Option<FrameHead> {
        if self.partial.is_empty()
            && let Some((bytes, rest)) = input.split_first_chunk()
        {
            *input = rest;
            return Some(FrameHead::parse(bytes));
        }
        self.collect(FRAME_HEAD, input);
        let head = FrameHead::parse(self.partial.first_chunk()?);
        self.partial.clear();
        Some(head)
    }

    /// Moves bytes into the partial frame until it has `len`; false if more are needed.
    fn collect(&mut self, len: usize, input: &mut &[u8]) -> bool {
        let missing = len - self.partial.len();
        let (bytes, rest) = input.split_at(missing.min(input.len()));
        self.partial.extend_from_slice(bytes);
        *input = rest;
        self.partial.len() == len
    }

    /// Judges a frame by its head.
    fn begin_frame(
        &mut self,
        head: FrameHead,
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let is_first = self.input == InputPhase::FirstHead;
        if is_first && (head.kind != FrameKind::Settings || head.has(super::frame::ACK)) {
            return Err(ErrorCode::ProtocolError);
        }
        // Section 4.3: nothing comes between the frames of a header block.
        let continues = head.kind == FrameKind::Continuation;
        let belongs = match &self.block {
            Some(block) => continues && block.headers.stream == head.stream,
            None => !continues,
        };
        if !belongs || head.kind == FrameKind::PushPromise {
            return Err(ErrorCode::ProtocolError);
        }
        // Section 4.2.
        if head.len > DEFAULT_FRAME {
            return Err(ErrorCode::FrameSizeError);
        }
        if head.kind == FrameKind::Data {
            return self.begin_data(head, context.now);
        }
        self.input = InputPhase::Payload(head);
        Ok(None)
    }

    fn receive_payload(
        &mut self,
        head: FrameHead,
        input: &mut &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let len = head.len as usize;
        if self.partial.is_empty()
            && let Some((payload, rest)) = input.split_at_checked(len)
        {
            *input = rest;
            self.input = InputPhase::Head;
            return self.frame(head, payload, context);
        }
        if !self.collect(len, input) {
            return Ok(None);
        }
        self.input = InputPhase::Head;
        let mut payload = std::mem::take(&mut self.partial);
        let event = self.frame(head, &payload, context);
        payload.clear();
        // Most frames arrive in one piece; a large buffer would stay for a rare one.
        payload.shrink_to(KEPT_PARTIAL);
        self.partial = payload;
        event
    }

    fn frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let now = context.now;
        match head.kind {
            FrameKind::Headers => self.headers(head, payload, context),
            FrameKind::Continuation => self.continuation(head.has(END_HEADERS), payload, context),
            FrameKind::Priority => self.priority(head, payload, now),
            FrameKind::RstStream => self.rst_stream(head, payload, now),
            FrameKind::Settings => self.settings(head, payload, now),
            FrameKind::Ping => self.ping(head, payload, now),
            FrameKind::GoAway => self.go_away(head, payload, now),
            FrameKind::WindowUpdate => self.window_update(head, payload, now),
            FrameKind::PriorityUpdate => self.priority_update(head, payload, now),
            FrameKind::Unknown | FrameKind::Data | FrameKind::PushPromise => {
                self.charge(super::waste::Waste::Frame, now)?;
                Ok(None)
            }
        }
    }

    /// Notes since when something is incomplete that has no other clock.
    fn note_incomplete(&mut self, context: &ReceiveContext<'_>) {
        let is_complete = match self.input {
            InputPhase::Head => self.partial.is_empty() && self.block.is_none(),
            InputPhase::Data(data) => self.is_receiving(data.stream()),
            _ => false,
        };
        if is_complete {
            self.incomplete_since = None;
        } else {
            self.incomplete_since.get_or_insert(context.now);
        }
    }

    /// True if the connection has ended with an error: the driver [writes](Session::write) what is
    /// left and closes it.
    pub(crate) const fn has_failed(&self) -> bool {
        matches!(self.lifetime, Lifetime::Failed(_))
    }
}

/// The buffer for parts of frames that is kept.
const KEPT_PARTIAL: usize = 256;
