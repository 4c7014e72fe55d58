//! One connection of the client: its socket, what is in flight on it, what is still to be written.

mod streams;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::body::{self, BodySink};
use crate::http2::Http2;
use crate::outcome::{Fault, Kind};
use crate::recorder::Pending;
use crate::request::Requests;
use crate::response::{Answer, Malformed, Parser};
use crate::sink::Discard;
use crate::transport::{Pace, Session, Turn, Wire};
use crate::{LoadPlan, RequestPlan, TargetPlan};
use base_clock::{MS, Nanos};

/// The longest pause before another attempt, when attempts fail in a row.
const LONGEST_PAUSE: Nanos = 250 * MS;

/// A place for one connection; the socket in it may be replaced many times.
pub(crate) struct Connection {
    pub(crate) state: State,
    pub(crate) parser: Parser,
    /// HTTP/2, once the socket is open; the parser has nothing to do then.
    pub(crate) http2: Option<Box<Http2>>,
    /// Requests issued on this connection, in the order of their answers; over HTTP/2 those that have no stream.
    pub(crate) pending: VecDeque<Pending>,
    /// Rendered requests that the socket has not taken, from `written` on.
    out: Vec<u8>,
    written: usize,
    /// Requests at the back of `pending` whose first byte has not been offered to the socket.
    unsent: usize,
    /// Whether epoll watches for room to write.
    pub(crate) watches_room: bool,
    /// Since when the free places of this connection have been free.
    pub(crate) free_at: Nanos,
    /// Requests that may still be put on this connection before it has served its number.
    pub(crate) left: u64,
    /// Whether an open loop has it in its list of places with room.
    pub(crate) listed: bool,
    /// Whether anybody tried to open it.
    pub(crate) attempted: bool,
    /// Whether it was ever open.
    pub(crate) established: bool,
    /// Attempts since the last answer.
    fruitless: u32,
    /// Takes the bodies of answers, where they are checked.
    sink: Option<Box<BodySink>>,
    /// Limits of bandwidth.
    pub(crate) pace: Option<Box<Pace>>,
    /// Whether epoll does not watch for input, because the line is busy.
    pub(crate) holds_input: bool,
}

/// What the place is doing.
pub(crate) enum State {
    /// Nothing: the run has not begun, or is over.
    Idle,
    /// Pausing until this time after fruitless attempts.
    Paused(Nanos),
    /// Waiting for the server to accept, since this time.
    Connecting(OwnedFd, Nanos),
    /// In the TLS handshake; since when it was connecting.
    Shaking(Box<Session>, Nanos),
    /// Open.
    Open(Wire),
}

