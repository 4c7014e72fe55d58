//! Connections with streams: input drives HTTP/2, and requests end one by one.
//!
//! The connection stays when a request fails: its stream is reset. After a GOAWAY, or after a
//! timeout without any input, the connection takes no more requests. When its last request has
//! ended, another connection takes its place, with the requests that the server has not processed.

use super::Engine;
use crate::body;
use crate::connection::ConnectionState;
use crate::http2::{Http2, StreamEnd};
use crate::outcome::{FailureKind, Fault};
use crate::recorder::Pending;
use crate::response::CompleteResponse;
use crate::transport::Wire;
use base_clock::Nanos;

impl Engine<'_> {
    /// Begins HTTP/2 on a connection that was begun at `since`; the server has to send its
    /// SETTINGS.
    pub(super) fn begin_http2(&mut self, id: usize, mut wire: Wire, since: Nanos) {
        if !wire.is_for_http2() {
            let example = "the server does not choose h2 by ALPN: it does not speak HTTP/2";
            return self.fail(id, FailureKind::Tls, Some(example));
        }
        let plan = self.shared.plan;
        let room = body::room(plan.load.connections * plan.load.depth);
        let http2 = match Http2::begin(since, room) {
            Ok(http2) => http2,
            Err((kind, example)) => return self.fail(id, kind, example),
        };
        let early = wire.recv_early(&mut self.buffer);
        let connection = &mut self.connections[id];
        connection.state = ConnectionState::Open(wire);
        connection.http2 = Some(Box::new(http2));
        if early > 0 {
            self.read_streams(id, early, base_clock::now());
        } else {
            self.write(id);
        }
    }

    /// Like the hot path, for a connection with streams.
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
            // A connection that is draining takes no request.
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
            self.continue_connection(id);
        }
        if matches!(&self.connections[id].state, ConnectionState::Open(wire) if wire.is_ended()) {
            // No event will wake the thread for it.
            self.readable(id);
        }
    }

    /// Continues after requests have ended, with other requests or another connection.
    fn continue_connection(&mut self, id: usize) {
        let connection = &self.connections[id];
        let Some(http2) = &connection.http2 else {
            return;
        };
        let is_spent = connection.left == 0 || !self.shared.plan.request.keep_alive;
        if http2.is_draining() && http2.in_flight() == 0 {
            self.replace(id);
        } else if connection.awaits_preface() || !self.started {
            self.write(id);
        } else if is_spent && connection.in_flight() == 0 {
            self.reopen(id);
        } else {
            self.refill(id);
        }
    }

    /// The server has gone away: opens another connection, after a pause if this happens
    /// repeatedly.
    fn replace(&mut self, id: usize) {
        self.count_resent(id);
        self.connections[id].close();
        if self.started {
            self.reconnect(id, base_clock::now());
        }
    }

    /// Counts requests that have ended on streams.
    fn settle(&mut self, id: usize, ends: &mut Vec<StreamEnd>, now: Nanos) {
        for end in ends.drain(..) {
            match end {
                StreamEnd::Answered {
                    request,
                    status,
                    bytes,
                    body,
                } => {
                    let end = if self.shared.plan.request.is_good(status) {
                        body.map_err(|why| (FailureKind::BadBody, Some(why)))
                    } else {
                        Err((FailureKind::of_status(status), None))
                    };
                    let answer = CompleteResponse {
                        status,
                        reusable: true,
                        bytes,
                    };
                    self.answered_on_stream(id, &request, &answer, end, now);
                }
                StreamEnd::Failed(request, fault) => {
                    self.failed_on_stream(id, &request, fault, now)
                }
                StreamEnd::Unseen(request) => self.connections[id].pending.push_back(request),
            }
        }
    }

    fn answered_on_stream(
        &mut self,
        id: usize,
        request: &Pending,
        answer: &CompleteResponse,
        end: Result<(), Fault>,
        now: Nanos,
    ) {
        let connection = &mut self.connections[id];
        connection.reset_attempts();
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

    /// The server has closed the connection: requests that it has not processed are sent again.
    pub(super) fn closed_streams(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.awaits_preface() {
            let example =
                "closed before the SETTINGS of HTTP/2: the server may only speak HTTP/1.1";
            return self.fail(id, FailureKind::ClosedEarly, Some(example));
        }
        let now = base_clock::now();
        if let Some(http2) = connection.http2.take() {
            for request in http2.into_requests() {
                self.failed_on_stream(id, &request, (FailureKind::ClosedEarly, None), now);
            }
        }
        self.replace(id);
    }

    /// Gives up the requests of a connection whose timeout has passed, in any state of the
    /// connection.
    pub(super) fn expire_streams(&mut self, id: usize, now: Nanos) {
        let before = now.saturating_sub(self.timeout);
        let mut ends = std::mem::take(&mut self.ends);
        self.connections[id].expire_streams(before, &mut ends);
        let is_idle = ends.is_empty();
        self.settle(id, &mut ends, now);
        self.ends = ends;
        if !is_idle {
            self.continue_connection(id);
        }
    }
}
