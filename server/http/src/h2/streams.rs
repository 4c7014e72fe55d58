//! The streams of a connection, by number, and what is remembered of those that are closed.

use super::frame::MAX_31_BITS;
use super::stream::Http2Stream;

/// How a stream was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosedBy {
    /// By the last frames of both sides.
    End,
    /// By RST_STREAM of the client.
    Client,
    /// By RST_STREAM of ours, which the client may not have seen yet.
    Us,
}

/// State of the stream of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamState {
    /// The client has not opened it.
    Idle,
    /// It is open, at this place of the table.
    Open(usize),
    /// It was closed; how is known only of the last ones.
    Closed(Option<ClosedBy>),
}

/// Closed streams that are remembered.
const REMEMBERED: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Streams {
    /// In the order of their numbers, because they are opened in that order.
    // Boxed, so that removing one moves pointers.
    #[allow(clippy::vec_box)]
    open: Vec<Box<Http2Stream>>,
    /// The highest number that the client has used.
    last: u32,
    closed: Vec<(u32, ClosedBy)>,
    next_closed: usize,
}

impl Streams {
    /// Streams that are open, or whose handlers are running.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The highest number that the client has used; 0 if none.
    pub(super) const fn last(&self) -> u32 {
        self.last
    }

    /// The client uses this number, and so no lower one for a new stream any more (section 5.1.1).
    pub(super) fn use_number(&mut self, id: u32) {
        debug_assert!(id > self.last && id <= MAX_31_BITS);
        self.last = id;
    }

    pub(super) fn push(&mut self, stream: Box<Http2Stream>) {
        debug_assert!(self.open.last().is_none_or(|last| last.id < stream.id));
        self.open.push(stream);
    }

    pub(super) fn state(&self, id: u32) -> StreamState {
        // A client has odd numbers; we open no stream.
        if id > self.last || id.is_multiple_of(2) {
            return StreamState::Idle;
        }
        match self.place(id) {
            Some(at) if !self.open[at].is_reset => StreamState::Open(at),
            _ => {
                let mut closed = self.closed.iter();
                let known = closed.find(|(closed, _)| *closed == id);
                StreamState::Closed(known.map(|(_, by)| *by))
            }
        }
    }

    /// The place of a stream that is open, or whose handler is running.
    pub(super) fn place(&self, id: u32) -> Option<usize> {
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Http2Stream> {
        self.place(id).map(|at| &*self.open[at])
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Http2Stream> {
        self.place(id).map(|at| &mut *self.open[at])
    }

    pub(super) fn at(&mut self, at: usize) -> &mut Http2Stream {
        &mut self.open[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Http2Stream> {
        self.open.iter().map(|stream| &**stream)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Http2Stream> {
        self.open.iter_mut().map(|stream| &mut **stream)
    }

    pub(super) fn remove(&mut self, at: usize) -> Box<Http2Stream> {
        self.open.remove(at)
    }

    pub(super) fn remember(&mut self, id: u32, by: ClosedBy) {
        if self.closed.len() < REMEMBERED {
            self.closed.push((id, by));
            return;
        }
        self.closed[self.next_closed] = (id, by);
        self.next_closed = (self.next_closed + 1) % REMEMBERED;
    }

    /// Gives back memory; forgets how streams were closed, which matters only for frames that were
    /// on their way.
    pub(super) fn shrink(&mut self) {
        self.open.shrink_to_fit();
        self.closed = Vec::new();
        self.next_closed = 0;
    }

    /// Bytes of memory beside the struct itself.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.open.capacity() * size_of::<Box<Http2Stream>>()
            + self.open.len() * size_of::<Http2Stream>()
            + self.closed.capacity() * size_of::<(u32, ClosedBy)>()
    }
}
