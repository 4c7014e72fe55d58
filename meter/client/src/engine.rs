//! The client engine: one thread, one epoll, its share of the connections.
//!
//! The hot path of an answered request is `Engine::readable`: one `recv`, one parse, one `send`,
//! and a clock read after the first and before the last. `lifecycle` opens and closes connections.
//! `open` has the schedule of an open loop. `users` and `sessions` have users who pause between
//! requests or make several related requests. `http2` has connections with streams.

mod bandwidth;
mod harvest;
mod http2;
mod lifecycle;
mod open;
mod sessions;
mod usage;
mod users;
mod wait;

use std::collections::VecDeque;

use rustix::event::epoll;

use crate::connection::{ClientConnection, ConnectionState, Flushed};
use crate::http2::StreamEnd;
use crate::live_snapshot::ThreadSnapshots;
use crate::outcome::{FailureKind, Fault};
use crate::recorder::{Live, Pending, Recorder};
use crate::request::Requests;
use crate::scheduler_stats::SchedulerStats;
use crate::tickets::{Agreed, Arrival, Gate, Tickets, Times};
use crate::transport::{Received, Target};
use crate::{Error, Plan, limits};
use bandwidth::LineTimers;
use base_clock::{Nanos, nanos};
pub use harvest::Harvest;
use open::Open;
pub use usage::ThreadUsage;
use usage::UsageReadings;
use users::{Ended, Users};

/// The data that all threads of a run share.
pub(crate) struct RunContext<'a> {
    pub plan: &'a Plan,
    pub target: &'a Target,
    pub requests: &'a Requests,
    pub tickets: &'a Tickets<'a>,
    pub(crate) gate: &'a Gate,
    pub live: &'a Live,
    /// The run's times, if they are decided during the run.
    pub(crate) agreed: Option<&'a Agreed>,
    pub scheduler_stats: &'a SchedulerStats,
    pub(crate) snapshots: &'a ThreadSnapshots,
}

/// Bytes read at once, and the most that is read of one connection before the other connections.
const READ: usize = 64 * 1024;
/// Events taken from epoll at once.
const EVENTS: usize = 256;

struct Engine<'a> {
    shared: &'a RunContext<'a>,
    epoll: std::os::fd::OwnedFd,
    connections: Vec<ClientConnection>,
    buffer: Box<[u8]>,
    recorder: Recorder,
    times: Times,
    timeout: Nanos,
    /// Requests may be sent: the gate is open.
    started: bool,
    /// When the first ticket was refused.
    stopped_at: Option<Nanos>,
    /// Requests issued and not finished, warm-up included.
    outstanding: usize,
    /// When timeouts and pauses are checked next.
    next_sweep: Nanos,
    /// The schedule, if there is one and the gate is open.
    open: Option<Open>,
    /// The users that make the requests, if the plan has pauses or sessions.
    users: Option<Users<'a>>,
    /// When the connections of a ramp are opened, in order.
    starts: VecDeque<(Nanos, usize)>,
    /// Why the last attempt to connect failed, if none has succeeded since.
    no_connection: Option<Fault>,
    /// When connections of limited bandwidth may continue.
    wakes: LineTimers,
    usage: UsageReadings,
    /// Index of this thread.
    thread: usize,
    /// Requests that every connection may have in flight.
    depth: usize,
    /// Requests that have ended on streams; kept to reuse its memory.
    ends: Vec<StreamEnd>,
}

/// Index and share of one thread.
#[derive(Clone, Copy)]
pub(crate) struct ThreadPart {
    pub(crate) thread: usize,
    pub(crate) threads: usize,
    pub(crate) connections: usize,
}

