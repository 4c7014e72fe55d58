//! Users: they make the requests of a connection if a plan has pauses or several requests in a row.
//!
//! A user has a place for a connection. In a closed loop every place has one user for the whole
//! run. In an open loop a user arrives with each session and leaves with it. A heap of timers has
//! the time of each user's next request, so ten thousand users cost a comparison or two each. This
//! module does no IO.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::outcome::{FailureKind, Fault};
use crate::pace::unit;
use crate::recorder::{Pending, Recorder};
use crate::sink::Collect;
use crate::tickets::Tickets;
use crate::workload::{RenderedRequest, ResponseVerdict, VisitorSession, Workload};
use crate::{Pace, Plan, Think};
use base_clock::{Nanos, nanos};
use millrace_stats::random::mix;

/// Requests of one session that are counted as abandoned at most; a plan has fewer.
const LONGEST_SESSION: u64 = 1_000_000;

/// The users of one thread.
pub(super) struct Users<'a> {
    workload: Option<&'a Workload>,
    pace: Pace,
    /// Requests of a session that no workload plans.
    length: u64,
    is_open: bool,
    list: Vec<User>,
    timers: BinaryHeap<Reverse<(Nanos, usize)>>,
    seed: u64,
    draws: u64,
}

struct User {
    visit: Visit,
    /// The planned pause before the current or next request.
    pause: Nanos,
    /// The current request of a workload, and what was received in response.
    asked: RenderedRequest,
    bytes: Vec<u8>,
    content: Collect,
}

/// Why a user is at a place.
enum Visit {
    /// No user.
    Absent,
    /// The closed loop: one request after the other until the run ends.
    Endless,
    /// This number of requests after the current one.
    Counted(u64),
    /// The requests of a workload's session.
    Planned(Box<VisitorSession>),
}

/// How a request ended, for the user who made it.
pub(super) struct Ended<'r> {
    pub request: &'r Pending,
    pub good: bool,
    pub now: Nanos,
}

impl<'a> Users<'a> {
    /// The users of one thread's places; `None` if connections need no users.
    pub(super) fn new(plan: &'a Plan, thread: usize, places: usize) -> Option<Self> {
        let workload = plan.request.workload.as_deref();
        if !plan.has_users() {
            return None;
        }
        let room = crate::body::room(plan.load.connections);
        let user = || User {
            visit: Visit::Absent,
            pause: 0,
            asked: RenderedRequest {
                class: 0,
                head: plan.request.method == "HEAD",
                wants_body: false,
                wants_fields: false,
            },
            bytes: Vec::new(),
            content: Collect::new(room),
        };
        Some(Self {
            workload,
            pace: plan.load.pace,
            length: plan.load.session.unwrap_or(1),
            is_open: plan.load.schedule.is_some(),
            list: (0..places).map(|_| user()).collect(),
            timers: BinaryHeap::with_capacity(places),
            seed: mix(SEED, thread as u64),
            draws: 0,
        })
    }

    /// True if the contents of responses may be needed.
    pub(super) fn has_workload(&self) -> bool {
        self.workload.is_some()
    }

    /// True if the place belongs to a session.
    pub(super) fn is_held(&self, id: usize) -> bool {
        !matches!(self.list[id].visit, Visit::Absent)
    }

    /// Time of the next user's request.
    pub(super) fn next(&self) -> Nanos {
        self.timers
            .peek()
            .map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }

    /// A user whose pause is over, and the time at which it ended.
    pub(super) fn due(&mut self, now: Nanos) -> Option<(Nanos, usize)> {
        if self.next() > now {
            return None;
        }
        self.timers.pop().map(|Reverse(timer)| timer)
    }

