//! Responses of HTTP/1 whose bodies are made while they are sent.
//!
//! The head is sent with the first pieces that the source has, about [`BATCH`] bytes at a time.
//! While these are on their way the source is not asked. While the source has no piece, the
//! connection is at [`Stage::Streaming`] and has no deadline: it waits for the server. It is quiet
//! then, and has given its buffers back: there may be many that have nothing to send for long.

use std::task::{Context, Waker};
use std::time::Duration;

use base_clock::Boottime;
use bytes::Bytes;
use rustix::net::sockopt::set_socket_linger;

use super::exchange::Exchange;
use super::host::Host;
use super::output::Output;
use super::{After, Connection, NextAction, Stage};
use crate::body_source::{BodySource, NextPiece, next_piece};
use crate::h1::{Head, Phase};
use crate::limits::OUTPUT;
use crate::request_counts::CountedRequest;
use crate::response::Service;
use crate::syntax::FieldSpan;

/// Bytes of pieces that are sent together.
const BATCH: usize = 32 << 10;
/// Pieces that are sent together.
const PIECES: usize = 1024;
/// Pieces up to this length are put together.
const SMALL: usize = 2 << 10;

/// A response whose body is being made.
pub(super) struct OutgoingBody {
    /// The request, for the access log.
    request: Option<Box<StreamedRequest>>,
    /// The place at which the request counts with the last byte.
    pub(super) counted: CountedRequest,
    pub(super) status: u16,
    /// None: another response had the source.
    source: Option<Box<dyn BodySource>>,
    waker: Option<Waker>,
    /// HTTP/1.1. Otherwise the end of the connection is the end of the body.
    is_chunked: bool,
    has_chunk: bool,
    /// Bytes of the body that were sent, and those in the queue.
    sent: u64,
    queued: u64,
    /// Bytes since other connections had their turn.
    turn: usize,
    /// Stage that follows the last byte.
    pub(super) after: After,
}

/// Why no more pieces were queued.
#[derive(PartialEq, Eq)]
enum Filled {
    Enough,
    Pending,
    Ended,
    Cut { is_panic: bool },
}

impl OutgoingBody {
    pub(super) fn new(
        request: Option<Head>,
        counted: CountedRequest,
        status: u16,
        source: Option<Box<dyn BodySource>>,
        is_chunked: bool,
    ) -> Self {
        Self {
            request: request.map(|head| {
                Box::new(StreamedRequest {
                    head,
                    kept: Default::default(),
                })
            }),
            counted,
            status,
            source,
            waker: None,
            is_chunked,
            has_chunk: false,
            sent: 0,
            queued: 0,
            turn: 0,
            after: After::Close,
        }
    }

    /// The head of the request, for the access log.
    pub(super) fn head(&self) -> Option<Head> {
        self.request.as_ref().map(|request| request.head)
    }

    /// Bytes of the body that were handed to the socket.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Queues what the source has, up to [`BATCH`]: small pieces together in one chunk.
    fn fill(&mut self, output: &mut Output, waker: &Waker) -> Filled {
        let mut small = Vec::new();
        let filled = self.gather(output, waker, &mut small);
        self.push(output, small.into());
        filled
    }

    fn gather(&mut self, output: &mut Output, waker: &Waker, small: &mut Vec<u8>) -> Filled {
        let mut context = Context::from_waker(waker);
        for _ in 0..PIECES {
            let Some(source) = &mut self.source else {
                return Filled::Cut { is_panic: false };
            };
            match next_piece(&mut **source, &mut context) {
                NextPiece::Bytes(bytes) if bytes.len() <= SMALL => small.extend_from_slice(&bytes),
                NextPiece::Bytes(bytes) => {
                    self.push(output, std::mem::take(small).into());
                    self.push(output, bytes);
                }
                NextPiece::Pending => return Filled::Pending,
                NextPiece::End => {
                    self.source = None;
                    return Filled::Ended;
                }
                NextPiece::Cut { is_panic } => return Filled::Cut { is_panic },
            }
            if output.waiting() + small.len() >= BATCH {
                break;
            }
        }
        Filled::Enough
    }

    fn push(&mut self, output: &mut Output, piece: Bytes) {
        // An empty chunk would be the last one.
        if !piece.is_empty() {
            self.queued += piece.len() as u64;
            let head = self.chunk_head(piece.len());
            output.push_piece(head.as_bytes(), piece);
        }
    }

