//! One connection of the client: its socket, its requests in flight, and its unsent bytes.

mod streams;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::body::{self, BodySink};
use crate::http2::Http2;
use crate::outcome::{FailureKind, Fault};
use crate::recorder::Pending;
use crate::request::Requests;
use crate::response::{CompleteResponse, Malformed, Parser};
use crate::sink::Discard;
use crate::transport::{BandwidthPace, TlsSession, Turn, Wire};
use crate::{LoadPlan, RequestPlan, TargetPlan};
use base_clock::{MS, Nanos};

/// The longest pause between attempts when attempts fail in a row.
const LONGEST_PAUSE: Nanos = 250 * MS;

/// A place for one connection; the socket in it may be replaced many times.
pub(crate) struct ClientConnection {
    pub(crate) state: ConnectionState,
    pub(crate) parser: Parser,
    /// HTTP/2, once the socket is open; then the parser is not used.
    pub(crate) http2: Option<Box<Http2>>,
    /// Requests issued on this connection, in the order of their responses; over HTTP/2, the
    /// requests without a stream.
    pub(crate) pending: VecDeque<Pending>,
    /// Rendered requests that the socket has not taken, from `written` on.
    out: Vec<u8>,
    written: usize,
    /// Requests at the back of `pending` whose first byte has not been offered to the socket.
    unsent: usize,
    /// True if epoll reports room to write.
    pub(crate) watches_room: bool,
    /// Since when this connection has had room for a request.
    pub(crate) free_at: Nanos,
    /// Requests that may still be put on this connection before it has served its number.
    pub(crate) left: u64,
    /// True if the open loop lists this connection among those with room.
    pub(crate) listed: bool,
    /// True if an attempt to open the connection was made.
    pub(crate) attempted: bool,
    /// True if it was ever open.
    pub(crate) established: bool,
    /// Attempts since the last response.
    failed_attempts: u32,
    /// Takes the bodies of responses, where they are checked.
    sink: Option<Box<BodySink>>,
    /// Limits of bandwidth.
    pub(crate) pace: Option<Box<BandwidthPace>>,
    /// True if epoll does not watch for input, because the line is busy.
    pub(crate) holds_input: bool,
}

pub(crate) enum ConnectionState {
    /// Not used: the run has not begun, or is over.
    Idle,
    /// Pausing until this time after fruitless attempts.
    Paused(Nanos),
    /// Waiting for the server to accept, since this time.
    Connecting(OwnedFd, Nanos),
    /// In the TLS handshake, and the time at which connecting began.
    Shaking(Box<TlsSession>, Nanos),
    /// Open.
    Open(Wire),
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The socket took them.
    All,
    /// The socket takes more when it has room.
    NeedsRoom,
    /// The line takes more at this time.
    At(Nanos),
}

impl ClientConnection {
    pub(crate) fn new() -> Self {
        Self {
            state: ConnectionState::Idle,
            parser: Parser::new(),
            http2: None,
            pending: VecDeque::new(),
            out: Vec::new(),
            written: 0,
            unsent: 0,
            watches_room: false,
            free_at: 0,
            left: u64::MAX,
            listed: false,
            attempted: false,
            established: false,
            failed_attempts: 0,
            sink: None,
            pace: None,
            holds_input: false,
        }
    }

    /// A connection as the plan configures it.
    pub(crate) fn of(target: &TargetPlan, load: &LoadPlan, requests: &Requests) -> Self {
        Self {
            sink: requests
                .has_checks()
                .then(|| Box::new(BodySink::new(body::room(load.connections)))),
            pace: BandwidthPace::of(target).map(Box::new),
            ..Self::new()
        }
    }