    /// Arms the first request of a closed loop's user: after a random part of a pause from `at`, so
    /// that users do not align.
    pub(super) fn arm_first(&mut self, id: usize, at: Nanos) {
        let part = unit(self.random());
        let pause = match self.pace {
            Pace::AtOnce => 0,
            // The rest of an exponential pause has the distribution of the whole.
            Pace::Think(think @ Think::Exponential(_)) => think.draw(self.random()),
            Pace::Think(think) => (think.draw(self.random()) as f64 * part) as Nanos,
            Pace::Cycle(cycle) => (nanos(cycle) as f64 * part) as Nanos,
        };
        self.arm(id, at, pause);
    }

    fn arm(&mut self, id: usize, after: Nanos, pause: Nanos) {
        self.list[id].pause = pause;
        self.timers.push(Reverse((after.saturating_add(pause), id)));
    }

    fn random(&mut self) -> u64 {
        self.draws += 1;
        mix(self.seed, self.draws)
    }

    /// The planned pause before the request that is made now.
    pub(super) fn pause(&self, id: usize) -> Nanos {
        self.list[id].pause
    }

    /// A user arrives at the place, with the session of this number.
    pub(super) fn enter(&mut self, id: usize, session: u64) {
        let visit = match self.workload {
            Some(workload) => Visit::Planned(Box::new(workload.session(session))),
            None if self.is_open => Visit::Counted(self.length - 1),
            None => Visit::Endless,
        };
        self.list[id].visit = visit;
    }

    /// The user leaves the place.
    pub(super) fn leave(&mut self, id: usize) {
        self.list[id].visit = Visit::Absent;
        self.list[id].pause = 0;
    }

    /// Renders the user's current request, if there is a workload; returns its class.
    pub(super) fn render(&mut self, id: usize) -> Option<u16> {
        let user = &mut self.list[id];
        let (Some(workload), Visit::Planned(session)) = (self.workload, &mut user.visit) else {
            return None;
        };
        user.bytes.clear();
        user.content.clear();
        user.asked = session.render(workload, &mut user.bytes);
        Some(user.asked.class)
    }

    /// The request as it was rendered.
    pub(super) fn bytes(&self, id: usize) -> &[u8] {
        &self.list[id].bytes
    }

    /// True if the current request was a HEAD, and the sink for the content if it is needed.
    pub(super) fn content(&mut self, id: usize) -> (bool, Option<&mut Collect>) {
        let user = &mut self.list[id];
        let wanted = user.asked.wants_body || user.asked.wants_fields;
        (user.asked.head, wanted.then_some(&mut user.content))
    }

    /// Judges the response by the workload; the error says why it is not good.
    pub(super) fn judge(&mut self, id: usize, status: u16) -> Result<(), Fault> {
        let user = &mut self.list[id];
        let (Some(workload), Visit::Planned(session)) = (self.workload, &mut user.visit) else {
            return Ok(());
        };
        let too_long = user.asked.wants_body && user.content.is_truncated();
        let (fields, body) = (user.content.head(), user.content.content());
        match session.answered(workload, status, fields, body) {
            ResponseVerdict::BadStatus => Err((FailureKind::of_status(status), None)),
            _ if too_long => Err((
                FailureKind::BadBody,
                Some("longer than what is kept of a body"),
            )),
            ResponseVerdict::Good => Ok(()),
            ResponseVerdict::BadBody(why) => Err((FailureKind::BadBody, Some(why))),
            ResponseVerdict::NoMatch(why) => Err((FailureKind::NoMatch, Some(why))),
        }
    }

    /// The user's request has ended: the user makes the next request, or leaves.
    pub(super) fn ended(
        &mut self,
        id: usize,
        ended: &Ended<'_>,
        recorder: &mut Recorder,
        tickets: &Tickets<'_>,
    ) {
        let (request, now) = (ended.request, ended.now);
        let measured = u64::from(request.measured);
        if matches!(self.list[id].visit, Visit::Absent) {
            return;
        }
        if matches!(self.list[id].visit, Visit::Endless) {
            let pause = self.pause_after(request, now, recorder);
            return self.arm(id, now, pause);
        }
        if ended.good
            && let Some(pause) = self.advance(id)
        {
            return self.arm(id, now, pause);
        }
        if ended.good {
            recorder.visits.completed += measured;
        } else {
            recorder.visits.broken_off += measured;
            if self.is_open {
                self.abandon(id, request.measured, recorder, tickets);
            }
        }
        let rest = self.rest(id);
        self.leave(id);
        if !self.is_open {
            self.arm(id, now, rest);
        }
    }

