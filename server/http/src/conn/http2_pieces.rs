//! Responses of HTTP/2 whose bodies are made while they are sent.
//!
//! A source is asked for a piece when the frames of the piece before are written, and so only while
//! the windows of the stream and of the connection are open.

use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::{Bytes, BytesMut};

use super::connections::Connections;
use super::http2::Http2;
use crate::body_source::{BodySource, NextPiece, next_piece};
use crate::event::{Mailbox, StreamToken};
use crate::h2::{PieceDemand, StreamId};
use crate::response::{Body, Response, Service};

/// Small pieces are put together up to this length.
const JOINED: usize = 16 << 10;
/// Pieces that are put together.
const PIECES: usize = 512;

/// Source of the body of the response to a stream.
pub(super) struct StreamSource {
    pub(super) stream: StreamId,
    source: Box<dyn BodySource>,
    /// Created at the first poll.
    waker: Option<Waker>,
    /// It has no piece, and its waker was not woken.
    is_waiting: bool,
    /// Piece that follows the one that was given.
    next: Option<NextPiece>,
}

impl StreamSource {
    /// Notes that its waker was woken.
    pub(super) fn wake(&mut self) {
        self.is_waiting = false;
    }

    /// Returns the next piece, put together of small ones. `token` names the stream.
    fn next(&mut self, mailbox: &Arc<Mailbox>, token: StreamToken) -> NextPiece {
        if let Some(next) = self.next.take() {
            return next;
        }
        let waker = self.waker.get_or_insert_with(|| mailbox.waker(token));
        let mut context = Context::from_waker(waker);
        let first = match next_piece(&mut *self.source, &mut context) {
            NextPiece::Bytes(bytes) if bytes.len() < JOINED / 2 => bytes,
            next => return next,
        };
        let mut joined = BytesMut::from(&first[..]);
        for _ in 1..PIECES {
            match next_piece(&mut *self.source, &mut context) {
                NextPiece::Bytes(bytes) if joined.len() + bytes.len() <= JOINED => {
                    joined.extend_from_slice(&bytes);
                }
                // The waker is registered.
                NextPiece::Pending => break,
                next => {
                    self.next = Some(next);
                    break;
                }
            }
        }
        NextPiece::Bytes(Bytes::from(joined))
    }
}

impl Http2 {
    /// The response to a stream has begun: if its body is made while it is sent, remembers its
    /// source.
    pub(super) fn begin_pieces(&mut self, stream: StreamId, response: &Response) {
        let Body::Streamed(body) = response.body() else {
            return;
        };
        if self.session.piece_demand(stream) == PieceDemand::Gone {
            return;
        }
        match body.take() {
            Some(source) => self.sources.push(StreamSource {
                stream,
                source,
                waker: None,
                is_waiting: false,
                next: None,
            }),
            None => self.session.cut_pieces(stream),
        }
    }

    /// Gives the session the pieces for which it has room.
    pub(super) fn feed_pieces<S: Service>(&mut self, all: &mut Connections<S>) {
        if self.sources.is_empty() {
            return;
        }
        // The sources may take long, and responses that are ready do not wait for them.
        all.send_before_more();
        for mut source in std::mem::take(&mut self.sources) {
            let stream = source.stream;
            match self.session.piece_demand(stream) {
                PieceDemand::Gone => continue,
                PieceDemand::Later => {}
                PieceDemand::Now if source.is_waiting => {}
                PieceDemand::Now => match source.next(&all.host.mailbox, self.stream_token(stream))
                {
                    NextPiece::Bytes(bytes) => self.session.give_piece(stream, bytes),
                    NextPiece::Pending => source.is_waiting = true,
                    NextPiece::End => {
                        self.session.end_pieces(stream);
                        continue;
                    }
                    NextPiece::Cut { is_panic } => {
                        all.host.counters.panics.add(u64::from(is_panic));
                        self.session.cut_pieces(stream);
                        continue;
                    }
                },
            }
            self.sources.push(source);
        }
    }
}
