//! What requests and responses of a connection hold, for the budgets of the driver, and how long
//! bodies leave memory.

use base_clock::Boottime;
use bytes::Bytes;

use super::receive::PendingBlock;
use super::session::{Session, SessionEvent};
use super::stream::{Http2Stream, RequestPart, StreamId};
use super::streams::StreamState;
use crate::h1::Refusal;
use crate::response::Body;

/// Bytes that a stream holds for a request that waits for its body or has a handler with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamHolding {
    /// In memory.
    pub(crate) memory: usize,
    /// The part of the body that is [moved](Session::move_body).
    pub(crate) moved: usize,
    /// True if the request is incomplete, so that the stream can be ended.
    pub(crate) may_end: bool,
}

impl Session {
    /// The next stream whose holding is another than what is [counted](Session::set_counted); `at`
    /// is where the search goes on, and 0 in the beginning. The streams that have ended are shown
    /// by [`Session::next_ended`].
    pub(crate) fn next_uncounted(&mut self, at: &mut usize) -> Option<(StreamId, StreamHolding)> {
        while *at < self.streams.len() {
            let stream = self.streams.at(*at);
            *at += 1;
            let holding = stream.holding();
            if holding != stream.counted {
                return Some((StreamId(stream.id), holding));
            }
        }
        None
    }

    /// Sets the bytes that the driver counts for a stream from now on; returns when the stream
    /// began.
    pub(crate) fn set_counted(
        &mut self,
        stream: StreamId,
        holding: StreamHolding,
    ) -> Option<Boottime> {
        let stream = self.streams.get_mut(stream.number())?;
        stream.counted = holding;
        Some(stream.receiving.start())
    }

    /// The next stream with more than `len` bytes of an incomplete body in memory; `at` as for
    /// [`Session::next_uncounted`].
    pub(crate) fn next_body_above(&mut self, len: usize, at: &mut usize) -> Option<StreamId> {
        while *at < self.streams.len() {
            let stream = self.streams.at(*at);
            *at += 1;
            if stream.part == RequestPart::Body && stream.body.len() > len && !stream.is_streamed {
                return Some(StreamId(stream.id));
            }
        }
        None
    }

    /// Bytes of the body of a stream that are in memory, and were not given to a handler.
    pub(crate) fn body_in_memory(&self, stream: StreamId) -> usize {
        let stream = self.streams.get(stream.number());
        stream.map_or(0, |stream| stream.body.len())
    }

    /// Lets `store` have the part of a body that is in memory. If that succeeds, the part is gone
    /// from here, and counts as moved.
    ///
    /// # Errors
    /// Those of `store`.
    pub(crate) fn move_body<E>(
        &mut self,
        stream: StreamId,
        store: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(stream) = self.streams.get_mut(stream.number()) else {
            return Ok(());
        };
        store(&stream.body)?;
        stream.moved += stream.body.len();
        stream.body = bytes::BytesMut::new();
        Ok(())
    }

    /// The whole body of a complete request, which [`Session::request`] gives to the handler.
    pub(crate) fn set_whole_body(&mut self, stream: StreamId, body: Bytes) {
        if let Some(stream) = self.streams.get_mut(stream.number()) {
            stream.whole_body = Some(body);
        }
    }

    /// Refuses a request that is incomplete.
    pub(crate) fn refuse(&mut self, stream: StreamId, refusal: Refusal) -> Option<SessionEvent> {
        match self.streams.state(stream.number()) {
            StreamState::Open(at) if self.streams.at(at).part == RequestPart::Body => {
                self.refuse_at(at, refusal)
            }
            _ => None,
        }
    }

    /// Bytes of memory that the connection holds beside its [streams](Session::next_uncounted):
    /// what it waits to see the end of, heads of requests whose responses are not sent, and all of
    /// these responses but the largest. A body that is shared with a cache is the cache's.
    pub(crate) fn memory_beside_requests(&self) -> usize {
        let block = self.block.as_ref().map_or(0, PendingBlock::memory);
        let mut held = self.partial.capacity() + self.control.capacity() + block;
        let mut largest = 0;
        for stream in self.streams.iter() {
            let response = stream.response_memory();
            largest = largest.max(response);
            held += response;
            if stream.holding() == StreamHolding::default() {
                held += stream.memory();
            }
        }
        held - largest
    }
}

impl Http2Stream {
    /// The struct and its head.
    fn memory(&self) -> usize {
        size_of::<Self>() + self.head.memory() + self.block.capacity()
    }

    fn response_memory(&self) -> usize {
        let body = match &self.response.body {
            Body::Bytes(body) if body.is_unique() => body.len(),
            _ => 0,
        };
        self.response.block.capacity() + body
    }

    fn holding(&self) -> StreamHolding {
        match self.part {
            _ if self.is_reset => StreamHolding::default(),
            RequestPart::Body => StreamHolding {
                memory: self.memory() + self.body.capacity(),
                moved: self.moved,
                may_end: true,
            },
            RequestPart::Complete if self.has_handler && self.lent + self.moved > 0 => {
                StreamHolding {
                    memory: self.memory() + self.lent,
                    moved: self.moved,
                    may_end: false,
                }
            }
            _ => StreamHolding::default(),
        }
    }
}
