//! DATA: bodies of requests as they arrive (RFC 9113 sections 6.1 and 8.1.1).

use base_clock::Boottime;

use super::frame::{END_STREAM, ErrorCode, FrameHead, PADDED, push_window_update};
use super::receive::InputPhase;
use super::session::{ReceiveContext, Session, SessionEvent};
use super::stream::{RequestPart, StreamId};
use super::streams::{ClosedBy, StreamState};
use super::waste::{TINY_DATA, Waste};
use crate::h1::Refusal;

/// The rest of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataInput {
    head: FrameHead,
    /// Bytes to come that are no padding; that includes it as long as its length is unknown.
    data: u32,
    /// None as long as it is unknown.
    padding: Option<u32>,
}

impl DataInput {
    pub(super) const fn stream(&self) -> u32 {
        self.head.stream
    }
}

impl Session {
    /// A DATA frame begins. Its whole length counts for the windows (section 6.9.1).
    pub(super) fn begin_data(
        &mut self,
        head: FrameHead,
        now: Boottime,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let state = self.streams.state(head.stream);
        if state == StreamState::Idle {
            return Err(ErrorCode::ProtocolError);
        }
        if head.has(PADDED) && head.len == 0 {
            return Err(ErrorCode::FrameSizeError);
        }
        if !self.receive_window.receive(head.len) {
            return Err(ErrorCode::FlowControlError);
        }
        if let Some(increment) = self.receive_window.renew(u64::MAX) {
            push_window_update(&mut self.control, 0, increment);
        }
        let data = DataInput {
            head,
            data: head.len,
            padding: (!head.has(PADDED)).then_some(0),
        };
        self.input = InputPhase::Data(data);
        if data.padding.is_some() {
            self.charge_tiny_data(data, now)?;
        }
        match state {
            StreamState::Open(at) => {
                let stream = self.streams.at(at);
                let fits = stream.receive_window.receive(head.len);
                if stream.part == RequestPart::Complete {
                    self.stream_error(head.stream, ErrorCode::StreamClosed, now)
                } else if !fits {
                    self.stream_error(head.stream, ErrorCode::FlowControlError, now)
                } else {
                    Ok(None)
                }
            }
            // The client may not know yet that the stream is closed. One that was closed long ago
            // may be one of many that were refused.
            StreamState::Closed(Some(ClosedBy::Us) | None) => {
                self.charge(Waste::Frame, now)?;
                Ok(None)
            }
            StreamState::Closed(Some(ClosedBy::Client)) => {
                self.stream_error(head.stream, ErrorCode::StreamClosed, now)
            }
            // Section 5.1: after END_STREAM it is an error of the connection.
            StreamState::Closed(Some(ClosedBy::End)) | StreamState::Idle => {
                Err(ErrorCode::StreamClosed)
            }
        }
    }

    fn charge_tiny_data(&mut self, data: DataInput, now: Boottime) -> Result<(), ErrorCode> {
        if data.data < TINY_DATA && !data.head.has(END_STREAM) {
            self.charge(Waste::Frame, now)?;
        }
        Ok(())
    }

    /// Takes the part of a DATA frame that arrived.
    pub(super) fn receive_data(
        &mut self,
        mut data: DataInput,
        input: &mut &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        if data.padding.is_none()
            && let Some((&padding, rest)) = input.split_first()
        {
            *input = rest;
            let left = (data.data - 1).checked_sub(padding.into());
            // Section 6.1: padding as long as the payload or longer.
            data.data = left.ok_or(ErrorCode::ProtocolError)?;
            data.padding = Some(padding.into());
            self.charge_tiny_data(data, context.now)?;
        }
        let Some(mut padding) = data.padding else {
            return Ok(None);
        };
        let event = if data.data > 0 {
            let bytes = take(&mut data.data, input);
            self.body_bytes(data.head.stream, bytes, context.now)
        } else {
            None
        };
        if data.data == 0 {
            take(&mut padding, input);
        }
        data.padding = Some(padding);
        self.input = InputPhase::Data(data);
        if data.data > 0 || padding > 0 {
            return Ok(event);
        }
        self.input = InputPhase::Head;
        let ends_stream = data.head.has(END_STREAM);
        match self.streams.state(data.head.stream) {
            StreamState::Open(at) if ends_stream => {
                let end = self.end_request(at, context.now)?;
                // A body that is refused has no other end.
                Ok(event.or(end))
            }
            StreamState::Open(at) => {
                self.renew_window(at);
                Ok(event)
            }
            _ => Ok(event),
        }
    }

    /// Adds to the body of a stream, unless it is not wanted any more.
    fn body_bytes(&mut self, id: u32, bytes: &[u8], now: Boottime) -> Option<SessionEvent> {
        let StreamState::Open(at) = self.streams.state(id) else {
            return None;
        };
        let stream = self.streams.at(at);
        if stream.part != RequestPart::Body {
            return None;
        }
        if stream.body_len() + bytes.len() > stream.body_limit {
            return self.refuse_at(at, Refusal::BodyTooLarge);
        }
        // Nothing is reserved: a length is only a promise.
        stream.body.extend_from_slice(bytes);
        let len = stream.body_len() as u64;
        stream.receiving.moved_to(len, now);
        stream.owes_continue = false;
        None
    }

    /// The request of an open stream gets no handler, but an answer.
    pub(super) fn refuse_at(&mut self, at: usize, refusal: Refusal) -> Option<SessionEvent> {
        let stream = self.streams.at(at);
        if stream.part == RequestPart::Body {
            stream.part = RequestPart::Refused;
        }
        stream.drop_body();
        stream.owes_continue = false;
        stream.has_handler = true;
        Some(SessionEvent::Refused(StreamId(stream.id), refusal))
    }

    /// The client has sent the last frame of a request.
    pub(super) fn end_request(
        &mut self,
        at: usize,
        now: Boottime,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let stream = self.streams.at(at);
        let (id, was) = (stream.id, stream.part);
        stream.part = RequestPart::Complete;
        if was == RequestPart::Refused {
            return Ok(None);
        }
        let len = stream.body_len() as u64;
        // Section 8.1.1.
        if stream.content_length.is_some_and(|length| length != len) {
            return self.stream_error(id, ErrorCode::ProtocolError, now);
        }
        stream.owes_continue = false;
        stream.has_handler = true;
        Ok(Some(SessionEvent::Request(StreamId(id))))
    }

    fn renew_window(&mut self, at: usize) {
        let stream = self.streams.at(at);
        if stream.part == RequestPart::Body
            && !stream.is_streamed
            && let Some(increment) = stream.receive_window.renew(stream.expected())
        {
            push_window_update(&mut self.control, stream.id, increment);
        }
    }

    /// True if the clock of this stream's body is running.
    pub(super) fn is_receiving(&self, id: u32) -> bool {
        let stream = self.streams.get(id);
        stream.is_some_and(|stream| !stream.is_reset && stream.part == RequestPart::Body)
    }
}

/// Takes up to `left` bytes off `input`.
fn take<'i>(left: &mut u32, input: &mut &'i [u8]) -> &'i [u8] {
    let len = input.len().min(*left as usize);
    let (bytes, rest) = input.split_at(len);
    *input = rest;
    // No longer than `left`.
    *left -= u32::try_from(len).unwrap_or(*left);
    bytes
}
