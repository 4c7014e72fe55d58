//! What users do: pauses end, requests are sent, the contents of responses are checked.

use super::open::BURST;
use super::users::Ended;
use super::{Engine, RunContext};
use crate::connection::ConnectionState;
use crate::outcome::FailureKind;
use crate::recorder::Pending;
use crate::response::CompleteResponse;
use crate::sink::Discard;
use base_clock::Nanos;

impl Engine<'_> {
    /// Sends the requests of the users whose pause is over.
    pub(super) fn wake_users(&mut self) {
        for _ in 0..BURST {
            let now = base_clock::now();
            let Some((due, id)) = self.users.as_mut().and_then(|users| users.due(now)) else {
                return;
            };
            self.make_request(id, due, now);
        }
    }

    /// The user at this place makes the next request.
    fn make_request(&mut self, id: usize, due: Nanos, now: Nanos) {
        let is_open = self.open.is_some();
        let ticket = if is_open {
            self.shared.tickets.take_for(due, &self.times)
        } else {
            self.shared.tickets.take(&self.times, now)
        };
        let Some(users) = &mut self.users else { return };
        let Some(ticket) = ticket else {
            users.leave(id);
            self.stopped_at.get_or_insert(now.min(self.times.last));
            return self.offer_place(id);
        };
        if !users.is_held(id) {
            users.enter(id, self.shared.tickets.session());
            self.recorder.visits.started += u64::from(ticket.measured);
        }
        // In an open loop the client's own delay counts against the client. A closed loop has no
        // schedule, so nothing can be late. The delay is left out of the cycle, which is then too
        // short for Little's law.
        let due = if is_open { due } else { now };
        let since_start = due.saturating_sub(self.times.start);
        let pause = if is_open {
            0
        } else if ticket.measured {
            users.pause(id).min(since_start)
        } else {
            users.pause(id)
        };
        let request = Pending {
            index: self.shared.requests.pick(ticket.number),
            class: 0,
            measured: ticket.measured,
            due,
            free_at: due,
            sent_at: 0,
            pause,
        };
        self.recorder.issue(ticket.measured, due);
        self.outstanding += 1;
        if now.saturating_sub(due) > self.deadline() {
            return self.count_late_request(id, &request, now);
        }
        self.put(id, request);
    }

    /// A session's request that the client itself was too late to send.
    fn count_late_request(&mut self, id: usize, request: &Pending, now: Nanos) {
        self.recorder.made(request);
        self.outstanding -= 1;
        self.recorder.shed(request, now, self.shared.live);
        self.request_ended(id, request, false, now);
        self.offer_place(id);
    }

    /// Puts a request of the user at this place on its connection, and opens the connection if
    /// needed.
    pub(super) fn put(&mut self, id: usize, mut request: Pending) {
        let Some(users) = &mut self.users else { return };
        let class = users.render(id);
        request.class = class.unwrap_or(0);
        self.recorder.made(&request);
        let bytes = match class {
            Some(_) => users.bytes(id),
            None => self.shared.requests.bytes(request.index),
        };
        let connection = &mut self.connections[id];
        connection.push(request, bytes);
        match connection.state {
            ConnectionState::Idle => self.begin(id),
            ConnectionState::Open(_) => self.write(id),
            // The request is written when the connection is open.
            ConnectionState::Connecting(..)
            | ConnectionState::Shaking(..)
            | ConnectionState::Paused(_) => {}
        }
    }

    /// Tells the user of a request that it has ended.
    pub(super) fn request_ended(&mut self, id: usize, request: &Pending, good: bool, now: Nanos) {
        if let Some(users) = &mut self.users {
            let ended = Ended { request, good, now };
            users.ended(id, &ended, &mut self.recorder, self.shared.tickets);
        }
    }

    /// A closed loop's place without a connection and without a request is prepared for the next
    /// request.
    pub(super) fn prepare(&mut self, id: usize, now: Nanos) {
        if self.shared.plan.request.keep_alive && self.stopped_at.is_none() {
            self.connect(id, now);
        } else {
            self.connections[id].close();
        }
    }

    /// Like the hot path, for responses whose content a workload may use.
    pub(super) fn read_content(&mut self, id: usize, count: usize, now: Nanos) {
        let connection = &mut self.connections[id];
        let Some(users) = &mut self.users else { return };
        if connection
            .pending
            .front()
            .is_none_or(|request| request.sent_at == 0)
        {
            return self.unsolicited(id, now);
        }
        let bytes = &self.buffer[..count];
        let fed = match users.content(id) {
            (head, Some(content)) => connection.parser.feed(bytes, head, content),
            (head, None) => connection.parser.feed(bytes, head, &mut Discard),
        };
        let (used, answer) = match fed {
            Ok((_, None)) => return self.read_end(id),
            Ok((used, Some(answer))) => (used, answer),
            Err(why) => return self.fail(id, FailureKind::BadResponse, Some(why.0)),
        };
        self.take_answer(id, &answer, now);
        if used < count {
            return self.unsolicited(id, now);
        }
        if !answer.reusable
            || !self.shared.plan.request.keep_alive
            || self.connections[id].left == 0
        {
            return self.reopen(id);
        }
        if self.is_ended(id) {
            return self.read_end(id);
        }
        self.refill(id);
    }

    /// The response to the oldest request of a connection is complete.
    pub(super) fn take_answer(&mut self, id: usize, answer: &CompleteResponse, now: Nanos) {
        let connection = &mut self.connections[id];
        let Some(request) = connection.pending.pop_front() else {
            return;
        };
        connection.reset_attempts();
        connection.note_free_place(now);
        self.outstanding -= 1;
        let RunContext { plan, requests, .. } = self.shared;
        let end = match &mut self.users {
            Some(users) if users.has_workload() => {
                let end = users.judge(id, answer.status);
                connection.count_for_pace(&request, answer, end.is_ok(), now);
                end
            }
            _ => connection.judge(&request, answer, &plan.request, requests, now),
        };
        self.recorder
            .answered(&request, answer, end, now, self.shared.live);
        self.request_ended(id, &request, end.is_ok(), now);
    }
}
