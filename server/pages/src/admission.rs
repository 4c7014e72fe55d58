//! Admission: which fill runs next, and which work is refused while there is more than can be done.
//!
//! Hits never come here. The connections to the database fix how many fills run at once, and there
//! is nothing to probe for: the *wait* is limited. The unit is the flight: a fill that many
//! requests wait for counts once and goes first.
//!
//! - *At arrival* work is refused if the queue ahead of it would take longer than the deadline, or
//!   if its priority is being cut.
//! - *While it waits* the order is: priority, then waiting requests for each expected millisecond,
//!   then age. While the queue does not and would not empty in a tenth of a second, the newest
//!   goes first, as the oldest will be too late in any case (Maurer, *Fail at Scale*, ACM Queue
//!   13/8, 2015). What has waited for longer than the deadline is refused.
//! - [Strangers](Priority::Stranger) may use a quarter of the connections while others need them; a
//!   flight that a second client joins is no stranger's.
//!
//! The cut follows the way of Uber's Cinnamon: a controller turns the growth of what waits into the
//! share to refuse, the lowest priority first, and within the priority that is cut in part a keyed
//! hash of the client decides, so that a retry gains nothing.

mod queue;
mod shed;
mod visitors;

use std::{
    any::Any,
    collections::HashMap,
    hash::BuildHasher,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use base_clock::Boottime;
use millpond_http::ClientNetwork;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use queue::{Queue, Waiting};
use shed::Shed;
pub use visitors::Visitors;

/// A queue that has not been empty for this long, and would take as long to empty, is a standing
/// queue.
const STANDING: Duration = Duration::from_millis(100);
/// Others need the connections if one of them found none within this time.
const LATELY: Duration = Duration::from_millis(100);
/// How long a client's place in the order of refusals holds, and how long a client is remembered at
/// the least.
const HOUR: Duration = Duration::from_secs(3600);
/// Fills of one client, and of one network (a /24, or a /48 of IPv6), that are queued or run at
/// once; what is more has the lowest priority.
pub const CLIENT_FILLS: u32 = 32;
/// See [`CLIENT_FILLS`].
pub const NETWORK_FILLS: u32 = 4 * CLIENT_FILLS;
/// Strangers' fills that wait; beyond them strangers are refused, as the store has a limit for all
/// flights together.
const MOST_LOW: usize = 1024;
/// The weight of the newest fill in the mean service time.
const NEWEST: f64 = 1.0 / 32.0;

/// Deadlines for which a write may wait: people would rather wait than send a form again.
const WRITE_PATIENCE: u32 = 5;

/// The order in which work is done, and in the reverse order refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Forms and sign-in.
    Write,
    /// A page that a person looks at.
    Document,
    /// Parts of a page, and programs.
    Resource,
    /// A page that a browser loads before its user has asked for it.
    Prefetch,
    /// Made ahead by the server itself.
    Ahead,
    /// An address that no client has asked for lately, of a client that was not seen lately.
    Stranger,
    /// A program that says that it is a crawler, and a client with too many misses at once.
    Bot,
}

/// Number of priorities.
const PRIORITIES: usize = Priority::Bot as usize + 1;

/// Work that asks to be done.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its priority.
    pub priority: Priority,
    /// The client.
    pub client: ClientNetwork,
    /// True if the client's fills are not counted: it is this machine, or stands for many.
    pub is_exempt: bool,
    /// When it arrived.
    pub at: Boottime,
    /// How long it is expected to take.
    pub cost: Duration,
}

/// Work was refused: there is too much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The most seconds after which to ask again.
    most: u32,
}

impl Refused {
    /// Too much at once, which will soon be over.
    pub const BRIEFLY: Self = Self { most: 1 };

    /// Returns the seconds after which one client may ask again. Each call gives another number, so
    /// that those who are refused together do not return together.
    #[must_use]
    pub fn retry_after(self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        1 + NEXT.fetch_add(1, Ordering::Relaxed) % self.most
    }
}

/// Means by which pages are made.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// Connections to the database that read.
    pub readers: usize,
    /// Connections that write.
    pub writers: usize,
    /// Threads that render.
    pub workers: usize,
}

/// Figures for the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionStats {
    /// Fills that run.
    pub running: usize,
    /// Fills that wait.
    pub waiting: usize,
    /// Fills that ran and ended.
    pub finished: u64,
    /// Work refused at arrival.
    pub refused: u64,
    /// Work refused after it had waited too long.
    pub expired: u64,
}

/// Decides which work is done next.
pub struct Admission {
    slots: usize,
    /// Slots for the [low](is_low) while others need them.
    low_slots: usize,
    writers: usize,
    deadline: Duration,
    clock: fn() -> Boottime,
    visitors: Visitors,
    /// Gives flights their numbers.
    hasher: foldhash::fast::RandomState,
    state: Mutex<State>,
}

