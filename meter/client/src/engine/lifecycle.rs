//! How connections are opened, closed, replaced and given up.

use rustix::event::epoll;
use rustix::net::sockopt::socket_error;

use super::open::Open;
use super::users::{Ended, Users};
use super::{Engine, ThreadPart, interest};
use crate::Error;
use crate::Stop;
use crate::classes::ClassTimes;
use crate::connection::ConnectionState;
use crate::outcome::FailureKind;
use crate::recorder::Recorder;
use crate::tickets::Times;
use crate::transport::{ConnectedSocket, HandshakeStep, Received, Wire, kind_of_connect};
use base_clock::{MS, Nanos, nanos};
use millrace_stats::series::Series;

/// Connections that a thread opens at the same time before the run. Fewer than the usual listen
/// backlog, because the kernel waits a second before it retries when the backlog is full.
const OPENING: usize = 64;

impl Engine<'_> {
    /// Opens all connections before the first request, so that connecting is not measured. Without
    /// keep-alive nothing is opened here, because each request opens its own connection. With a
    /// ramp each connection is opened at its own time.
    pub(super) fn open_all(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), Error> {
        if !self.shared.plan.request.keep_alive || self.starts_one_by_one() {
            return Ok(());
        }
        let mut next = 0;
        loop {
            let opening = |engine: &Self| {
                engine.connections[..next]
                    .iter()
                    .filter(|c| c.is_opening())
                    .count()
            };
            let mut busy = opening(self);
            while busy < OPENING
                && next < self.connections.len()
                && !self.shared.tickets.is_stopped()
            {
                self.connect(next, base_clock::now());
                busy += usize::from(self.connections[next].is_opening());
                next += 1;
            }
            if busy == 0 || self.shared.tickets.is_stopped() {
                return Ok(());
            }
            self.turn(events, base_clock::now() + 10 * MS)?;
        }
    }

    /// True if a ramp starts the connections of a closed loop one after the other.
    fn starts_one_by_one(&self) -> bool {
        self.shared.plan.load.schedule.is_none() && !self.shared.plan.length.ramp_up.is_zero()
    }

    /// Sends the first requests, when all threads are ready.
    pub(super) fn start(&mut self, times: Times, opened_at: Nanos, part: ThreadPart) {
        let plan = self.shared.plan;
        let duration = match plan.length.stop {
            // The statistics may make it much shorter.
            Stop::Duration(duration) if plan.length.auto.is_none() => {
                // Recorded arrivals end by themselves.
                let recording = plan.load.recording();
                Some(nanos(recording.map_or(duration, |end| end.min(duration))))
            }
            Stop::Duration(_) | Stop::Requests(_) => None,
        };
        let schedule = plan.load.schedule.as_ref();
        let recorder = Recorder::new(times.start, times.end, duration, schedule.is_some());
        let before = std::mem::replace(&mut self.recorder, recorder);
        self.recorder.connects = before.connects;
        self.recorder.connect = before.connect;
        self.recorder.handshakes = before.handshakes;
        let classes = plan
            .request
            .workload
            .as_ref()
            .map_or(0, |w| w.classes().len());
        if classes > 1 {
            self.recorder.classes = (0..classes)
                .map(|_| ClassTimes::new(Series::of_class(classes, duration, schedule.is_some())))
                .collect();
        }
        self.recorder.turn(base_clock::now(), false);
        if let Some(pulse) = &self.shared.live.pulse {
            pulse.begin(opened_at);
        }
        self.times = times;
        self.started = true;
        let (ramp, share) = (nanos(plan.length.ramp_up), (part.thread, part.threads));
        self.open = schedule.map(|schedule| Open::new(schedule, opened_at, ramp, share));
        self.users = Users::new(plan, part.thread, part.connections);
        let (is_closed, one_by_one) = (self.open.is_none(), self.starts_one_by_one());
        for id in 0..self.connections.len() {
            self.connections[id].free_at = base_clock::now();
            // Places are numbered over all threads in turn.
            let place = (id * part.threads + part.thread) as f64 / plan.load.connections as f64;
            let start = opened_at + (ramp as f64 * place) as Nanos;
            match (&mut self.users, &self.connections[id].state) {
                (Some(users), _) if is_closed => users.arm_first(id, start),
                _ if one_by_one => self.starts.push_back((start, id)),
                (_, ConnectionState::Open(_)) => self.refill(id),
                _ => self.begin(id),
            }
        }
    }

    /// Starts the connections of a ramp whose time is reached.
    pub(super) fn start_due_connections(&mut self) {
        while let Some(&(at, id)) = self.starts.front()
            && at <= base_clock::now()
        {
            self.starts.pop_front();
            self.connections[id].free_at = at;
            self.begin(id);
        }
    }

    /// Opens a connection for the pending requests of this place, or for a new request; rests when
    /// the run is over.
    pub(super) fn begin(&mut self, id: usize) {
        let now = base_clock::now();
        if self.connections[id].pending.is_empty() {
            if self.open.is_some() {
                return self.rest(id, now);
            }
            if self.users.is_some() {
                return self.prepare(id, now);
            }
            if !self.issue(id, now) {
                self.connections[id].close();
                return;
            }
        }
        let requests = self.shared.requests;
        let users = self.users.as_ref().filter(|users| users.has_workload());
        self.connections[id].rewind(|index| match users {
            Some(users) => users.bytes(id),
            None => requests.bytes(index),
        });
        self.connect(id, now);
    }

    pub(super) fn connect(&mut self, id: usize, now: Nanos) {
        self.connections[id].attempted = true;
        self.connections[id].renew(self.shared.plan.request.per_connection);
        match self.shared.target.connect() {
            Ok(socket) => {
                let data = epoll::EventData::new_u64(id as u64);
                if epoll::add(&self.epoll, &socket, data, interest(true, true)).is_err() {
                    return self.fail(
                        id,
                        FailureKind::ConnectFailed,
                        Some("the kernel's limit of watched sockets is reached"),
                    );
                }
                self.connections[id].watches_room = true;
                self.connections[id].state = ConnectionState::Connecting(socket, now);
            }
            Err((kind, example)) => self.fail(id, kind, example),
        }
    }

    /// The attempt to connect has ended.
    pub(super) fn connected(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let ConnectionState::Connecting(socket, since) =
            std::mem::replace(&mut connection.state, ConnectionState::Idle)
        else {
            return;
        };
        if let Ok(Err(errno)) | Err(errno) = socket_error(&socket) {
            let (kind, example) = kind_of_connect(errno);
            return self.fail(id, kind, example);
        }
        match self.shared.target.begin(socket) {
            Ok(ConnectedSocket::Open(wire)) => self.opened(id, wire, since),
            Ok(ConnectedSocket::Shaking(session)) => {
                connection.state = ConnectionState::Shaking(session, since);
                self.continue_handshake(id);
            }
            Err((kind, example)) => self.fail(id, kind, example),
        }
    }

    /// Continues the TLS handshake.
    pub(super) fn continue_handshake(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let ConnectionState::Shaking(session, _) = &mut connection.state else {
            return;
        };
        match session.continue_handshake() {
            Ok(HandshakeStep::Done) => {
                if let ConnectionState::Shaking(session, since) =
                    std::mem::replace(&mut connection.state, ConnectionState::Idle)
                {
                    let took = base_clock::now().saturating_sub(session.begun());
                    self.recorder.shook_hands(took, session.is_resumed());
                    self.opened(id, Wire::Tls(session), since);
                }
            }
            Ok(state) => {
                let wants_room = state == HandshakeStep::WantsRoom;
                if connection.watches_room != wants_room {
                    connection.watches_room = wants_room;
                    self.watch(id);
                }
            }
            Err((kind, example)) => self.fail(id, kind, example),
        }
    }

    /// A connection that was begun at `since` can carry bytes.
    fn opened(&mut self, id: usize, wire: Wire, since: Nanos) {
        if self.shared.plan.target.http2 {
            return self.begin_http2(id, wire, since);
        }
        self.connections[id].state = ConnectionState::Open(wire);
        self.ready(id, since);
    }

    /// A connection that was begun at `since` is ready for requests.
    pub(super) fn ready(&mut self, id: usize, since: Nanos) {
        let connection = &mut self.connections[id];
        connection.established = true;
        self.no_connection = None;
        let now = base_clock::now();
        if self.open.is_some() {
            connection.free_at = now;
            // Requests that waited for this connection waited for the server.
            for request in connection.pending.iter_mut().filter(|r| r.sent_at == 0) {
                request.free_at = now;
            }
        }
        self.recorder.connected(now.saturating_sub(since));
        if self.open.is_some() || !self.started {
            // Pending requests go before waiting ones: under TLS no other event may wake the thread
            // for them.
            self.write(id);
        }
        if self.started {
            self.refill(id);
        }
    }

    /// The connection has ended.
    pub(super) fn ended(&mut self, id: usize, end: Received) {
        match end {
            Received::Closed | Received::CutOff if self.connections[id].http2.is_some() => {
                self.closed_streams(id);
            }
            Received::Failed((kind, example)) => self.fail(id, kind, example),
            Received::CutOff if self.connections[id].parser.ends_with_connection() => self.fail(
                id,
                FailureKind::ClosedEarly,
                Some("a body that may be cut short: the connection ended without close_notify"),
            ),
            _ => self.closed(id),
        }
    }

    /// The server has closed the connection.
    fn closed(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if let Some(answer) = connection.parser.closed() {
            self.take_answer(id, &answer, base_clock::now());
            self.reopen(id);
        } else if !connection.pending.is_empty() {
            self.fail(id, FailureKind::ClosedEarly, None);
        } else {
            connection.close();
            if self.started {
                self.reconnect(id, base_clock::now());
            }
        }
    }

    /// Opens the connection again, after a pause if the last attempts failed.
    pub(super) fn reconnect(&mut self, id: usize, now: Nanos) {
        match self.connections[id].pause() {
            0 => self.begin(id),
            pause => {
                self.connections[id].state = ConnectionState::Paused(now + pause);
                self.next_sweep = self.next_sweep.min(now + pause);
            }
        }
    }

    /// A connection has had its last response. A new connection takes its place, with the requests
    /// that were sent after that response and that the server will not process.
    pub(super) fn reopen(&mut self, id: usize) {
        self.count_resent(id);
        self.connections[id].close();
        self.begin(id);
    }

    /// Counts the requests that were already sent and are sent again on the new connection.
    pub(super) fn count_resent(&mut self, id: usize) {
        let pending = self.connections[id].pending.iter();
        let resent = pending.filter(|request| request.measured && request.sent_at != 0);
        self.recorder.resent += resent.count() as u64;
    }

    /// Bytes arrived that answer no request: later bytes cannot be told from a response.
    pub(super) fn unsolicited(&mut self, id: usize, now: Nanos) {
        self.recorder.unsolicited(now, self.shared.live);
        self.fail(
            id,
            FailureKind::BadResponse,
            Some("bytes before the request was sent"),
        );
    }

    /// Gives up a connection with all that is pending on it.
    pub(super) fn fail(&mut self, id: usize, kind: FailureKind, example: Option<&'static str>) {
        let now = base_clock::now();
        let connection = &mut self.connections[id];
        let is_about_connecting = kind.is_about_connecting() || connection.awaits_preface();
        connection.return_to_pending();
        for request in connection.pending.drain(..) {
            if let Some(pace) = &mut connection.pace {
                pace.failed(&request);
            }
            self.recorder
                .failed(&request, kind, example, now, self.shared.live);
            self.outstanding -= 1;
            if let Some(users) = &mut self.users {
                let ended = Ended {
                    request: &request,
                    good: false,
                    now,
                };
                users.ended(id, &ended, &mut self.recorder, self.shared.tickets);
            }
        }
        connection.close();
        connection.free_at = now;
        if is_about_connecting {
            self.no_connection = Some((kind, example));
        }
        if !self.started {
            return;
        }
        self.reconnect(id, now);
    }

    /// Gives up requests that waited too long, and ends pauses.
    pub(super) fn sweep(&mut self, now: Nanos) {
        self.next_sweep = now + (self.timeout / 8).clamp(MS, 50 * MS);
        if self.open.is_some() {
            self.serve_waiting(now);
        }
        if self.is_over(now) {
            self.stopped_at.get_or_insert(now);
        }
        for id in 0..self.connections.len() {
            if self.shared.plan.target.http2 {
                self.expire_streams(id, now);
            }
            match &self.connections[id].state {
                ConnectionState::Paused(until) if *until <= now => self.begin(id),
                ConnectionState::Paused(until) => self.next_sweep = self.next_sweep.min(*until),
                _ => {
                    let since = self.connections[id].waits_since();
                    if since.is_some_and(|since| now.saturating_sub(since) >= self.timeout) {
                        let example = self.connections[id].waiting_reason();
                        self.fail(id, FailureKind::Timeout, example);
                    }
                }
            }
        }
    }
}
