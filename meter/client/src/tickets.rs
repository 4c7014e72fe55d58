//! Permits to send: the only module that knows when the warm-up and the run end.
//!
//! A ticket permits one request. Tickets are numbered over all threads, so a count is met exactly
//! and a file of URLs is walked in order for any number of threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::{LengthPlan, LoadPlan, Stop};
use base_clock::{Nanos, nanos};

/// Shared by all threads of a run.
pub(crate) struct Tickets<'a> {
    warm: AtomicU64,
    measured: AtomicU64,
    limit: u64,
    stop: &'a AtomicBool,
    /// A thread has failed, so the run is void.
    aborted: AtomicBool,
    /// Sessions begun, over all threads.
    sessions: AtomicU64,
}

/// When the parts of a run begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The measured part begins.
    pub start: Nanos,
    /// The measured part ends; `Nanos::MAX` for a run that counts requests.
    pub end: Nanos,
    /// After this time no request is issued. It is later than `end` if there is a ramp-down, which
    /// is not measured.
    pub last: Nanos,
}

impl Times {
    /// Times of a run whose connections are ready at `now`.
    pub fn new(now: Nanos, warmup: std::time::Duration, stop: Stop) -> Self {
        let start = now.saturating_add(nanos(warmup));
        let end = match stop {
            Stop::Requests(_) => Nanos::MAX,
            Stop::Duration(duration) => start.saturating_add(nanos(duration)),
        };
        let last = end;
        Self { start, end, last }
    }

    /// Times of a run whose connections are ready at `now`. A recording may end before
    /// the plan does; then its last part is the ramp-down. If the statistics decide the times, they
    /// are not known yet.
    pub fn of(length: &LengthPlan, load: &LoadPlan, now: Nanos) -> Self {
        if length.auto.is_some() {
            return Self::NEVER;
        }
        let mut times = Self::new(now, length.unmeasured(), length.stop);
        let ramp_down = nanos(length.ramp_down);
        times.last = times.end.saturating_add(ramp_down);
        if let Some(recording) = load.recording() {
            times.last = times.last.min(now.saturating_add(nanos(recording)));
            times.end = times.end.min(times.last.saturating_sub(ramp_down));
        }
        times
    }

    /// True if a request that is due `at` is measured.
    fn is_measured(&self, at: Nanos) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// True if requests are issued after the measured part.
    pub(crate) fn has_ramp_down(&self) -> bool {
        self.last > self.end
    }

    /// Not decided.
    pub(crate) const NEVER: Self = Self {
        start: Nanos::MAX,
        end: Nanos::MAX,
        last: Nanos::MAX,
    };
}

/// Times of a run that are decided during the run: one thread sets them a little ahead, and all
/// threads read them.
pub(crate) struct Agreed {
    start: AtomicU64,
    end: AtomicU64,
    /// How long requests are issued after the end.
    ramp_down: Nanos,
}

impl Agreed {
    pub(crate) fn new(ramp_down: Nanos) -> Self {
        Self {
            ramp_down,
            start: AtomicU64::new(Nanos::MAX),
            end: AtomicU64::new(Nanos::MAX),
        }
    }

    /// The measured part begins at this time.
    pub(crate) fn begin(&self, at: Nanos) {
        self.start.store(at, Ordering::Relaxed);
    }

    /// The measured part ends at this time.
    pub(crate) fn end(&self, at: Nanos) {
        self.end.store(at, Ordering::Relaxed);
    }

    pub(crate) fn times(&self) -> Times {
        let end = self.end.load(Ordering::Relaxed);
        Times {
            start: self.start.load(Ordering::Relaxed),
            end,
            last: end.saturating_add(self.ramp_down),
        }
    }
}

/// Permission for one request.
pub(crate) struct Ticket {
    pub number: u64,
    pub measured: bool,
}

impl<'a> Tickets<'a> {
    pub(crate) fn new(stop_at: Stop, stop: &'a AtomicBool) -> Self {
        let limit = match stop_at {
            Stop::Requests(count) => count,
            Stop::Duration(_) => u64::MAX,
        };
        Self {
            warm: AtomicU64::new(0),
            measured: AtomicU64::new(0),
            limit,
            stop,
            aborted: AtomicBool::new(false),
            sessions: AtomicU64::new(0),
        }
    }

    /// The number of the next session.
    pub(crate) fn session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// The next ticket, `None` once the run is over.
    pub(crate) fn take(&self, times: &Times, now: Nanos) -> Option<Ticket> {
        self.take_for(now, times)
    }

    /// The ticket of an arrival that is `due`; `None` once the run is over.
    pub(crate) fn take_for(&self, due: Nanos, times: &Times) -> Option<Ticket> {
        if due >= times.last || self.is_stopped() {
            return None;
        }
        self.numbered(times.is_measured(due))
    }