/// What became of the bytes that were to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The socket took them.
    All,
    /// The socket takes more when it has room.
    NeedsRoom,
    /// The line takes more at this time.
    At(Nanos),
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Idle,
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
            fruitless: 0,
            sink: None,
            pace: None,
            holds_input: false,
        }
    }

    /// A place as the plan wants it.
    pub(crate) fn of(target: &TargetPlan, load: &LoadPlan, requests: &Requests) -> Self {
        Self {
            sink: requests
                .has_checks()
                .then(|| Box::new(BodySink::new(body::room(load.connections)))),
            pace: Pace::of(target).map(Box::new),
            ..Self::new()
        }
    }

    /// Hands bytes of the socket to the parser, as [`Parser::feed`].
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        requests: &Requests,
    ) -> Result<(usize, Option<Answer>), Malformed> {
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

    /// Whether a complete answer is a good one; if not, why.
    pub(crate) fn judge(
        &mut self,
        request: &Pending,
        answer: &Answer,
        plan: &RequestPlan,
        requests: &Requests,
        now: Nanos,
    ) -> Result<(), Fault> {
        let end = match &mut self.sink {
            _ if !plan.is_good(answer.status) => Err((Kind::of_status(answer.status), None)),
            Some(sink) => sink
                .judge(requests.checks(request.index))
                .map_err(|why| (Kind::BadBody, Some(why))),
            None => Ok(()),
        };
        self.count_for_pace(request, answer, end.is_ok(), now);
        end
    }

    /// A complete answer counts for the pace of a connection with limited bandwidth.
    pub(crate) fn count_for_pace(
        &mut self,
        request: &Pending,
        answer: &Answer,
        good: bool,
        now: Nanos,
    ) {
        if let Some(pace) = &mut self.pace {
            pace.answered(request, answer.bytes, good, now);
        }
    }

    /// Whether it kept SPECweb99's pace; none if its bandwidth is not limited.
    pub(crate) fn conforms(&self) -> Option<bool> {
        self.pace.as_ref().map(|pace| pace.conforms())
    }

    /// What it waits for, where that is more than an answer or an open connection.
    pub(crate) fn awaits(&self) -> Option<&'static str> {
        match self.state {
            State::Shaking(..) => Some("the TLS handshake did not end in time"),
            State::Open(_) if self.is_greeting() => {
                Some("the SETTINGS of HTTP/2 did not come in time")
            }
            _ => None,
        }
    }

    /// Whether it is on its way to be open.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state, State::Connecting(..) | State::Shaking(..)) || self.is_greeting()
    }

    /// The socket, if there is one.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Connecting(socket, _) => Some(socket.as_fd()),
            State::Shaking(session, _) => Some(session.as_fd()),
            State::Open(wire) => Some(wire.as_fd()),
            State::Idle | State::Paused(_) => None,
        }
    }

    /// Appends a request; it is sent by the next [`flush`](Self::flush).
    pub(crate) fn push(&mut self, request: Pending, bytes: &[u8]) {
        self.pending.push_back(request);
        self.out.extend_from_slice(bytes);
        self.unsent += 1;
        self.left = self.left.saturating_sub(1);
    }

    /// A new socket takes the place of the last: it may serve `number` requests, what is pending among them.
    pub(crate) fn renew(&mut self, number: Option<u64>) {
        let pending = self.pending.len() as u64;
        self.left = number.map_or(u64::MAX, |number| number.saturating_sub(pending));
    }

    /// Offers what is to be written to the socket.
    pub(crate) fn flush(&mut self, now: Nanos) -> Result<Flushed, Errno> {
        let State::Open(wire) = &mut self.state else {
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

    /// The socket takes no more: what is pending may still be answered.
    pub(crate) fn stop_writing(&mut self) {
        self.out.clear();
        self.written = 0;
        if let Some(http2) = &mut self.http2 {
            http2.stop_writing();
        }
    }

    /// A place on it has become free. Where there was room before, it has been free since then: a request that was due and not
    /// sent waited for the client, not for this.
    pub(crate) fn freed(&mut self, now: Nanos) {
        if !self.listed {
            self.free_at = now;
        }
    }

    /// An answer has come: the server is well.
    pub(crate) fn fruitful(&mut self) {
        self.fruitless = 0;
    }

    /// Another attempt has failed: how long to pause before the next. The first one is free, then 1 ms and doubling,
    /// so that a server that is down costs neither the client's CPU nor all source ports.
    pub(crate) fn pause(&mut self) -> Nanos {
        self.fruitless = self.fruitless.saturating_add(1);
        match self.fruitless {
            1 => 0,
            n => (MS << (n - 2).min(10)).min(LONGEST_PAUSE),
        }
    }

    /// Forgets the socket and what was to be written. What is pending stays, and can be written again by
    /// [`rewind`](Self::rewind).
    pub(crate) fn close(&mut self) {
        self.recall();
        self.state = State::Idle;
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

    /// Since when the connection waits for what it waits for first: to be accepted, or the oldest answer. A request that
    /// was not sent has waited since it was due, so that none waits without end.
    pub(crate) fn waits_since(&self) -> Option<Nanos> {
        match &self.state {
            State::Connecting(_, since) | State::Shaking(_, since) => Some(*since),
            State::Open(_) if let Some(http2) = &self.http2 => http2.opening_since(),
            State::Open(_) => self
                .pending
                .front()
                .map(|request| request.sent_at.max(request.due)),
            State::Idle | State::Paused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_an_answer_ends_them() {
        let mut connection = Connection::new();
        let pauses: Vec<Nanos> = (0..12).map(|_| connection.pause()).collect();
        assert_eq!(pauses[..4], [0, MS, 2 * MS, 4 * MS]);
        assert_eq!(pauses[11], LONGEST_PAUSE);
        connection.fruitful();
        assert_eq!(connection.pause(), 0);
    }

    #[test]
    fn an_answer_makes_room_only_where_there_was_none() {
        let mut connection = Connection::new();
        connection.freed(5);
        assert_eq!(connection.free_at, 5);
        // In the list of places with room.
        connection.listed = true;
        connection.freed(9);
        assert_eq!(connection.free_at, 5);
    }

    #[test]
    fn what_is_pending_can_be_written_again_and_keeps_its_times() {
        let mut connection = Connection::new();
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