/// Carries out a thread's part of the plan; `arrival` is given up when its connections are open.
pub(crate) fn run(
    shared: &RunContext<'_>,
    part: ThreadPart,
    arrival: Arrival<'_>,
) -> Result<Harvest, Error> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| Error::System {
        what: "create an epoll",
        source: errno.into(),
    })?;
    let never = Times::NEVER;
    let mut engine = Engine {
        shared,
        epoll,
        connections: (0..part.connections)
            .map(|_| ClientConnection::of(&shared.plan.target, &shared.plan.load, shared.requests))
            .collect(),
        buffer: vec![0; READ].into_boxed_slice(),
        recorder: Recorder::new(never.start, never.end, None, false),
        times: never,
        timeout: nanos(shared.plan.request.timeout),
        started: false,
        stopped_at: None,
        outstanding: 0,
        next_sweep: 0,
        open: None,
        users: None,
        starts: VecDeque::new(),
        no_connection: None,
        wakes: LineTimers::default(),
        usage: UsageReadings::default(),
        thread: part.thread,
        depth: shared.plan.load.depth,
        ends: Vec::new(),
    };
    let mut events = Vec::with_capacity(EVENTS);
    engine.open_all(&mut events)?;
    drop(arrival);
    let opened_at = shared.gate.wait();
    if shared.plan.load.schedule.is_some() || shared.plan.has_users() {
        limits::precise_timers();
    }
    engine.start(
        Times::of(&shared.plan.length, &shared.plan.load, opened_at),
        opened_at,
        part,
    );
    while !(engine.stopped_at.is_some() && engine.outstanding == 0 || shared.tickets.is_stopped()) {
        if let Some(agreed) = shared.agreed {
            engine.adopt(agreed.times());
        }
        let until = engine.wake_at();
        engine.turn(&mut events, until)?;
    }
    Ok(engine.finish())
}

