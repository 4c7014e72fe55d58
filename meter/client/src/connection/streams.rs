//! Connections with streams: requests are pending until they have a stream, and end in any order.

use rustix::io::Errno;

use super::{ClientConnection, ConnectionState, Flushed};
use crate::http2::StreamEnd;
use crate::outcome::FailureKind;
use crate::request::Requests;
use base_clock::Nanos;

impl ClientConnection {
    /// True if the server's part of the HTTP/2 preface is still missing.
    pub(crate) fn awaits_preface(&self) -> bool {
        let http2 = self.http2.as_ref();
        http2.is_some_and(|http2| http2.opening_since().is_some())
    }

    /// Requests issued on this connection and not ended.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.pending.len() + self.http2.as_ref().map_or(0, |http2| http2.in_flight())
    }

    /// True if an open connection takes one more request, where `depth` are wanted at a time.
    #[inline]
    pub(crate) fn has_room_for_request(&self, depth: usize) -> bool {
        let depth = self.http2.as_ref().map_or(depth, |http2| http2.room(depth));
        self.in_flight() < depth
    }

    /// Makes all requests on streams pending again, because the connection is given up.
    pub(crate) fn return_to_pending(&mut self) {
        if let Some(http2) = self.http2.take() {
            self.pending.extend(http2.into_requests());
        }
    }

    /// Puts pending requests on streams, as far as the server allows, and offers the bytes to the
    /// socket.
    pub(crate) fn flush_streams(
        &mut self,
        requests: &Requests,
        depth: usize,
        now: Nanos,
    ) -> Result<Flushed, Errno> {
        let (ConnectionState::Open(wire), Some(http2)) = (&mut self.state, &mut self.http2) else {
            return Ok(Flushed::All);
        };
        while http2.in_flight() < http2.room(depth)
            && let Some(request) = self.pending.pop_front()
        {
            if let Err(request) = http2.send(request, requests, now) {
                self.pending.push_front(request);
                break;
            }
        }
        self.unsent = 0;
        Ok(if http2.flush(wire)? {
            Flushed::All
        } else {
            Flushed::NeedsRoom
        })
    }

    /// Gives up requests sent over HTTP/2 at `before` or earlier; the connection itself may be
    /// closed already.
    pub(crate) fn expire_streams(&mut self, before: Nanos, ends: &mut Vec<StreamEnd>) {
        if let Some(http2) = &mut self.http2 {
            http2.expire(before, ends);
        }
        self.pending.retain(|request| {
            let is_late = request.sent_at != 0 && request.sent_at <= before;
            if is_late {
                ends.push(StreamEnd::Failed(*request, (FailureKind::Timeout, None)));
            }
            !is_late
        });
    }
}
