//! Bodies that the driver takes as they arrive: it opens the window of the stream when it has room
//! for more.

use base_clock::Boottime;
use bytes::BytesMut;

use super::frame::push_window_update;
use super::session::{Session, SessionEvent};
use super::stream::{Http2Stream, RequestPart, StreamId};
use crate::h1::Refusal;

impl Session {
    /// Says how many bytes the body may have whose head was [announced](SessionEvent::Body); the
    /// refusal if it is to be longer.
    pub(crate) fn accept_body(&mut self, stream: StreamId, limit: usize) -> Option<SessionEvent> {
        let at = self.streams.place(stream.number())?;
        self.accept_body_at(at, limit)
    }

    /// Returns whether the request had a body, which was announced and accepted.
    pub(crate) fn had_body(&self, stream: StreamId) -> bool {
        let stream = self.streams.get(stream.number());
        stream.is_some_and(|stream| stream.body_limit > 0)
    }

    pub(super) fn accept_body_at(&mut self, at: usize, limit: usize) -> Option<SessionEvent> {
        let stream = self.streams.at(at);
        stream.body_limit = limit;
        let is_too_long = stream
            .content_length
            .is_some_and(|length| length > limit as u64);
        if is_too_long {
            return self.refuse_at(at, Refusal::BodyTooLarge);
        }
        None
    }

    /// From now on the driver takes the body with [`Session::give_body`].
    pub(crate) fn set_streamed(&mut self, stream: StreamId) {
        if let Some(stream) = self.streams.get_mut(stream.number()) {
            stream.is_streamed = true;
        }
    }

    /// Drops the rest of the body; the driver responds now.
    pub(crate) fn reject_body(&mut self, stream: StreamId) {
        if let Some(at) = self.streams.place(stream.number())
            && !self.streams.at(at).is_reset
        {
            let _ = self.refuse_at(at, Refusal::BodyTooLarge);
        }
    }

    /// Lets `take` have what has arrived of a body; it is gone from here, unless that fails.
    ///
    /// # Errors
    /// Those of `take`.
    pub(crate) fn give_body<E>(
        &mut self,
        stream: StreamId,
        take: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(stream) = self.streams.get_mut(stream.number()) else {
            return Ok(());
        };
        if stream.body.is_empty() {
            return Ok(());
        }
        take(&stream.body)?;
        stream.given += stream.body.len();
        stream.body = BytesMut::new();
        Ok(())
    }

    /// There is room for more of a streamed body: the client may send, and its clock runs.
    pub(crate) fn resume_body(&mut self, stream: StreamId, now: Boottime) {
        let Some(stream) = self.streams.get_mut(stream.number()) else {
            return;
        };
        if let Some(since) = stream.paused_since.take() {
            stream.receiving.paused(now.since(since));
        }
        if stream.part == RequestPart::Body
            && !stream.is_reset
            && let Some(increment) = stream.receive_window.renew(stream.expected())
        {
            push_window_update(&mut self.control, stream.id, increment);
        }
    }

    /// There is no room for more: the clock of the client stands still.
    pub(crate) fn pause_body(&mut self, stream: StreamId, now: Boottime) {
        if let Some(stream) = self.streams.get_mut(stream.number()) {
            stream.paused_since.get_or_insert(now);
        }
    }
}

impl Http2Stream {
    /// True if the client is to send more of the body, so that its clock runs.
    pub(super) fn awaits_body(&self) -> bool {
        self.part == RequestPart::Body && self.paused_since.is_none()
    }
}