    /// A session that was due was not started: its first `request`, which gets its class here, was
    /// never sent.
    pub(super) fn session_not_started(
        &mut self,
        request: &mut Pending,
        session: u64,
        recorder: &mut Recorder,
        tickets: &Tickets<'_>,
    ) {
        recorder.visits.started += u64::from(request.measured);
        recorder.visits.broken_off += u64::from(request.measured);
        let left = match self.workload {
            Some(workload) => {
                let mut session = workload.session(session);
                request.class = session.render(workload, &mut Vec::new()).class;
                remaining(&mut session, workload)
            }
            None => self.length - 1,
        };
        recorder.made(request);
        count_abandoned(left, request.measured, recorder, tickets);
    }

    /// The requests that this session will not make any more.
    fn abandon(
        &mut self,
        id: usize,
        measured: bool,
        recorder: &mut Recorder,
        tickets: &Tickets<'_>,
    ) {
        let left = match (&mut self.list[id].visit, self.workload) {
            (Visit::Planned(session), Some(workload)) => remaining(session, workload),
            (Visit::Counted(left), _) => *left,
            _ => 0,
        };
        count_abandoned(left, measured, recorder, tickets);
    }

    /// Advances to the session's next request and returns the pause before it.
    fn advance(&mut self, id: usize) -> Option<Nanos> {
        match (&mut self.list[id].visit, self.workload) {
            (Visit::Planned(session), Some(workload)) => session.advance(workload).map(nanos),
            (Visit::Counted(left), _) => {
                *left = left.checked_sub(1)?;
                Some(self.think())
            }
            _ => None,
        }
    }

    /// The pause before a closed loop's next session.
    fn rest(&mut self, id: usize) -> Nanos {
        match (&mut self.list[id].visit, self.workload) {
            (Visit::Planned(session), Some(workload)) if !self.is_open => {
                nanos(session.rest(workload))
            }
            _ => 0,
        }
    }

    fn think(&mut self) -> Nanos {
        match self.pace {
            Pace::Think(think) => think.draw(self.random()),
            Pace::AtOnce | Pace::Cycle(_) => 0,
        }
    }

    /// The pause of a closed loop after `request`, which ended `now`.
    fn pause_after(&mut self, request: &Pending, now: Nanos, recorder: &mut Recorder) -> Nanos {
        let Pace::Cycle(cycle) = self.pace else {
            return self.think();
        };
        let began = if request.sent_at == 0 {
            request.due
        } else {
            request.sent_at
        };
        let next = began.saturating_add(nanos(cycle));
        recorder.visits.missed_cycles += u64::from(request.measured && next < now);
        next.saturating_sub(now)
    }
}

/// Requests that a session would still make after its current one.
fn remaining(session: &mut VisitorSession, workload: &Workload) -> u64 {
    let mut left = 0;
    while left < LONGEST_SESSION && session.advance(workload).is_some() {
        left += 1;
    }
    left
}

/// Each takes a ticket, so that a counted run counts them too.
fn count_abandoned(left: u64, measured: bool, recorder: &mut Recorder, tickets: &Tickets<'_>) {
    let count = (0..left)
        .take_while(|_| tickets.numbered(measured).is_some())
        .count() as u64;
    if measured {
        recorder.issued += count;
        recorder.abandoned += count;
    }
}

/// Seed of the random pauses of all threads.
const SEED: u64 = 0x7468_696e_6b00;
