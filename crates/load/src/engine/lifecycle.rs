//! How connections are opened, closed, replaced and given up.

use rustix::event::epoll;
use rustix::net::sockopt::socket_error;

use super::open::Open;
use super::{Engine, Harvest, Part, interest};
use crate::Error;
use crate::Stop;
use crate::clock::{self, MS, Nanos, nanos};
use crate::connection::{State, connect, kind_of_connect};
use crate::outcome::Kind;
use crate::recorder::Recorder;
use crate::tickets::Times;

/// Connections that a thread opens at the same time before the run: less than the usual listen backlog, past which
/// the kernel would wait a second before it tries again.
const OPENING: usize = 64;

impl Engine<'_> {
    /// Opens all connections before the first request, so that connecting is no part of what is measured. Without
    /// keep-alive there is nothing to open: each request brings its own connection.
    pub(super) fn open_all(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), Error> {
        if !self.shared.plan.keep_alive {
            return Ok(());
        }
        let mut next = 0;
        loop {
            let opening = |engine: &Self| {
                engine.connections[..next]
                    .iter()
                    .filter(|c| matches!(c.state, State::Connecting(..)))
                    .count()
            };
            let mut busy = opening(self);
            while busy < OPENING
                && next < self.connections.len()
                && !self.shared.tickets.is_stopped()
            {
                self.connect(next, clock::now());
                busy += usize::from(matches!(
                    self.connections[next].state,
                    State::Connecting(..)
                ));
                next += 1;
            }
            if busy == 0 || self.shared.tickets.is_stopped() {
                return Ok(());
            }
            self.turn(events, 10 * MS)?;
        }
    }

    /// All threads are ready: sends the first requests.
    pub(super) fn start(&mut self, times: Times, opened_at: Nanos, part: Part) {
        let duration = match self.shared.plan.stop {
            Stop::Duration(duration) => Some(nanos(duration)),
            Stop::Requests(_) => None,
        };
        let schedule = self.shared.plan.schedule.as_ref();
        let recorder = Recorder::new(times.start, times.end, duration, schedule.is_some());
        let before = std::mem::replace(&mut self.recorder, recorder);
        self.recorder.connects = before.connects;
        self.recorder.connect = before.connect;
        self.recorder.turn(clock::now());
        self.times = times;
        self.started = true;
        self.open =
            schedule.map(|schedule| Open::new(schedule, opened_at, part.thread, part.threads));
        for id in 0..self.connections.len() {
            self.connections[id].free_at = clock::now();
            match self.connections[id].state {
                State::Open(_) => self.refill(id),
                _ => self.begin(id),
            }
        }
    }

    /// Opens a connection for what is pending on this place, or for a new request; rests when the run is over.
    pub(super) fn begin(&mut self, id: usize) {
        let now = clock::now();
        if self.connections[id].pending.is_empty() {
            if self.open.is_some() {
                return self.rest(id, now);
            }
            if !self.issue(id, now) {
                self.connections[id].close();
                return;
            }
        }
        let requests = self.shared.requests;
        self.connections[id].rewind(|index| requests.bytes(index));
        self.connect(id, now);
    }

    pub(super) fn connect(&mut self, id: usize, now: Nanos) {
        self.connections[id].attempted = true;
        self.connections[id].renew(self.shared.plan.per_connection);
        match connect(self.shared.address) {
            Ok(socket) => {
                let data = epoll::EventData::new_u64(id as u64);
                if epoll::add(&self.epoll, &socket, data, interest(true)).is_err() {
                    return self.fail(
                        id,
                        Kind::ConnectFailed,
                        Some("the kernel's limit of watched sockets is reached"),
                    );
                }
                self.connections[id].watches_room = true;
                self.connections[id].state = State::Connecting(socket, now);
            }
            Err(kind) => self.fail(id, kind, None),
        }
    }

    /// The attempt to connect has ended.
    pub(super) fn connected(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let State::Connecting(socket, since) =
            std::mem::replace(&mut connection.state, State::Idle)
        else {
            return;
        };
        if let Ok(Err(errno)) | Err(errno) = socket_error(&socket) {
            return self.fail(id, kind_of_connect(errno), None);
        }
        connection.state = State::Open(socket);
        connection.established = true;
        self.no_connection = None;
        let now = clock::now();
        if self.open.is_some() {
            connection.free_at = now;
            // What waited for this connection waited for the server.
            for request in connection.pending.iter_mut().filter(|r| r.sent_at == 0) {
                request.free_at = now;
            }
        }
        self.recorder.connected(now.saturating_sub(since));
        if self.started {
            self.refill(id);
        } else {
            self.write(id);
        }
    }

    /// The server has closed the connection.
    pub(super) fn closed(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if let Some(answer) = connection.parser.closed() {
            let now = clock::now();
            if let Some(request) = connection.pending.pop_front() {
                let good = self.shared.plan.is_good(answer.status);
                self.recorder
                    .answered(&request, &answer, good, now, self.shared.live);
                self.outstanding -= 1;
                connection.fruitful();
                connection.free_at = now;
            }
            self.reopen(id);
        } else if !connection.pending.is_empty() {
            self.fail(id, Kind::ClosedEarly, None);
        } else {
            connection.close();
            if self.started {
                self.begin_again(id, clock::now());
            }
        }
    }

    /// Begins anew, after a pause if that has been fruitless before.
    fn begin_again(&mut self, id: usize, now: Nanos) {
        match self.connections[id].pause() {
            0 => self.begin(id),
            pause => {
                self.connections[id].state = State::Paused(now + pause);
                self.next_sweep = self.next_sweep.min(now + pause);
            }
        }
    }

    /// A connection has had its last answer: a new one takes its place, with the requests that were sent after that
    /// answer and that the server will not look at.
    pub(super) fn reopen(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        self.recorder.resent += connection
            .pending
            .iter()
            .filter(|request| request.measured)
            .count() as u64;
        connection.close();
        self.begin(id);
    }

    /// Bytes came that answer nothing: whatever follows cannot be told apart from an answer.
    pub(super) fn unsolicited(&mut self, id: usize, now: Nanos) {
        self.recorder.unsolicited(now, self.shared.live);
        self.fail(
            id,
            Kind::BadResponse,
            Some("bytes before the request was sent"),
        );
    }

    /// Gives up a connection with all that is pending on it.
    pub(super) fn fail(&mut self, id: usize, kind: Kind, example: Option<&'static str>) {
        let now = clock::now();
        let connection = &mut self.connections[id];
        for request in connection.pending.drain(..) {
            self.recorder
                .failed(&request, kind, example, now, self.shared.live);
            self.outstanding -= 1;
        }
        connection.close();
        connection.free_at = now;
        if kind.is_about_connecting() {
            self.no_connection = Some(kind);
        }
        if !self.started {
            return;
        }
        self.begin_again(id, now);
    }

    /// Looks for what has waited too long, and for pauses that are over.
    pub(super) fn sweep(&mut self, now: Nanos) {
        self.next_sweep = now + (self.timeout / 8).clamp(MS, 50 * MS);
        if self.open.is_some() {
            self.serve_waiting(now);
        } else if now >= self.times.end {
            self.stopped_at.get_or_insert(now);
        }
        for id in 0..self.connections.len() {
            match &self.connections[id].state {
                State::Paused(until) if *until <= now => self.begin(id),
                State::Paused(until) => self.next_sweep = self.next_sweep.min(*until),
                _ => {
                    let since = self.connections[id].waits_since();
                    if since.is_some_and(|since| now.saturating_sub(since) >= self.timeout) {
                        self.fail(id, Kind::Timeout, None);
                    }
                }
            }
        }
    }

    /// The run is over for this thread.
    pub(super) fn finish(self) -> Harvest {
        let in_flight = self
            .connections
            .iter()
            .flat_map(|connection| &connection.pending);
        let waiting = self.open.as_ref().map_or(0, Open::measured_waiting);
        Harvest {
            in_flight: in_flight.filter(|request| request.measured).count() as u64 + waiting,
            never: self
                .connections
                .iter()
                .filter(|c| c.attempted && !c.established)
                .count(),
            established: self
                .connections
                .iter()
                .filter(|connection| connection.established)
                .count(),
            cpu: self.recorder.cpu(),
            usage: self
                .usage_at_start
                .map(|start| self.shared.own.read().since(start))
                .unwrap_or_default(),
            times: self.times,
            stopped_at: self
                .stopped_at
                .unwrap_or_else(clock::now)
                .min(self.times.end),
            recorder: self.recorder,
        }
    }
}