impl Engine<'_> {
    /// When the thread has something to do without an event.
    fn wake_at(&self) -> Nanos {
        let end = match (&self.open, self.stopped_at) {
            (_, Some(_)) => Nanos::MAX,
            (Some(open), None) => open.wake_at(self.times.last),
            (None, None) => self.times.last,
        };
        let user = self.users.as_ref().map_or(Nanos::MAX, Users::next);
        let start = self.starts.front().map_or(Nanos::MAX, |&(at, _)| at);
        let line = self.wakes.next();
        self.next_sweep.min(end).min(user).min(start).min(line)
    }

    /// Takes over the run's times, which may not have been known before.
    fn adopt(&mut self, times: Times) {
        if self.times != times {
            self.times = times;
            self.recorder.adopt(times);
        }
    }

    /// True if nothing more is sent although no ticket was refused.
    fn is_over(&self, now: Nanos) -> bool {
        match &self.open {
            Some(open) if !open.is_exhausted() => false,
            // A user may pause for long before asking for a ticket that does not exist.
            _ => now >= self.times.last || self.users.is_some() && self.shared.tickets.are_out(),
        }
    }

    /// Waits for events, at most until `until`, and handles them.
    fn turn(&mut self, events: &mut Vec<epoll::Event>, until: Nanos) -> Result<(), Error> {
        self.wait(events, until)?;
        self.sample();
        for event in events.iter() {
            let (id, flags) = (event.data.u64() as usize, event.flags);
            match self.connections[id].state {
                ConnectionState::Open(_) if flags.intersects(!epoll::EventFlags::OUT) => {
                    self.readable(id)
                }
                ConnectionState::Open(_) => self.write(id),
                ConnectionState::Connecting(..) => self.connected(id),
                ConnectionState::Shaking(..) => self.continue_handshake(id),
                ConnectionState::Idle | ConnectionState::Paused(_) => {}
            }
        }
        if !self.starts.is_empty() {
            self.start_due_connections();
        }
        self.wake_users();
        self.run_schedule();
        let now = base_clock::now();
        self.resume_paced(now);
        let is_empty = self.spins() && events.is_empty() && now < until;
        self.recorder.turn(now, is_empty);
        let is_over = self.stopped_at.is_none() && self.is_over(now);
        self.publish_snapshot(now);
        if now >= self.next_sweep || is_over {
            self.sweep(now);
            // The copy's time belongs to this turn, not to the next one, which may be empty.
            self.recorder.work.resume(base_clock::now());
        }
        self.read_usage_at_edges(now);
        Ok(())
    }

    /// Leaves a copy of the measurements for the live view, if one is due.
    fn publish_snapshot(&self, now: Nanos) {
        let is_open =
            |connection: &&ClientConnection| matches!(connection.state, ConnectionState::Open(_));
        let connected = || self.connections.iter().filter(is_open).count();
        self.shared
            .snapshots
            .publish(self.thread, now, &self.recorder, connected);
    }

    /// The hot path: reads responses from the socket and sends new requests.
    fn readable(&mut self, id: usize) {
        let Some(room) = self.reading_room(id) else {
            return;
        };
        let connection = &mut self.connections[id];
        let ConnectionState::Open(wire) = &mut connection.state else {
            return;
        };
        let count = match wire.recv(&mut self.buffer, room) {
            Received::Bytes(count) => count,
            Received::Nothing => return self.write(id),
            end => return self.ended(id, end),
        };
        let now = base_clock::now();
        if connection.http2.is_some() {
            return self.read_streams(id, count, now);
        }
        if self.users.as_ref().is_some_and(Users::has_workload) {
            return self.read_content(id, count, now);
        }
        let (mut bytes, mut answered) = (&self.buffer[..count], false);
        while !bytes.is_empty() {
            if connection
                .pending
                .front()
                .is_none_or(|request| request.sent_at == 0)
            {
                return self.unsolicited(id, now);
            }
            let (used, answer) = match connection.feed(bytes, self.shared.requests) {
                Ok(fed) => fed,
                Err(why) => return self.fail(id, FailureKind::BadResponse, Some(why.0)),
            };
            bytes = &bytes[used..];
            let Some(answer) = answer else { break };
            answered = true;
            let Some(request) = connection.pending.pop_front() else {
                return;
            };
            let RunContext { plan, requests, .. } = self.shared;
            let end = connection.judge(&request, &answer, &plan.request, requests, now);
            self.recorder
                .answered(&request, &answer, end, now, self.shared.live);
            self.outstanding -= 1;
            connection.reset_attempts();
            connection.note_free_place(now);
            if let Some(users) = &mut self.users {
                let (request, good) = (&request, end.is_ok());
                let ended = Ended { request, good, now };
                users.ended(id, &ended, &mut self.recorder, self.shared.tickets);
            }
            let has_served = connection.left == 0 && connection.pending.is_empty();
            if !answer.reusable || !self.shared.plan.request.keep_alive || has_served {
                return self.reopen(id);
            }
        }
        if self.is_ended(id) {
            return self.read_end(id);
        }
        if answered {
            self.refill(id);
        }
    }

    /// True if the last read found the end of the connection.
    fn is_ended(&self, id: usize) -> bool {
        matches!(&self.connections[id].state, ConnectionState::Open(wire) if wire.is_ended())
    }

    /// Handles a known end of a connection, because no event will wake the thread for it.
    fn read_end(&mut self, id: usize) {
        if self.is_ended(id) {
            self.readable(id);
        }
    }

    /// Issues requests until the connection is as full as the plan says.
    fn refill(&mut self, id: usize) {
        let now = base_clock::now();
        if self.open.is_some() {
            self.offer_place(id);
            return self.serve_waiting(now);
        }
        if self.users.is_some() {
            return self.write(id);
        }
        while self.connections[id].has_room_for_request(self.shared.plan.load.depth)
            && self.connections[id].left > 0
            && self.issue(id, now)
        {}
        self.write(id);
    }

    /// Issues one request on a connection, unless the run is over.
    fn issue(&mut self, id: usize, now: Nanos) -> bool {
        let Some(ticket) = self.shared.tickets.take(&self.times, now) else {
            self.stopped_at.get_or_insert(now);
            return false;
        };
        let index = self.shared.requests.pick(ticket.number);
        let connection = &mut self.connections[id];
        let free_at = connection
            .free_at
            .max(if ticket.measured { self.times.start } else { 0 });
        let request = Pending {
            index,
            class: 0,
            measured: ticket.measured,
            due: free_at,
            free_at,
            sent_at: 0,
            pause: 0,
        };
        connection.push(request, self.shared.requests.bytes(index));
        self.recorder.issue(ticket.measured, now);
        self.outstanding += 1;
        true
    }

    fn write(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let flushed = if connection.http2.is_some() {
            let RunContext { plan, requests, .. } = self.shared;
            connection.flush_streams(requests, plan.load.depth, base_clock::now())
        } else {
            connection.flush(base_clock::now())
        };
        match flushed {
            Ok(flushed) => {
                if let Flushed::At(at) = flushed {
                    self.wakes.add(at, id);
                }
                let needs_room = flushed == Flushed::NeedsRoom;
                if connection.watches_room != needs_room {
                    connection.watches_room = needs_room;
                    self.watch(id);
                }
            }
            // An early response may be readable before the close: the next event brings it.
            Err(_) => connection.stop_writing(),
        }
    }
}

/// Events that epoll reports: room to write, and input with its end.
fn interest(room: bool, input: bool) -> epoll::EventFlags {
    // epoll always reports errors and the end of both directions. If nothing else is watched, they
    // are reported once.
    let mut flags = match (room, input) {
        (false, false) => epoll::EventFlags::ET,
        _ => epoll::EventFlags::empty(),
    };
    flags.set(epoll::EventFlags::OUT, room);
    flags.set(epoll::EventFlags::IN | epoll::EventFlags::RDHUP, input);
    flags
}
