//! The end of a connection and the deadlines before it (RFC 9113 sections 6.8 and 9.1).

use base_clock::Boottime;

use super::frame::{ErrorCode, FrameKind, MAX_31_BITS, push_frame, push_go_away};
use super::session::{Lifetime, Session, SessionEvent};
use crate::h1::Refusal;
use crate::limits::{GO_AWAY_GRACE, Limits};

/// The payload of the PING that goes with the first GOAWAY. Its answer says that the client has
/// heard of the end.
pub(super) const GO_AWAY_PING: [u8; 8] = *b"go away?";

impl Session {
    /// Begins the end: the client is told at once that it should use another connection. Streams
    /// that are already on the wire are still answered; after a round trip, or a grace, the client
    /// is told which was the last.
    pub(crate) fn shut_down(&mut self, now: Boottime) {
        if self.is_open() {
            self.lifetime = Lifetime::Announced { at: now };
            push_go_away(&mut self.control, MAX_31_BITS, ErrorCode::NoError);
            push_frame(&mut self.control, FrameKind::Ping, 0, 0, &GO_AWAY_PING);
        }
    }

    /// True if the end has not begun.
    pub(crate) fn is_open(&self) -> bool {
        self.lifetime == Lifetime::Open
    }

    /// True if the client has opened a stream.
    pub(crate) const fn has_begun(&self) -> bool {
        self.streams.last() > 0
    }

    /// Ends the connection now. All streams are closed.
    pub(crate) fn close(&mut self, error: ErrorCode) {
        self.fail(error);
    }

    /// The client has heard of the end, or had time to: no further stream is opened.
    pub(super) fn end_announced(&mut self) {
        if matches!(self.lifetime, Lifetime::Announced { .. }) {
            let last = self.streams.last();
            self.lifetime = Lifetime::Ending { last };
            push_go_away(&mut self.control, last, ErrorCode::NoError);
        }
    }

    /// True if all is written that ever will be: the driver closes the connection.
    pub(crate) fn is_over(&self) -> bool {
        let is_done = match self.lifetime {
            Lifetime::Failed(_) => true,
            Lifetime::Ending { .. } => self.streams.is_empty(),
            Lifetime::Open | Lifetime::Announced { .. } => false,
        };
        is_done && self.control.is_empty()
    }

    /// The connection is gone: the driver has closed it and dropped all handlers. Every stream that
    /// is left is [shown once more](Session::next_ended).
    pub(crate) fn abandon(&mut self) {
        self.fail(ErrorCode::NoError);
        while !self.streams.is_empty() {
            self.retire(0);
        }
        self.control.clear();
    }

    /// When [`Session::expire`] has something to do if nothing happens before. The idle timeout
    /// and that of the socket are the driver's.
    pub(crate) fn deadline(&self, limits: &Limits) -> Boottime {
        let mut deadline = match self.lifetime {
            Lifetime::Failed(_) => return Boottime::NEVER,
            Lifetime::Announced { at } => at.plus(GO_AWAY_GRACE),
            Lifetime::Open | Lifetime::Ending { .. } => Boottime::NEVER,
        };
        if let Some(since) = self.incomplete_since {
            deadline = deadline.min(since.plus(limits.head_timeout));
        }
        deadline = deadline.min(self.stall.deadline(limits.progress_timeout));
        for stream in self.streams.iter().filter(|stream| !stream.is_reset) {
            if stream.awaits_body() {
                deadline = deadline.min(stream.receiving.deadline(limits.progress_timeout));
            }
            deadline = deadline.min(stream.stall.deadline(limits.progress_timeout));
        }
        deadline
    }

    /// Does what is due at `now`; to be called until there is no event.
    pub(crate) fn expire(&mut self, limits: &Limits, now: Boottime) -> Option<SessionEvent> {
        if self.deadline(limits) > now {
            return None;
        }
        if let Lifetime::Announced { at } = self.lifetime
            && at.plus(GO_AWAY_GRACE) <= now
        {
            self.end_announced();
        }
        let timeout = limits.progress_timeout;
        let is_incomplete = self
            .incomplete_since
            .is_some_and(|since| since.plus(limits.head_timeout) <= now);
        // The window of the connection is shut, or opened drop by drop, for all streams.
        if is_incomplete || self.stall.deadline(timeout) <= now {
            self.fail(ErrorCode::EnhanceYourCalm);
            return None;
        }
        for at in (0..self.streams.len()).rev() {
            let stream = self.streams.at(at);
            if stream.is_reset {
                continue;
            }
            if stream.awaits_body() && stream.receiving.deadline(timeout) <= now {
                return self.refuse_at(at, Refusal::TooSlow);
            }
            if stream.stall.deadline(timeout) <= now
                && let Some(event) = self.reset_at(at, ErrorCode::Cancel)
            {
                return Some(event);
            }
        }
        None
    }
}