struct State {
    queue: Queue,
    shed: Shed,
    running: usize,
    /// Fills among them that are [low](is_low).
    running_low: usize,
    /// Mean time that a slot is taken for one fill, in seconds.
    service: f64,
    /// When the queue was last empty.
    emptied: Boottime,
    /// When other work than that of strangers last found no slot.
    others: Boottime,
    /// Fills of each client and network.
    fills: HashMap<Counted, u32, foldhash::fast::RandomState>,
    hour: Boottime,
    writes: Writes,
    stats: AdmissionStats,
}

/// Whose fills are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Counted {
    Client(ClientNetwork),
    Network(ClientNetwork),
}

/// Writes that run. Their order is the database's.
#[derive(Default)]
struct Writes {
    running: usize,
    /// Mean time between the ends of two while some run, in seconds.
    pace: f64,
    /// When the last one ended, or the first of those that run began.
    latest: Boottime,
}

/// True for priorities that may use only a share of the slots while others need them.
fn is_low(priority: Priority) -> bool {
    priority >= Priority::Stranger
}

impl Admission {
    /// Admits as many fills at once as `capacity` says, of which none waits for longer than
    /// `deadline`.
    #[must_use]
    pub fn new(capacity: Capacity, deadline: Duration) -> Arc<Self> {
        Self::with_clock(capacity, deadline, Boottime::now)
    }

    fn with_clock(capacity: Capacity, deadline: Duration, clock: fn() -> Boottime) -> Arc<Self> {
        let now = clock();
        Arc::new(Self {
            // Each worker renders one while the database reads others.
            slots: (capacity.readers + capacity.workers).max(1),
            low_slots: (capacity.readers / 4).max(1),
            writers: capacity.writers.max(1),
            deadline,
            clock,
            visitors: Visitors::new(),
            hasher: foldhash::fast::RandomState::default(),
            state: Mutex::new(State {
                queue: Queue::default(),
                shed: Shed::new(now),
                running: 0,
                running_low: 0,
                service: 0.0,
                emptied: now,
                others: Boottime::from_nanos(0),
                fills: HashMap::default(),
                hour: now,
                writes: Writes::default(),
                stats: AdmissionStats::default(),
            }),
        })
    }

    /// The clients that were seen lately.
    #[must_use]
    pub const fn visitors(&self) -> &Visitors {
        &self.visitors
    }

    /// Admits work to the queue, with the priority that its client has left it. Call it before
    /// anything is allocated for the work.
    ///
    /// # Errors
    /// There is more work than can be done within the deadline, or this kind of work is being cut.
    pub fn arrive(&self, arrival: &mut Arrival) -> Result<(), Refused> {
        let expired;
        let mut state = self.state.lock();
        expired = self.tick(&mut state, arrival.at);
        if state.has_too_many(arrival) {
            arrival.priority = Priority::Bot;
        }
        let is_cut = state.shed.arrives(arrival);
        let is_low = is_low(arrival.priority);
        let slots = match is_low && !self.may_run_low(&state, arrival.at) {
            true => self.low_slots,
            false => self.slots,
        };
        let ahead = state.queue.ahead_of(arrival.priority);
        let wait = ahead as f64 * state.service / slots as f64;
        let is_late = wait > self.patience(&state).as_secs_f64();
        let refused = match is_cut || is_late || is_low && ahead >= MOST_LOW {
            true => Err(refusal(&state)),
            false => Ok(()),
        };
        // Who waited for what has expired is woken when the lock is free.
        drop(state);
        drop(expired);
        refused
    }

    /// Counts work that was refused at arrival.
    pub fn count_refused(&self) {
        self.state.lock().stats.refused += 1;
    }

    /// The time for which work may wait. Where one fill takes longer than the deadline, all that
    /// waits has to wait for that.
    fn patience(&self, state: &State) -> Duration {
        self.deadline.max(Duration::from_secs_f64(state.service))
    }

    /// Waits until the work may begin. `key` is that of its flight, which others may
    /// [join](Self::joined); none if it is for one request alone.
    ///
    /// # Errors
    /// It has waited for longer than the deadline.
    pub async fn turn(
        self: &Arc<Self>,
        key: Option<&[u8]>,
        arrival: Arrival,
    ) -> Result<Turn, Refused> {
        let flight = key.map(|key| self.hasher.hash_one(key));
        let now = (self.clock)();
        // It may have waited for another flight before.
        let arrival = Arrival { at: now, ..arrival };
        let waiting = {
            let mut state = self.state.lock();
            state.count(&arrival, 1);
            if state.queue.is_empty() && self.may_run(&state, arrival.priority, now) {
                return Ok(self.start(&mut state, arrival, now));
            }
            if !is_low(arrival.priority) {
                state.others = now;
            }
            let (sender, receiver) = oneshot::channel();
            let mean = Duration::from_secs_f64(state.service);
            let (flight, serial) = state.queue.push(flight, arrival, mean, sender);
            TurnWaiter {
                admission: self.clone(),
                flight,
                serial,
                receiver,
            }
        };
        // What may run although others wait: the others are strangers.
        self.grant(now);
        let turn = waiting.await;
        turn.ok_or_else(|| refusal(&self.state.lock()))
    }