    /// The next ticket of the measured or the other part; `None` once all of a counted run are out.
    pub(crate) fn numbered(&self, measured: bool) -> Option<Ticket> {
        let counter = if measured { &self.measured } else { &self.warm };
        let number = counter.fetch_add(1, Ordering::Relaxed);
        (!measured || number < self.limit).then_some(Ticket { number, measured })
    }

    /// True if all measured requests of a counted run have been issued.
    pub(crate) fn are_out(&self) -> bool {
        self.measured.load(Ordering::Relaxed) >= self.limit
    }

    /// True if the run was stopped (Ctrl-C).
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.aborted.load(Ordering::Relaxed)
    }

    /// Ends the run for all threads, because one of them failed.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }
}

/// Threads wait here until every connection is open; the last thread to arrive sets the start time.
pub(crate) struct Gate {
    state: Mutex<Missing>,
    opened: Condvar,
}

struct Missing {
    threads: usize,
    opened_at: Option<Nanos>,
}

impl Gate {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            state: Mutex::new(Missing {
                threads,
                opened_at: None,
            }),
            opened: Condvar::new(),
        }
    }

    /// Arrives at the gate when dropped, also during a panic, so that no thread waits for a thread
    /// that has panicked.
    pub(crate) fn arrival(&self) -> Arrival<'_> {
        Arrival(self)
    }

    /// When the gate opened, if it has.
    pub(crate) fn opened_at(&self) -> Option<Nanos> {
        self.lock().opened_at
    }

    /// Waits for the gate to open; when it did.
    pub(crate) fn wait(&self) -> Nanos {
        let mut state = self.lock();
        while state.threads > 0 {
            state = self
                .opened
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.opened_at.unwrap_or_else(base_clock::now)
    }

    fn lock(&self) -> MutexGuard<'_, Missing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Gate::arrival`].
pub(crate) struct Arrival<'a>(&'a Gate);

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.threads -= 1;
        if state.threads == 0 {
            state.opened_at = Some(base_clock::now());
            self.0.opened.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schedule;
    use std::time::Duration;

    #[test]
    fn exactly_as_many_measured_tickets_as_asked_for() {
        let stop = AtomicBool::new(false);
        let tickets = Tickets::new(Stop::Requests(2), &stop);
        let times = Times::new(100, Duration::from_nanos(50), Stop::Requests(2));
        assert!(!tickets.take(&times, 149).unwrap().measured);
        let first = tickets.take(&times, 150).unwrap();
        assert!(first.measured && first.number == 0);
        assert!(tickets.take(&times, 151).is_some());
        assert!(tickets.take(&times, 152).is_none());
    }

    #[test]
    fn time_and_stop_end_a_run() {
        let stop = AtomicBool::new(false);
        let until = Stop::Duration(Duration::from_nanos(10));
        let tickets = Tickets::new(until, &stop);
        let times = Times::new(100, Duration::ZERO, until);
        assert!(tickets.take(&times, 109).is_some());
        assert!(tickets.take(&times, 110).is_none());
        stop.store(true, Ordering::Relaxed);
        assert!(tickets.take(&times, 105).is_none());
    }

    #[test]
    fn requests_after_the_end_are_not_measured() {
        let stop = AtomicBool::new(false);
        let length = LengthPlan {
            stop: Stop::Duration(Duration::from_nanos(10)),
            ramp_down: Duration::from_nanos(5),
            ..LengthPlan::default()
        };
        let tickets = Tickets::new(length.stop, &stop);
        let times = Times::of(&length, &LoadPlan::default(), 100);
        let measured = |at| tickets.take(&times, at).map(|ticket| ticket.measured);
        let found = [100, 109, 110, 114, 115].map(measured);
        assert_eq!(
            found,
            [Some(true), Some(true), Some(false), Some(false), None]
        );
        // A recording's end is its ramp-down.
        let recorded = LoadPlan {
            schedule: Some(Schedule::recorded(&[0, 2, 8], 1.0).unwrap()),
            ..LoadPlan::default()
        };
        let times = Times::of(&length, &recorded, 100);
        let recording = nanos(recorded.recording().unwrap());
        assert_eq!(times.last, (100 + recording).min(115));
        assert_eq!(times.end, times.last - 5);
        let agreed = Agreed::new(5);
        assert!(!agreed.times().has_ramp_down());
        agreed.end(20);
        assert_eq!(agreed.times().last, 25);
    }

    #[test]
    fn the_gate_opens_even_if_a_thread_panics() {
        let gate = Gate::new(2);
        drop(gate.arrival());
        assert!(gate.opened_at().is_none());
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _arrival = gate.arrival();
            std::panic::resume_unwind(Box::new(()));
        }));
        assert!(died.is_err() && gate.opened_at().is_some());
    }
}
