//! Header blocks: requests begin, and trailers end them (RFC 9113 sections 6.2, 6.10 and 8.1).

use base_clock::Boottime;

use super::frame::{
    END_HEADERS, END_STREAM, ErrorCode, FrameHead, PADDED, WITH_PRIORITY, number_31, push_reset,
};
use super::head_reader::{HeadFault, HeadReader, NoFields, TrailerReader};
use super::hpack::{BlockError, FieldSink};
use super::receive::{HeadersFrame, PendingBlock};
use super::session::{Lifetime, ReceiveContext, Session, SessionEvent};
use super::stream::{Http2Stream, REPEATED_BLOCK, RequestPart, StreamId};
use super::streams::{ClosedBy, StreamState};
use super::waste::Waste;
use crate::limits::HTTP2_STREAMS;

impl Session {
    /// HEADERS (section 6.2).
    pub(super) fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        // Section 5.1.1: the streams of a client have odd numbers.
        if head.stream.is_multiple_of(2) {
            return Err(ErrorCode::ProtocolError);
        }
        let mut block = without_padding(head, payload)?;
        let mut depends_on_itself = false;
        if head.has(WITH_PRIORITY) {
            let (priority, rest) = block.split_at_checked(5).ok_or(ErrorCode::FrameSizeError)?;
            depends_on_itself = number_31(priority) == Some(head.stream);
            block = rest;
        }
        let headers = HeadersFrame {
            stream: head.stream,
            ends_stream: head.has(END_STREAM),
            depends_on_itself,
        };
        if head.has(END_HEADERS) {
            return self.header_block(headers, block, context);
        }
        self.block = Some(PendingBlock {
            headers,
            bytes: block.to_vec(),
        });
        Ok(None)
    }

    /// CONTINUATION (section 6.10). What it belongs to was checked by its head.
    pub(super) fn continuation(
        &mut self,
        ends_block: bool,
        payload: &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        self.charge(Waste::Answer, context.now)?;
        let mut pending = self.block.take().ok_or(ErrorCode::ProtocolError)?;
        // Without its end the block cannot be decoded, and without decoding it the connection
        // cannot go on.
        if pending.bytes.len() + payload.len() > context.limits.head {
            return Err(ErrorCode::EnhanceYourCalm);
        }
        pending.bytes.extend_from_slice(payload);
        if ends_block {
            return self.header_block(pending.headers, &pending.bytes, context);
        }
        self.block = Some(pending);
        Ok(None)
    }

    /// A complete header block. It is decoded in any case, because it may change the dynamic table
    /// (section 4.3).
    fn header_block(
        &mut self,
        headers: HeadersFrame,
        block: &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let (id, now) = (headers.stream, context.now);
        match self.streams.state(id) {
            StreamState::Idle => {
                self.streams.use_number(id);
                if let Some(error) = self.refuses_streams(now)? {
                    self.decode(block, context, &mut NoFields)?;
                    self.streams.remember(id, ClosedBy::Us);
                    if let Some(error) = error {
                        push_reset(&mut self.control, id, error);
                    }
                    return Ok(None);
                }
                self.open_stream(headers, block, context)
            }
            StreamState::Open(at) if self.streams.at(at).part == RequestPart::Complete => {
                self.decode(block, context, &mut NoFields)?;
                self.stream_error(id, ErrorCode::StreamClosed, now)
            }
            StreamState::Open(at) => self.trailers(at, headers, block, context),
            StreamState::Closed(by) => {
                self.decode(block, context, &mut NoFields)?;
                match by {
                    Some(ClosedBy::Us) => {
                        self.charge(Waste::Frame, now)?;
                        Ok(None)
                    }
                    Some(ClosedBy::Client) => self.stream_error(id, ErrorCode::StreamClosed, now),
                    Some(ClosedBy::End) => Err(ErrorCode::StreamClosed),
                    // Section 5.1.1: a number lower than one that was used.
                    None => Err(ErrorCode::ProtocolError),
                }
            }
        }
    }

    /// Decides if a new stream is refused, and with which error.
    fn refuses_streams(&mut self, now: Boottime) -> Result<Option<Option<ErrorCode>>, ErrorCode> {
        // Section 6.8: what comes after GOAWAY is ignored.
        if matches!(self.lifetime, Lifetime::Ending { .. }) {
            self.charge(Waste::Frame, now)?;
            return Ok(Some(None));
        }
        // Section 5.1.2. The client may try the request again (section 8.7).
        if self.streams.len() >= HTTP2_STREAMS {
            self.charge(Waste::Reset, now)?;
            return Ok(Some(Some(ErrorCode::RefusedStream)));
        }
        Ok(None)
    }

    /// A new stream with its request.
    fn open_stream(
        &mut self,
        headers: HeadersFrame,
        block: &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let (id, now) = (headers.stream, context.now);
        let window = super::flow::SendWindow::new(self.client.initial_window);
        let mut stream = context.buffers.take(id, window, now);
        let early_priority = self.take_early_priority(id);
        let generation = self.hpack.generation();
        if headers.ends_stream && !headers.depends_on_itself {
            stream.part = RequestPart::Complete;
            if let Some((priority, response)) = self.known.find(generation, block, now) {
                stream.priority = early_priority.unwrap_or(priority);
                stream.has_handler = true;
                self.streams.push(stream);
                return Ok(Some(SessionEvent::Repeated(StreamId(id), response)));
            }
        }
        let limits = context.limits;
        let mut reader = HeadReader::new(&mut stream.head, limits, self.is_secured);
        self.decode(block, context, &mut reader)?;
        let facts = reader.finish(!headers.ends_stream);
        self.streams.push(stream);
        if headers.depends_on_itself {
            return self.stream_error(id, ErrorCode::ProtocolError, now);
        }
        let Some(at) = self.streams.place(id) else {
            return Ok(None);
        };
        let stream = self.streams.at(at);
        match facts {
            Err(HeadFault::Malformed(_)) => self.stream_error(id, ErrorCode::ProtocolError, now),
            Err(HeadFault::Refused(refusal)) => Ok(self.refuse_at(at, refusal)),
            Ok(facts) => {
                stream.priority = early_priority.unwrap_or(facts.priority);
                stream.content_length = facts.content_length;
                if !headers.ends_stream {
                    stream.owes_continue = facts.expects_continue;
                    return Ok(match self.announces {
                        true => Some(SessionEvent::Body(StreamId(id))),
                        false => self.accept_body_at(at, limits.body),
                    });
                }
                let is_unchanged = generation == self.hpack.generation();
                note_block(
                    self.streams.at(at),
                    is_unchanged.then_some(generation),
                    block,
                );
                self.end_request(at, now)
            }
        }
    }

    /// Trailers (section 8.1): they end the request, are checked, and dropped.
    fn trailers(
        &mut self,
        at: usize,
        headers: HeadersFrame,
        block: &[u8],
        context: &mut ReceiveContext<'_>,
    ) -> Result<Option<SessionEvent>, ErrorCode> {
        let mut trailers = TrailerReader::default();
        self.decode(block, context, &mut trailers)?;
        let fault = match trailers.finish() {
            _ if !headers.ends_stream || headers.depends_on_itself => true,
            Err(HeadFault::Malformed(_)) => true,
            Err(HeadFault::Refused(refusal)) => {
                let was = self.streams.at(at).part;
                self.streams.at(at).part = RequestPart::Complete;
                let is_news = was == RequestPart::Body;
                return Ok(if is_news {
                    self.refuse_at(at, refusal)
                } else {
                    None
                });
            }
            Ok(()) => false,
        };
        if fault {
            return self.stream_error(headers.stream, ErrorCode::ProtocolError, context.now);
        }
        self.end_request(at, context.now)
    }

    /// Decodes a block. A client that makes far more of it than any list may have is not answered.
    fn decode(
        &mut self,
        block: &[u8],
        context: &mut ReceiveContext<'_>,
        sink: &mut impl FieldSink,
    ) -> Result<(), ErrorCode> {
        let max_list = context.limits.head.saturating_mul(DECODED_HEADS);
        let scratch = &mut context.buffers.scratch;
        let decoded = self.hpack.decode(block, max_list, scratch, sink);
        decoded.map_err(|error| match error {
            BlockError::Compression => ErrorCode::CompressionError,
            BlockError::TooLarge => ErrorCode::EnhanceYourCalm,
        })
    }
}

/// A list is decoded up to this multiple of the limit of a head, so that one that is merely too
/// long can be answered.
const DECODED_HEADS: usize = 4;

/// Keeps a block by which the same request may be known when it comes again.
#[inline]
fn note_block(stream: &mut Http2Stream, generation: Option<u64>, block: &[u8]) {
    let is_get = stream.head.method() == b"GET";
    if generation.is_some() && is_get && block.len() <= REPEATED_BLOCK {
        stream.block.extend_from_slice(block);
        stream.generation = generation;
    }
}

/// The payload between the length of the padding and the padding (section 6.2).
fn without_padding(head: FrameHead, payload: &[u8]) -> Result<&[u8], ErrorCode> {
    if !head.has(PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(ErrorCode::FrameSizeError)?;
    let len = rest.len().checked_sub(padding.into());
    Ok(&rest[..len.ok_or(ErrorCode::ProtocolError)?])
}