    /// Admits a write, which has a queue of its own at the database.
    ///
    /// # Errors
    /// The writes before it would take too long, or have hung for too long.
    pub fn write(self: &Arc<Self>, now: Boottime) -> Result<Writing, Refused> {
        let mut state = self.state.lock();
        let writes = &mut state.writes;
        // Those that wait for a connection, with this one.
        let wait = match (writes.running + 1).saturating_sub(self.writers) {
            0 => 0.0,
            waiting => (waiting as f64 * writes.pace).max(now.since(writes.latest).as_secs_f64()),
        };
        if wait > f64::from(WRITE_PATIENCE) * self.deadline.as_secs_f64() {
            state.stats.refused += 1;
            return Err(refusal(&state));
        }
        if writes.running == 0 {
            writes.latest = now;
        }
        writes.running += 1;
        Ok(Writing(self.clone()))
    }

    /// Notes that one more request waits for a flight, which takes over its priority if that is
    /// higher.
    pub fn joined(&self, key: &[u8], arrival: &Arrival) {
        let flight = self.hasher.hash_one(key);
        let at = (self.clock)();
        let mut state = self.state.lock();
        let mean = Duration::from_secs_f64(state.service);
        state
            .queue
            .joined(flight, &Arrival { at, ..*arrival }, mean);
    }

    /// Notes that a request that had [joined](Self::joined) a flight has gone before its end.
    pub fn left(&self, key: &[u8]) {
        let flight = self.hasher.hash_one(key);
        let mut state = self.state.lock();
        let mean = Duration::from_secs_f64(state.service);
        state.queue.left(flight, mean);
    }

    /// Refuses what has waited too long, and lets the share that is cut follow the load. It is
    /// called at each arrival and each end; an owner calls it also while there are none.
    pub fn look(self: &Arc<Self>, now: Boottime) {
        let expired = self.tick(&mut self.state.lock(), now);
        drop(expired);
        self.grant(now);
    }

    /// [Looks](Self::look) from a thread of its own, as long as there is another owner.
    /// While no request comes and none ends, only time says that work has waited too long.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn look_regularly(self: &Arc<Self>) -> io::Result<()> {
        let admission = Arc::downgrade(self);
        let look = move || {
            while let Some(admission) = admission.upgrade() {
                admission.look((admission.clock)());
                drop(admission);
                thread::sleep(STANDING);
            }
        };
        let thread = thread::Builder::new().name("admission".to_owned());
        thread.spawn(look).map(drop)
    }

    /// Figures for the owner.
    #[must_use]
    pub fn stats(&self) -> AdmissionStats {
        let state = self.state.lock();
        AdmissionStats {
            running: state.running,
            waiting: state.queue.len(),
            ..state.stats
        }
    }

    /// Returns what has waited too long. Who waits for it learns that when it is dropped, which is
    /// not to be under the lock.
    #[must_use]
    fn tick(&self, state: &mut State, now: Boottime) -> Vec<Waiting> {
        let mut expired = Vec::new();
        let patience = self.patience(state);
        while let Some(waiting) = state.queue.expire(now.minus(patience), patience) {
            state.stats.expired += u64::from(waiting.waiters);
            state.count(&waiting.arrival, -1);
            expired.push(waiting);
        }
        if state.queue.is_empty() {
            state.emptied = now;
        }
        if now.since(state.hour) > HOUR {
            state.hour = now;
            state.shed.next_hour();
            self.visitors.next_hour();
        }
        let wait = state.queue.len() as f64 * state.service / self.slots as f64;
        let (emptied, backlog) = (state.emptied, state.queue.len() + state.running);
        let wait = wait / self.patience(state).as_secs_f64();
        state.shed.tick(now, wait, emptied, backlog);
        expired
    }

    fn may_run(&self, state: &State, priority: Priority, now: Boottime) -> bool {
        let has_slot = state.running < self.slots;
        has_slot && (!is_low(priority) || self.may_run_low(state, now))
    }

    fn may_run_low(&self, state: &State, now: Boottime) -> bool {
        state.running_low < self.low_slots || now.since(state.others) > LATELY
    }

    fn start(self: &Arc<Self>, state: &mut State, arrival: Arrival, now: Boottime) -> Turn {
        state.running += 1;
        state.running_low += usize::from(is_low(arrival.priority));
        Turn(Arc::new(TakenSlot {
            admission: self.clone(),
            arrival,
            started: now,
        }))
    }

    /// Starts what may start.
    fn grant(self: &Arc<Self>, now: Boottime) {
        // A turn whose receiver has gone ends when it is dropped, which takes the lock.
        loop {
            let mut state = self.state.lock();
            if state.running >= self.slots {
                return;
            }
            let lowest = match self.may_run_low(&state, now) {
                true => Priority::Bot,
                false => Priority::Ahead,
            };
            // A short queue that never empties is in order: that of a fixed number of clients.
            let wait = state.queue.len() as f64 * state.service / self.slots as f64;
            let is_standing = now.since(state.emptied) > STANDING && wait > STANDING.as_secs_f64();
            let Some(Waiting {
                sender, arrival, ..
            }) = state.queue.pop(lowest, is_standing, now.minus(STANDING))
            else {
                return;
            };
            let turn = self.start(&mut state, arrival, now);
            drop(state);
            // The turn comes back, and ends, if who waited has gone.
            drop(sender.send(turn));
        }
    }

    fn end(self: &Arc<Self>, arrival: &Arrival, started: Boottime) {
        let now = (self.clock)();
        let mut state = self.state.lock();
        state.running -= 1;
        state.running_low -= usize::from(is_low(arrival.priority));
        state.count(arrival, -1);
        let taken = now.since(started).as_secs_f64();
        let mean = if state.service > 0.0 {
            state.service
        } else {
            taken
        };
        state.service = mean + (taken - mean) * NEWEST;
        state.stats.finished += 1;
        let expired = self.tick(&mut state, now);
        let is_idle = state.queue.is_empty();
        drop(state);
        drop(expired);
        if !is_idle {
            self.grant(now);
        }
    }
}

