//! Responses whose bodies are made while they are sent: the driver gives the session one piece
//! after the other.

use bytes::Bytes;

use super::frame::ErrorCode;
use super::session::Session;
use super::stream::StreamId;
use crate::response::Body;

/// State of a response whose body is made piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceDemand {
    /// The stream is gone, or its response has no body.
    Gone,
    /// The piece before is not sent.
    Later,
    /// A piece can be given.
    Now,
}

impl Session {
    /// Tells if the response to a stream can take its next piece.
    pub(crate) fn piece_demand(&self, stream: StreamId) -> PieceDemand {
        match self.streams.get(stream.0) {
            Some(stream) if stream.is_reset || !stream.response.is_open => PieceDemand::Gone,
            Some(stream) if stream.response.left() > 0 => PieceDemand::Later,
            Some(_) => PieceDemand::Now,
            None => PieceDemand::Gone,
        }
    }

    /// The next piece of a response that [demands](Session::piece_demand) one.
    pub(crate) fn give_piece(&mut self, stream: StreamId, piece: Bytes) {
        if let Some(stream) = self.streams.get_mut(stream.0)
            && !stream.is_reset
        {
            let reply = &mut stream.response;
            debug_assert_eq!(reply.left(), 0, "the piece before is not sent");
            reply.before = reply.sent;
            reply.body = Body::Bytes(piece);
        }
    }

    /// All pieces of a response were given.
    pub(crate) fn end_pieces(&mut self, stream: StreamId) {
        if let Some(stream) = self.streams.get_mut(stream.0) {
            stream.response.is_open = false;
        }
    }

    /// A response has no further piece, and is not complete: the client hears of it.
    pub(crate) fn cut_pieces(&mut self, stream: StreamId) {
        if let Some(at) = self.streams.place(stream.number())
            && !self.streams.at(at).is_reset
        {
            // Its handler is gone, so there is no event.
            let _ = self.reset_at(at, ErrorCode::InternalError);
        }
    }
}
