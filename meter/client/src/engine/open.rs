//! The open loop: requests are sent when they are due, regardless of the server.
//!
//! Due requests wait in order for a connection with room. A thread checks its schedule after each
//! round of events, and sleeps until the next request is due at most.

use std::collections::VecDeque;

use super::Engine;
use crate::arrivals::Arrivals;
use crate::connection::ConnectionState;
use crate::outcome::FailureKind;
use crate::plan::Schedule;
use crate::recorder::Pending;
use crate::tickets::Ticket;
use base_clock::{MS, Nanos};
use millrace_stats::random::mix;

/// The requests in flight are counted at random intervals of 2 to 7 ms, so that counting does not
/// align with the schedule.
const SAMPLE: (Nanos, Nanos) = (2 * MS, 5 * MS);
/// Requests sent before responses are read again: a client that is behind must not stop reading.
pub(super) const BURST: usize = 64;

/// A thread's part of the schedule.
pub(super) struct Open {
    arrivals: Arrivals,
    /// When the next request is due; none after the last.
    next: Option<Nanos>,
    /// Requests that are due and have no connection yet, the oldest first.
    waiting: VecDeque<DueRequest>,
    /// Indices of connections that may have room; room is checked again when one is taken.
    free: VecDeque<usize>,
    deadline: Nanos,
    next_sample: Nanos,
    samples: u64,
}

struct DueRequest {
    due: Nanos,
    ticket: Ticket,
    /// The number of the session that begins with it, where there are sessions.
    session: u64,
}

impl Open {
    /// Creates a schedule that begins at `origin`.
    pub(super) fn new(
        schedule: &Schedule,
        origin: Nanos,
        ramp: Nanos,
        (thread, threads): (usize, usize),
    ) -> Self {
        let mut arrivals = Arrivals::new(schedule, origin, ramp, (thread, threads));
        Self {
            next: arrivals.next(),
            arrivals,
            waiting: VecDeque::new(),
            free: VecDeque::new(),
            deadline: schedule.deadline.map_or(Nanos::MAX, base_clock::nanos),
            next_sample: origin,
            samples: 0,
        }
    }

    /// When the thread must be awake again, in a run that issues requests until `end` and was not
    /// stopped.
    pub(super) fn wake_at(&self, end: Nanos) -> Nanos {
        self.next
            .unwrap_or(Nanos::MAX)
            .min(self.next_sample)
            .min(end)
    }

    /// True if no more request will be due: recorded arrivals have an end.
    pub(super) fn is_exhausted(&self) -> bool {
        self.next.is_none()
    }

    /// True if everything that was due has been given to a connection.
    pub(super) fn is_over(&self) -> bool {
        self.next.is_none() && self.waiting.is_empty()
    }

    /// Measured requests that wait for a connection.
    pub(super) fn measured_waiting(&self) -> u64 {
        let measured = self
            .waiting
            .iter()
            .filter(|waiting| waiting.ticket.measured);
        measured.count() as u64
    }
}

