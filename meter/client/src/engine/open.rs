//! The open loop: requests are sent when they are due, whatever the server does.
//!
//! What is due waits in order for a connection with room. A thread looks at its schedule after each round of events and sleeps no
//! longer than until the next request is due.

use std::collections::VecDeque;

use super::Engine;
use crate::arrivals::Arrivals;
use crate::connection::State;
use crate::outcome::Kind;
use crate::plan::Schedule;
use crate::recorder::Pending;
use crate::tickets::Ticket;
use base_clock::{MS, Nanos};
use millrace_stats::random::mix;

/// The requests in flight are counted every 2 to 7 ms, at random, so that the count does not keep step with the schedule.
const SAMPLE: (Nanos, Nanos) = (2 * MS, 5 * MS);
/// Requests sent before the answers have their turn again: a client that is behind must not stop listening.
pub(super) const BURST: usize = 64;

/// A thread's part of the schedule.
pub(super) struct Open {
    arrivals: Arrivals,
    /// When the next request is due; none after the last.
    next: Option<Nanos>,
    /// Requests that are due and have no connection yet, the oldest first.
    waiting: VecDeque<Waiting>,
    /// Places for a connection that have room, by number; they are looked at again when they are taken.
    free: VecDeque<usize>,
    deadline: Nanos,
    next_sample: Nanos,
    samples: u64,
}

struct Waiting {
    due: Nanos,
    ticket: Ticket,
    /// The number of the session that begins with it, where there are sessions.
    session: u64,
}

impl Open {
    /// For a schedule that begins at `origin`.
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

    /// When the thread must be awake again in a run that issues requests until `end` and has not been stopped.
    pub(super) fn wake_at(&self, end: Nanos) -> Nanos {
        self.next
            .unwrap_or(Nanos::MAX)
            .min(self.next_sample)
            .min(end)
    }

    /// Whether nothing more will be due: recorded arrivals have an end.
    pub(super) fn is_exhausted(&self) -> bool {
        self.next.is_none()
    }

    /// Whether everything that was due has been given to a connection.
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
    /// Takes up what is due and sends what can be sent.
    pub(super) fn keep_schedule(&mut self) {
        self.serve_waiting(base_clock::now());
        let mut sent = 0;
        loop {
            let now = base_clock::now();
            let Some(due) = self
                .open
                .as_ref()
                .and_then(|open| open.next)
                .filter(|&due| due <= now || self.is_last_past(due, now))
            else {
                return;
            };
            self.arrive(due, now);
            self.serve_waiting(now);
            sent += 1;
            if sent == BURST {
                return;
            }
        }
    }

    /// Whether there will be no ticket for what is `due`, so that there is nothing to wait for.
    fn is_last_past(&self, due: Nanos, now: Nanos) -> bool {
        let last = self.times.last;
        (due >= last && now >= last) || self.shared.tickets.are_out()
    }

    /// Counts the requests in flight from time to time. To be called before the round's events are looked at: an answer that has
    /// come and has not been read is still in flight, as its end is when it is read.
    ///
    /// What counts is the moment for which the thread asked to be woken, not the one at which it was: whatever became due
    /// between the two was certain to find the thread asleep, and would be counted too often.
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
            self.arrive(due, now);
        }
        if at > self.times.start {
            self.recorder.sample(at, self.outstanding);
        }
        if let Some(open) = &mut self.open {
            open.samples += 1;
            open.next_sample = now + SAMPLE.0 + mix(now, open.samples) % SAMPLE.1;
        }
    }

    /// One request is due.
    fn arrive(&mut self, due: Nanos, now: Nanos) {
        let ticket = self.shared.tickets.take_for(due, &self.times);
        let Some(open) = &mut self.open else { return };
        match ticket {
            Some(ticket) => {
                self.recorder.issue(ticket.measured, due);
                self.outstanding += 1;
                // In the order in which they are due: recorded sessions belong to their times.
                let session = match &self.users {
                    Some(_) => self.shared.tickets.session(),
                    None => 0,
                };
                open.waiting.push_back(Waiting {
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

    /// Gives what waits to connections with room, the oldest first; what has waited too long is given up.
    pub(super) fn serve_waiting(&mut self, now: Nanos) {
        while let Some(open) = &mut self.open {
            let Some(Waiting { due, .. }) = open.waiting.front() else {
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
            let Waiting {
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

    /// A place whose connection has room, or that may open one for a request of its own.
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
            State::Open(_) => {
                plan.request.keep_alive
                    && connection.left > 0
                    && connection.has_place(plan.load.depth)
            }
            State::Idle => !plan.request.keep_alive && connection.pending.is_empty(),
            State::Connecting(..) | State::Shaking(..) | State::Paused(_) => false,
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
        if matches!(connection.state, State::Idle) {
            self.begin(id);
        } else {
            self.write(id);
            self.offer_place(id);
        }
    }

    fn give_up(&mut self, mut request: Pending, session: u64, is_shed: bool, now: Nanos) {
        self.outstanding -= 1;
        if let Some(users) = &mut self.users {
            users.turned_away(
                &mut request,
                session,
                &mut self.recorder,
                self.shared.tickets,
            );
        }
        if is_shed {
            self.recorder.shed(&request, now, self.shared.live);
        } else {
            let (kind, example) = self.no_connection.unwrap_or((Kind::Timeout, None));
            let example = example.or(Some("no connection had room in time"));
            self.recorder
                .failed(&request, kind, example, now, self.shared.live);
        }
    }

    /// A place without a connection, in an open loop: opens one to be ready, or waits for a request to open it for.
    pub(super) fn rest(&mut self, id: usize, now: Nanos) {
        if self.shared.plan.request.keep_alive && !self.open.as_ref().is_some_and(Open::is_over) {
            self.connect(id, now);
        } else {
            self.connections[id].close();
            self.offer_place(id);
        }
    }
}