/// One to five seconds, more while more is refused.
fn refusal(state: &State) -> Refused {
    let most = 1 + (state.shed.share() * 4.0) as u32;
    Refused { most }
}

/// A write that runs, until this is dropped.
pub struct Writing(Arc<Admission>);

impl Drop for Writing {
    fn drop(&mut self) {
        let now = (self.0.clock)();
        let writes = &mut self.0.state.lock().writes;
        let taken = now.since(writes.latest).as_secs_f64();
        writes.pace += (taken - writes.pace) * NEWEST;
        writes.latest = now;
        writes.running -= 1;
    }
}

/// The right to use a slot, until it and what [`held`](Self::held) has given are dropped.
#[derive(Clone)]
pub struct Turn(Arc<TakenSlot>);

impl Turn {
    /// Returns what to give to work that may go on when its request has gone, such as a read of the
    /// database: the slot is taken as long as the work takes.
    #[must_use]
    pub fn held(&self) -> Arc<dyn Any + Send + Sync> {
        self.0.clone()
    }
}

struct TakenSlot {
    admission: Arc<Admission>,
    arrival: Arrival,
    started: Boottime,
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        self.admission.end(&self.arrival, self.started);
    }
}

impl State {
    fn has_too_many(&self, arrival: &Arrival) -> bool {
        let fills = |of: Counted| self.fills.get(&of).copied().unwrap_or(0);
        !arrival.is_exempt
            && (fills(Counted::Client(arrival.client)) >= CLIENT_FILLS
                || fills(network_of(arrival.client)) >= NETWORK_FILLS)
    }

    /// Adds to the fills of a client and its network.
    fn count(&mut self, arrival: &Arrival, by: i32) {
        if arrival.is_exempt {
            return;
        }
        for of in [Counted::Client(arrival.client), network_of(arrival.client)] {
            let fills = self.fills.entry(of).or_default();
            *fills = fills.saturating_add_signed(by);
            if *fills == 0 {
                self.fills.remove(&of);
            }
        }
    }
}

/// Waits for a turn; none if it was refused. Dropping it leaves the queue.
struct TurnWaiter {
    admission: Arc<Admission>,
    flight: u64,
    serial: u64,
    receiver: oneshot::Receiver<Turn>,
}

impl Future for TurnWaiter {
    type Output = Option<Turn>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Turn>> {
        Pin::new(&mut self.receiver).poll(context).map(Result::ok)
    }
}

impl Drop for TurnWaiter {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        let left = state.queue.remove(self.flight, self.serial);
        if let Some(left) = &left {
            state.count(&left.arrival, -1);
        }
        // A turn that has arrived meanwhile ends after this, when the lock is free.
        drop(state);
    }
}

/// Returns the network of a client: a /24, or a /48 of IPv6.
fn network_of(client: ClientNetwork) -> Counted {
    Counted::Network(match client {
        ClientNetwork::V4(address) => ClientNetwork::V4(address & !0xff),
        ClientNetwork::V6(bits) | ClientNetwork::V6Site(bits) => ClientNetwork::V6(bits & !0xffff),
    })
}

#[cfg(test)]
mod tests;