impl Engine<'_> {
    /// Takes the due requests and sends what can be sent.
    pub(super) fn run_schedule(&mut self) {
        self.serve_waiting(base_clock::now());
        let mut sent = 0;
        loop {
            let now = base_clock::now();
            let Some(due) = self
                .open
                .as_ref()
                .and_then(|open| open.next)
                .filter(|&due| due <= now || self.has_no_ticket_left(due, now))
            else {
                return;
            };
            self.add_due_request(due, now);
            self.serve_waiting(now);
            sent += 1;
            if sent == BURST {
                return;
            }
        }
    }

    /// True if no ticket is left for a request at `due`, so that waiting is pointless.
    fn has_no_ticket_left(&self, due: Nanos, now: Nanos) -> bool {
        let last = self.times.last;
        (due >= last && now >= last) || self.shared.tickets.are_out()
    }

    /// Counts the requests in flight from time to time. Called before the round's events are
    /// handled: a response that arrived and was not read is still in flight, because its end is the
    /// time of the read.
    ///
    /// The sample belongs to the time for which the thread asked to be woken, not to the time at
    /// which it woke. A request that became due between the two always finds the thread asleep, and
    /// would be counted too often.
    pub(super) fn sample(&mut self) {
        let Some(at) = self.open.as_ref().map(|open| open.next_sample) else {
            return;
        };
        let now = base_clock::now();
        if now < at {
            return;
        }
        while let Some(due) = self.open.as_ref().and_then(|open| open.next)
            && due <= at
        {
            self.add_due_request(due, now);
        }
        if at > self.times.start {
            self.recorder.sample(at, self.outstanding);
        }
        if let Some(open) = &mut self.open {
            open.samples += 1;
            open.next_sample = now + SAMPLE.0 + mix(now, open.samples) % SAMPLE.1;
        }
    }

    fn add_due_request(&mut self, due: Nanos, now: Nanos) {
        let ticket = self.shared.tickets.take_for(due, &self.times);
        let Some(open) = &mut self.open else { return };
        match ticket {
            Some(ticket) => {
                self.recorder.issue(ticket.measured, due);
                self.outstanding += 1;
                // Numbered in the order in which they are due: recorded sessions belong to their
                // times.
                let session = match &self.users {
                    Some(_) => self.shared.tickets.session(),
                    None => 0,
                };
                open.waiting.push_back(DueRequest {
                    due,
                    ticket,
                    session,
                });
                open.next = open.arrivals.next();
            }
            None => {
                open.next = None;
                self.stopped_at.get_or_insert(now.min(self.times.last));
            }
        }
    }

    /// Assigns waiting requests to connections with room, the oldest first, and gives up those that
    /// waited too long.
    pub(super) fn serve_waiting(&mut self, now: Nanos) {
        while let Some(open) = &mut self.open {
            let Some(DueRequest { due, .. }) = open.waiting.front() else {
                return;
            };
            let waited = now.saturating_sub(*due);
            let too_late = waited > open.deadline || waited >= self.timeout;
            let place = if too_late { None } else { self.take_place() };
            let Some(open) = &mut self.open else { return };
            if !too_late && place.is_none() {
                return;
            }
            let Some(waiting) = open.waiting.pop_front() else {
                return;
            };
            let DueRequest {
                due,
                ticket,
                session,
            } = waiting;
            let request = Pending {
                index: self.shared.requests.pick(ticket.number),
                class: 0,
                measured: ticket.measured,
                due,
                free_at: due,
                sent_at: 0,
                pause: 0,
            };
            match place {
                Some(id) => self.assign(id, request, session),
                None => self.give_up(request, session, waited > self.deadline(), now),
            }
        }
    }

    pub(super) fn deadline(&self) -> Nanos {
        self.open.as_ref().map_or(Nanos::MAX, |open| open.deadline)
    }

    /// A place whose connection has room, or that may open a connection for one request.
    fn take_place(&mut self) -> Option<usize> {
        loop {
            let id = self.open.as_mut()?.free.pop_front()?;
            self.connections[id].listed = false;
            if self.has_room(id) {
                return Some(id);
            }
        }
    }

    fn has_room(&self, id: usize) -> bool {
        if self.users.as_ref().is_some_and(|users| users.is_held(id)) {
            return false;
        }
        let connection = &self.connections[id];
        let plan = self.shared.plan;
        match connection.state {
            ConnectionState::Open(_) => {
                plan.request.keep_alive
                    && connection.left > 0
                    && connection.has_room_for_request(plan.load.depth)
            }
            ConnectionState::Idle => !plan.request.keep_alive && connection.pending.is_empty(),
            ConnectionState::Connecting(..)
            | ConnectionState::Shaking(..)
            | ConnectionState::Paused(_) => false,
        }
    }

    /// The place may have room now.
    pub(super) fn offer_place(&mut self, id: usize) {
        if self.has_room(id)
            && !self.connections[id].listed
            && let Some(open) = &mut self.open
        {
            open.free.push_back(id);
            self.connections[id].listed = true;
        }
    }

    fn assign(&mut self, id: usize, mut request: Pending, session: u64) {
        let connection = &mut self.connections[id];
        request.free_at = connection.free_at;
        if let Some(users) = &mut self.users {
            users.enter(id, session);
            self.recorder.visits.started += u64::from(request.measured);
            return self.put(id, request);
        }
        connection.push(request, self.shared.requests.bytes(request.index));
        if matches!(connection.state, ConnectionState::Idle) {
            self.begin(id);
        } else {
            self.write(id);
            self.offer_place(id);
        }
    }

    fn give_up(&mut self, mut request: Pending, session: u64, is_shed: bool, now: Nanos) {
        self.outstanding -= 1;
        if let Some(users) = &mut self.users {
            users.session_not_started(
                &mut request,
                session,
                &mut self.recorder,
                self.shared.tickets,
            );
        }
        if is_shed {
            self.recorder.shed(&request, now, self.shared.live);
        } else {
            let (kind, example) = self.no_connection.unwrap_or((FailureKind::Timeout, None));
            let example = example.or(Some("no connection had room in time"));
            self.recorder
                .failed(&request, kind, example, now, self.shared.live);
        }
    }

    /// In an open loop, a place without a connection opens one in advance, or waits for a request
    /// that needs one.
    pub(super) fn rest(&mut self, id: usize, now: Nanos) {
        if self.shared.plan.request.keep_alive && !self.open.as_ref().is_some_and(Open::is_over) {
            self.connect(id, now);
        } else {
            self.connections[id].close();
            self.offer_place(id);
        }
    }
}
