//! What tests ask of a session and its streams beside what a driver asks.

use super::super::frame::ErrorCode;
use super::super::known::KnownResponse;
use super::super::priority::Priority;
use super::super::receive::PendingBlock;
use super::super::session::{Lifetime, Session};
use super::super::stream::{Http2Stream, StreamId};

impl Session {
    /// Returns the bytes of one stream; 0 if the stream is gone.
    pub(crate) fn body_bytes_held_by(&self, stream: StreamId) -> usize {
        let stream = self.streams.get(stream.0);
        stream.map_or(0, Http2Stream::body_bytes_held)
    }

    /// The number of streams that are open, or whose handlers are running.
    pub(crate) fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Bytes of memory that the connection takes.
    pub(crate) fn memory(&self) -> usize {
        let block = self.block.as_ref().map_or(0, PendingBlock::memory);
        size_of::<Self>()
            + self.hpack.memory()
            + self.partial.capacity()
            + self.control.capacity()
            + self.ended.capacity() * size_of::<Box<Http2Stream>>()
            + self.early_priorities.capacity() * size_of::<(u32, Priority)>()
            + self.streams.memory()
            + self.body_bytes_held()
            + block
    }

    /// Bytes of request bodies that are held in memory, of all streams.
    pub(crate) fn body_bytes_held(&self) -> usize {
        let streams = self.streams.iter();
        streams.map(Http2Stream::body_bytes_held).sum()
    }

    /// The error that has ended the connection, if one has.
    pub(crate) const fn error(&self) -> Option<ErrorCode> {
        match self.lifetime {
            Lifetime::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// True if [`Session::write`] would write something.
    pub(crate) fn wants_write(&self) -> bool {
        !self.control.is_empty()
            || (!self.has_failed()
                && self
                    .streams
                    .iter()
                    .any(|stream| stream.owes_continue || self.is_ready(stream)))
    }

    /// Gives up a stream. Its handler may go on; the driver says when it ends.
    pub(crate) fn reset(&mut self, stream: StreamId, error: ErrorCode) {
        if let Some(at) = self.streams.place(stream.number())
            && !self.streams.at(at).is_reset
        {
            self.reset_at(at, error);
        }
    }
}

impl Http2Stream {
    /// Bytes of the request's body that are held in memory: those that have arrived, until the
    /// handler has given its response.
    pub(crate) fn body_bytes_held(&self) -> usize {
        self.body.len() + self.lent
    }
}

/// Two events are equal if they give the same response.
impl PartialEq for KnownResponse {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