    /// The line before a chunk, after the end of the chunk before (RFC 9112 section 7.1).
    fn chunk_head(&mut self, len: usize) -> String {
        match (
            self.is_chunked,
            std::mem::replace(&mut self.has_chunk, true),
        ) {
            (false, _) => String::new(),
            (true, false) => format!("{len:x}\r\n"),
            (true, true) => format!("\r\n{len:x}\r\n"),
        }
    }

    /// The last chunk.
    const fn end(&self) -> &'static str {
        match (self.is_chunked, self.has_chunk) {
            (false, _) => "",
            (true, false) => "0\r\n\r\n",
            (true, true) => "\r\n0\r\n\r\n",
        }
    }
}

impl Exchange {
    /// Queues pieces of a body and sends them; none if another stage has begun.
    pub(super) fn stream_response<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
    ) -> Option<NextAction> {
        let Some(mut body) = self.output.streamed.take() else {
            return Some(NextAction::Close);
        };
        body.sent += std::mem::take(&mut body.queued);
        if body.turn > OUTPUT {
            body.turn = 0;
            self.output.streamed = Some(body);
            return Some(NextAction::Yield);
        }
        let token = connection.token;
        let waker = match body.waker.take() {
            Some(waker) => waker,
            None => host.mailbox.waker(token.stream(0)),
        };
        let filled = body.fill(&mut self.output, &waker);
        body.turn += self.output.waiting();
        connection.stage = Stage::Sending(After::Stream);
        match filled {
            Filled::Ended => {
                self.now = Boottime::now();
                self.head_since = self.now;
                connection.stage = Stage::Sending(body.after);
                body.sent += body.queued;
                self.output.push_end(&body, body.end().as_bytes());
                return None;
            }
            Filled::Cut { is_panic } => {
                host.counters.panics.add(u64::from(is_panic));
                if !body.is_chunked {
                    // A reset: the client must not take the end for the end of the body.
                    let _ = set_socket_linger(&connection.socket, Some(Duration::ZERO));
                }
                self.output.streamed = Some(body);
                return Some(NextAction::Close);
            }
            Filled::Pending if self.output.is_empty() => {
                connection.stage = Stage::Streaming;
                connection.deadline = Boottime::NEVER;
                body.waker = Some(waker);
                if let Some(body) = self.rest(body, host.service.wants_done()) {
                    connection.quiet = Some(body);
                }
                return Some(NextAction::Wait);
            }
            Filled::Pending | Filled::Enough => body.waker = Some(waker),
        }
        self.output.streamed = Some(body);
        None
    }

    /// Takes from the exchange what a quiet stream needs, so that it can be given back; nothing if
    /// more of the client's bytes are in it. `wants_done`: the service is notified at the end.
    fn rest(&mut self, mut body: Box<OutgoingBody>, wants_done: bool) -> Option<Box<OutgoingBody>> {
        if self.decoder.phase() != Phase::Idle || self.holder.is_some() {
            self.decoder.shrink();
            self.output.shrink();
            self.output.streamed = Some(body);
            return None;
        }
        body.request = body.request.filter(|_| wants_done);
        if let Some(StreamedRequest { head, kept }) = body.request.as_deref_mut() {
            let (bytes, fields) = self.decoder.parts_of(head);
            *kept = (bytes.into(), fields.into());
        }
        Some(body)
    }
}

/// The request whose response is streamed.
struct StreamedRequest {
    head: Head,
    /// The bytes and the field lines of the head, while the connection has no buffers.
    kept: (Box<[u8]>, Box<[FieldSpan]>),
}

impl Connection {
    /// Returns buffers for the stream of the connection, if it is quiet.
    pub(super) fn waken<S: Service>(&mut self, host: &mut Host<S>) -> Option<Box<Exchange>> {
        let mut body = self.quiet.take()?;
        let mut exchange = host.pool.take();
        exchange.begin(body.counted.received);
        if let Some(StreamedRequest { head, kept }) = body.request.as_deref_mut() {
            let (bytes, fields) = std::mem::take(kept);
            exchange.decoder.restore(head, &bytes, &fields);
        }
        exchange.output.streamed = Some(body);
        Some(exchange)
    }
}
