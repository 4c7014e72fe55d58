//! Connections with streams: HTTP/2 is taken further by what comes, and its requests end one by one.
//!
//! The connection stays when a request fails: its stream is reset. After a GOAWAY, or a timeout in which nothing at all
//! came, it takes no more requests; when the last one on it has ended, another takes its place, with the requests that
//! the server has not looked at.

use super::Engine;
use crate::body;
use crate::connection::State;
use crate::http2::{End, Http2};
use crate::outcome::{Fault, Kind};
use crate::recorder::Pending;
use crate::response::Answer;
use crate::transport::Wire;
use base_clock::Nanos;

impl Engine<'_> {
    /// Begins HTTP/2 on a connection that was begun at `since`: the server is to answer with its SETTINGS.
    pub(super) fn greet(&mut self, id: usize, mut wire: Wire, since: Nanos) {
        if !wire.is_for_http2() {
            let example = "the server does not choose h2 by ALPN: it does not speak HTTP/2";
            return self.fail(id, Kind::Tls, Some(example));
        }
        let plan = self.shared.plan;
        let room = body::room(plan.load.connections * plan.load.depth);
        let http2 = match Http2::begin(since, room) {
            Ok(http2) => http2,
            Err((kind, example)) => return self.fail(id, kind, example),
        };
        let early = wire.recv_early(&mut self.buffer);
        let connection = &mut self.connections[id];
        connection.state = State::Open(wire);
        connection.http2 = Some(Box::new(http2));
        if early > 0 {
            self.read_streams(id, early, base_clock::now());
        } else {
            self.write(id);
        }
    }

    /// Like the hot path, for what came on a connection with streams.
    pub(super) fn read_streams(&mut self, id: usize, count: usize, now: Nanos) {
        let requests = self.shared.requests;
        let Some(http2) = &mut self.connections[id].http2 else {
            return;
        };
        http2.feed(&self.buffer[..count], now);
        let mut ends = std::mem::take(&mut self.ends);
        let driven = http2.drive(requests, &mut ends);
        let opened = http2.has_opened();
        self.depth = match self.depth.min(http2.room(self.depth)) {
            // It takes none any more.
            0 => self.depth,
            room => room,
        };
        self.settle(id, &mut ends, now);
        self.ends = ends;
        if let Err((kind, example)) = driven {
            return self.fail(id, kind, example);
        }
        if let Some(since) = opened {
            self.ready(id, since);
        } else {
            self.proceed(id);
        }
        if matches!(&self.connections[id].state, State::Open(wire) if wire.is_ended()) {
            // Nothing more will wake the thread for it.
            self.readable(id);
        }
    }

    /// Goes on after some requests have ended: with others, or another connection.
    fn proceed(&mut self, id: usize) {
        let connection = &self.connections[id];
        let Some(http2) = &connection.http2 else {
            return;
        };
        let is_spent = connection.left == 0 || !self.shared.plan.request.keep_alive;
        if http2.is_draining() && http2.in_flight() == 0 {
            self.replace(id);
        } else if connection.is_greeting() || !self.started {
            self.write(id);
        } else if is_spent && connection.in_flight() == 0 {
            self.reopen(id);
        } else {
            self.refill(id);
        }
    }

    /// The server has gone away: another connection takes the place, after a pause if that happens again and again.
    fn replace(&mut self, id: usize) {
        self.count_resent(id);
        self.connections[id].close();
        if self.started {
            self.begin_again(id, base_clock::now());
        }
    }

    /// Counts requests that have ended on streams.
    fn settle(&mut self, id: usize, ends: &mut Vec<End>, now: Nanos) {
        for end in ends.drain(..) {
            match end {
                End::Answered {
                    request,
                    status,
                    bytes,
                    body,
                } => {
                    let end = if self.shared.plan.request.is_good(status) {
                        body.map_err(|why| (Kind::BadBody, Some(why)))
                    } else {
                        Err((Kind::of_status(status), None))
                    };
                    let answer = Answer {
                        status,
                        reusable: true,
                        bytes,
                    };
                    self.answered_on_stream(id, &request, &answer, end, now);
                }
                End::Failed(request, fault) => self.failed_on_stream(id, &request, fault, now),
                End::Unseen(request) => self.connections[id].pending.push_back(request),
            }
        }
    }

    fn answered_on_stream(
        &mut self,
        id: usize,
        request: &Pending,
        answer: &Answer,
        end: Result<(), Fault>,
        now: Nanos,
    ) {
        let connection = &mut self.connections[id];
        connection.fruitful();
        connection.free_at = now;
        self.outstanding -= 1;
        self.recorder
            .answered(request, answer, end, now, self.shared.live);
        self.request_ended(id, request, end.is_ok(), now);
    }

    fn failed_on_stream(&mut self, id: usize, request: &Pending, fault: Fault, now: Nanos) {
        let (kind, example) = fault;
        self.connections[id].free_at = now;
        self.outstanding -= 1;
        self.recorder
            .failed(request, kind, example, now, self.shared.live);
        self.request_ended(id, request, false, now);
    }

    /// The server has closed the connection: what it has not looked at is sent again.
    pub(super) fn closed_streams(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.is_greeting() {
            let example =
                "closed before the SETTINGS of HTTP/2: the server may only speak HTTP/1.1";
            return self.fail(id, Kind::ClosedEarly, Some(example));
        }
        let now = base_clock::now();
        if let Some(http2) = connection.http2.take() {
            for request in http2.into_requests() {
                self.failed_on_stream(id, &request, (Kind::ClosedEarly, None), now);
            }
        }
        self.replace(id);
    }

    /// Gives up the requests of a connection whose time is over, whatever has become of it.
    pub(super) fn expire_streams(&mut self, id: usize, now: Nanos) {
        let before = now.saturating_sub(self.timeout);
        let mut ends = std::mem::take(&mut self.ends);
        self.connections[id].expire_streams(before, &mut ends);
        let is_idle = ends.is_empty();
        self.settle(id, &mut ends, now);
        self.ends = ends;
        if !is_idle {
            self.proceed(id);
        }
    }
}
