//! The client engine: one thread, one epoll, its share of the connections.
//!
//! The hot path of an answered request is [`Engine::readable`]: one `recv`, one parse, one `send`, and a clock read
//! after the first and before the last. How connections come and go is in `lifecycle`, the schedule of an open loop in `open`.

mod lifecycle;
mod open;

use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use socket2::SockAddr;

use crate::clock::{self, MS, Nanos, nanos};
use crate::connection::{Connection, State};
use crate::outcome::Kind;
use crate::own::{Own, Usage};
use crate::recorder::{Live, Pending, Recorder};
use crate::request::Requests;
use crate::tickets::{Arrival, Gate, Tickets, Times};
use crate::{Error, Plan, limits};
use open::Open;

/// What all threads of a run share.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) address: &'a SockAddr,
    pub(crate) requests: &'a Requests,
    pub(crate) tickets: &'a Tickets<'a>,
    pub(crate) gate: &'a Gate,
    pub(crate) live: &'a Live,
    pub(crate) own: &'a Own,
}

/// What a thread brings home.
pub(crate) struct Harvest {
    pub(crate) recorder: Recorder,
    /// Places for a connection that were ever connected.
    pub(crate) established: usize,
    /// Places for a connection that never succeeded, however often they tried.
    pub(crate) never: usize,
    /// Measured requests without an end, because the run was stopped.
    pub(crate) in_flight: u64,
    /// CPU time of the measured part.
    pub(crate) cpu: Nanos,
    /// What the kernel kept from it in the measured part.
    pub(crate) usage: Usage,
    pub(crate) times: Times,
    /// When the first request could not be issued any more.
    pub(crate) stopped_at: Nanos,
}

/// Bytes read at once. Also the most that is read of one connection before the others have their turn.
const READ: usize = 64 * 1024;
/// Events taken from epoll at once.
const EVENTS: usize = 256;

struct Engine<'a> {
    shared: &'a Shared<'a>,
    epoll: std::os::fd::OwnedFd,
    connections: Vec<Connection>,
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
    /// When timeouts and pauses are looked at next.
    next_sweep: Nanos,
    /// The schedule, if there is one and the gate is open.
    open: Option<Open>,
    /// Why the last attempt to connect failed, if none has succeeded since.
    no_connection: Option<Kind>,
    /// What the kernel had kept from it when the measured part began.
    usage_at_start: Option<Usage>,
}

/// Which of the threads this is, and what its part is.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) thread: usize,
    pub(crate) threads: usize,
    pub(crate) connections: usize,
}

/// Carries out a thread's part of the plan; `arrival` is given up when its connections are open.
pub(crate) fn run(shared: &Shared<'_>, part: Part, arrival: Arrival<'_>) -> Result<Harvest, Error> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| Error::System {
        what: "create an epoll",
        source: errno.into(),
    })?;
    let never = Times {
        start: Nanos::MAX,
        end: Nanos::MAX,
    };
    let mut engine = Engine {
        shared,
        epoll,
        connections: (0..part.connections).map(|_| Connection::new()).collect(),
        buffer: vec![0; READ].into_boxed_slice(),
        recorder: Recorder::new(never.start, never.end, None, false),
        times: never,
        timeout: nanos(shared.plan.timeout),
        started: false,
        stopped_at: None,
        outstanding: 0,
        next_sweep: 0,
        open: None,
        no_connection: None,
        usage_at_start: None,
    };
    let mut events = Vec::with_capacity(EVENTS);
    engine.open_all(&mut events)?;
    drop(arrival);
    let opened_at = shared.gate.wait();
    if shared.plan.schedule.is_some() {
        limits::precise_timers();
    }
    engine.start(
        Times::new(opened_at, shared.plan.warmup, shared.plan.stop),
        opened_at,
        part,
    );
    while !(engine.stopped_at.is_some() && engine.outstanding == 0 || shared.tickets.is_stopped()) {
        let now = clock::now();
        let end = match (&engine.open, engine.stopped_at) {
            (Some(open), _) => open.wake_at(engine.times.end),
            (None, None) => engine.times.end,
            (None, Some(_)) => Nanos::MAX,
        };
        let until = engine.next_sweep.min(end);
        engine.turn(&mut events, until.saturating_sub(now))?;
    }
    Ok(engine.finish())
}