    /// Hands bytes of the socket to the parser, as [`Parser::feed`].
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        requests: &Requests,
    ) -> Result<(usize, Option<CompleteResponse>), Malformed> {
        let Some(sink) = &mut self.sink else {
            return self.parser.feed(bytes, requests.head, &mut Discard);
        };
        if self.parser.is_at_start()
            && let Some(request) = self.pending.front()
        {
            sink.begin(requests.checks(request.index));
        }
        self.parser.feed(bytes, requests.head, &mut **sink)
    }

    /// Judges a complete response; the error says why it is not good.
    pub(crate) fn judge(
        &mut self,
        request: &Pending,
        answer: &CompleteResponse,
        plan: &RequestPlan,
        requests: &Requests,
        now: Nanos,
    ) -> Result<(), Fault> {
        let end = match &mut self.sink {
            _ if !plan.is_good(answer.status) => Err((FailureKind::of_status(answer.status), None)),
            Some(sink) => sink
                .judge(requests.checks(request.index))
                .map_err(|why| (FailureKind::BadBody, Some(why))),
            None => Ok(()),
        };
        self.count_for_pace(request, answer, end.is_ok(), now);
        end
    }

    /// A complete response counts for the pace of a connection with limited bandwidth.
    pub(crate) fn count_for_pace(
        &mut self,
        request: &Pending,
        answer: &CompleteResponse,
        good: bool,
        now: Nanos,
    ) {
        if let Some(pace) = &mut self.pace {
            pace.answered(request, answer.bytes, good, now);
        }
    }

    /// True if it kept SPECweb99's pace; `None` if its bandwidth is not limited.
    pub(crate) fn conforms(&self) -> Option<bool> {
        self.pace.as_ref().map(|pace| pace.conforms())
    }

    /// Returns the reason for which the connection waits, if not for a response or for the
    /// connection to open.
    pub(crate) fn waiting_reason(&self) -> Option<&'static str> {
        match self.state {
            ConnectionState::Shaking(..) => Some("the TLS handshake did not end in time"),
            ConnectionState::Open(_) if self.awaits_preface() => {
                Some("the SETTINGS of HTTP/2 did not come in time")
            }
            _ => None,
        }
    }

    /// True if the connection is being opened.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(
            self.state,
            ConnectionState::Connecting(..) | ConnectionState::Shaking(..)
        ) || self.awaits_preface()
    }

    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            ConnectionState::Connecting(socket, _) => Some(socket.as_fd()),
            ConnectionState::Shaking(session, _) => Some(session.as_fd()),
            ConnectionState::Open(wire) => Some(wire.as_fd()),
            ConnectionState::Idle | ConnectionState::Paused(_) => None,
        }
    }

    /// Appends a request; it is sent by the next [`flush`](Self::flush).
    pub(crate) fn push(&mut self, request: Pending, bytes: &[u8]) {
        self.pending.push_back(request);
        self.out.extend_from_slice(bytes);
        self.unsent += 1;
        self.left = self.left.saturating_sub(1);
    }

    /// Replaces the socket: the new one may serve `number` requests, pending requests included.
    pub(crate) fn renew(&mut self, number: Option<u64>) {
        let pending = self.pending.len() as u64;
        self.left = number.map_or(u64::MAX, |number| number.saturating_sub(pending));
    }

    /// Writes the unsent bytes to the socket, as far as it takes them.
    pub(crate) fn flush(&mut self, now: Nanos) -> Result<Flushed, Errno> {
        let ConnectionState::Open(wire) = &mut self.state else {
            return Ok(Flushed::All);
        };
        let mut line = self.pace.as_mut().and_then(|pace| pace.up.as_mut());
        let first = self.pending.len() - self.unsent;
        for request in self.pending.range_mut(first..) {
            if request.sent_at == 0 {
                request.sent_at = now;
            }
        }
        self.unsent = 0;
        while self.written < self.out.len() {
            let mut rest = &self.out[self.written..];
            if let Some(line) = &mut line {
                match line.ask(rest.len(), now) {
                    Turn::Now(count) => rest = &rest[..count.min(rest.len())],
                    Turn::At(at) => return Ok(Flushed::At(at)),
                }
            }
            match wire.send(rest) {
                Ok(count) => {
                    self.written += count;
                    if let Some(line) = &mut line {
                        line.passed(count);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Flushed::NeedsRoom),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(if wire.drain()? {
            Flushed::All
        } else {
            Flushed::NeedsRoom
        })
    }

    /// Stops writing: the socket takes no more, but pending requests may still be answered.
    pub(crate) fn stop_writing(&mut self) {
        self.out.clear();
        self.written = 0;
        if let Some(http2) = &mut self.http2 {
            http2.stop_writing();
        }
    }

    /// A place for a request became free at `now`. If other places were free before, the connection
    /// had room since then: a request that was due and not sent waited for the client, not for this
    /// place.
    pub(crate) fn note_free_place(&mut self, now: Nanos) {
        if !self.listed {
            self.free_at = now;
        }
    }

    /// A response arrived: the server works, so the next attempt needs no pause.
    pub(crate) fn reset_attempts(&mut self) {
        self.failed_attempts = 0;
    }

    /// Pause after another failed attempt. The first failure costs no pause, later ones 1 ms and
    /// doubling, so a server that is down costs neither the client's CPU nor all source ports.
    pub(crate) fn pause(&mut self) -> Nanos {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        match self.failed_attempts {
            1 => 0,
            n => (MS << (n - 2).min(10)).min(LONGEST_PAUSE),
        }
    }

    /// Drops the socket and the unsent bytes. Pending requests stay; [`rewind`](Self::rewind)
    /// writes them again.
    pub(crate) fn close(&mut self) {
        self.return_to_pending();
        self.state = ConnectionState::Idle;
        self.parser = Parser::new();
        self.out.clear();
        self.written = 0;
        self.watches_room = false;
        self.holds_input = false;
        if let Some(pace) = &mut self.pace {
            pace.reset();
        }
        self.unsent = self.pending.len();
    }

    /// Makes everything pending ready to be written to a new socket.
    pub(crate) fn rewind<'a>(&mut self, bytes: impl Fn(u32) -> &'a [u8]) {
        self.out.clear();
        self.written = 0;
        for request in &self.pending {
            self.out.extend_from_slice(bytes(request.index));
        }
        self.unsent = self.pending.len();
    }

    /// Since when the connection waits for its first event: to be accepted, or for the oldest
    /// response. A request that was not sent has waited since it was due, so every wait has an end.
    pub(crate) fn waits_since(&self) -> Option<Nanos> {
        match &self.state {
            ConnectionState::Connecting(_, since) | ConnectionState::Shaking(_, since) => {
                Some(*since)
            }
            ConnectionState::Open(_) if let Some(http2) = &self.http2 => http2.opening_since(),
            ConnectionState::Open(_) => self
                .pending
                .front()
                .map(|request| request.sent_at.max(request.due)),
            ConnectionState::Idle | ConnectionState::Paused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_an_answer_ends_them() {
        let mut connection = ClientConnection::new();
        let pauses: Vec<Nanos> = (0..12).map(|_| connection.pause()).collect();
        assert_eq!(pauses[..4], [0, MS, 2 * MS, 4 * MS]);
        assert_eq!(pauses[11], LONGEST_PAUSE);
        connection.reset_attempts();
        assert_eq!(connection.pause(), 0);
    }

    #[test]
    fn an_answer_makes_room_only_where_there_was_none() {
        let mut connection = ClientConnection::new();
        connection.note_free_place(5);
        assert_eq!(connection.free_at, 5);
        // In the list of places with room.
        connection.listed = true;
        connection.note_free_place(9);
        assert_eq!(connection.free_at, 5);
    }

    #[test]
    fn pending_requests_can_be_rewritten_and_keep_their_times() {
        let mut connection = ClientConnection::new();
        let request = Pending {
            index: 0,
            class: 0,
            measured: true,
            due: 3,
            free_at: 3,
            sent_at: 5,
            pause: 0,
        };
        connection.push(request, b"abc");
        connection.close();
        assert!(connection.out.is_empty());
        connection.rewind(|_| b"abc");
        assert_eq!(connection.out, b"abc");
        assert_eq!(connection.pending[0].sent_at, 5);
    }
}