impl Engine<'_> {
    /// Waits for events, at most `patience`, and handles them.
    fn turn(&mut self, events: &mut Vec<epoll::Event>, patience: Nanos) -> Result<(), Error> {
        // Never longer than a tenth of a second, so that a stop is noticed.
        let patience = Duration::from_nanos(patience.min(100 * MS));
        let patience = Timespec::try_from(patience).unwrap_or(Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(Error::System {
                    what: "wait for events",
                    source: errno.into(),
                });
            }
        }
        self.sample();
        for event in events.iter() {
            let (id, flags) = (event.data.u64() as usize, event.flags);
            match self.connections[id].state {
                State::Open(_) if flags.intersects(!epoll::EventFlags::OUT) => self.readable(id),
                State::Open(_) => self.write(id),
                State::Connecting(..) => self.connected(id),
                State::Idle | State::Paused(_) => {}
            }
        }
        self.keep_schedule();
        let now = clock::now();
        self.recorder.turn(now);
        if now >= self.times.start && self.usage_at_start.is_none() {
            self.usage_at_start = Some(self.shared.own.read());
        }
        let is_over = now >= self.times.end && self.stopped_at.is_none() && self.open.is_none();
        if now >= self.next_sweep || is_over {
            self.sweep(now);
        }
        Ok(())
    }

    /// The hot path: answers are taken from the socket and new requests put in their place.
    fn readable(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        let State::Open(socket) = &connection.state else {
            return;
        };
        let count = match rustix::net::recv(socket, &mut *self.buffer, RecvFlags::empty()) {
            Ok((_, 0)) => return self.closed(id),
            Ok((_, count)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return self.write(id),
            Err(_) => return self.fail(id, Kind::Reset, None),
        };
        let now = clock::now();
        let (mut bytes, mut answered) = (&self.buffer[..count], false);
        while !bytes.is_empty() {
            if connection
                .pending
                .front()
                .is_none_or(|request| request.sent_at == 0)
            {
                return self.unsolicited(id, now);
            }
            let (used, answer) = match connection.parser.feed(bytes, self.shared.requests.head) {
                Ok(fed) => fed,
                Err(why) => return self.fail(id, Kind::BadResponse, Some(why.0)),
            };
            bytes = &bytes[used..];
            let Some(answer) = answer else { break };
            answered = true;
            let Some(request) = connection.pending.pop_front() else {
                return;
            };
            let good = self.shared.plan.is_good(answer.status);
            self.recorder
                .answered(&request, &answer, good, now, self.shared.live);
            self.outstanding -= 1;
            connection.fruitful();
            connection.free_at = now;
            let has_served = connection.left == 0 && connection.pending.is_empty();
            if !answer.reusable || !self.shared.plan.keep_alive || has_served {
                return self.reopen(id);
            }
        }
        if answered {
            self.refill(id);
        }
    }

    /// Issues requests until the connection is as full as the plan says.
    fn refill(&mut self, id: usize) {
        let now = clock::now();
        if self.open.is_some() {
            self.offer_place(id);
            return self.serve_waiting(now);
        }
        while self.connections[id].pending.len() < self.shared.plan.depth
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
            measured: ticket.measured,
            due: free_at,
            free_at,
            sent_at: 0,
        };
        connection.push(request, self.shared.requests.bytes(index));
        self.recorder.issued += u64::from(ticket.measured);
        self.outstanding += 1;
        true
    }

    fn write(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        match connection.flush(clock::now()) {
            Ok(all) if all != connection.watches_room => {}
            Ok(all) => {
                connection.watches_room = !all;
                if let State::Open(socket) = &connection.state
                    && let Err(errno) = epoll::modify(
                        &self.epoll,
                        socket,
                        epoll::EventData::new_u64(id as u64),
                        interest(!all),
                    )
                {
                    // Cannot fail for a socket that is registered; if it does, the connection is of no more use.
                    debug_assert!(false, "epoll_ctl: {errno}");
                    self.fail(id, Kind::ConnectFailed, None);
                }
            }
            // An early answer may be waiting to be read before the close: the next event brings it.
            Err(_) => connection.stop_writing(),
        }
    }
}

fn interest(room: bool) -> epoll::EventFlags {
    let read = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
    if room {
        read | epoll::EventFlags::OUT
    } else {
        read
    }
}
