//! The only crate that reads clocks.
//!
//! It knows the kernel's clocks and nothing else. It must not know what a moment is for: a deadline
//! of a request, the age of an entry and the stamp of a sample are the business of other crates.
//!
//! Durations and moments are nanoseconds in 64 bits, enough for 584 years. Reading a clock costs
//! about 25 ns (vDSO). The functions of this page read `CLOCK_MONOTONIC`, which the processes of a
//! machine share; [`Boottime`] also counts the time in which the machine is suspended.

#![allow(clippy::disallowed_methods, reason = "the one crate that may")]

mod boottime;
mod deadline;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

pub use boottime::Boottime;
pub use deadline::Deadline;

/// Nanoseconds: a duration, or a moment of the monotonic clock.
pub type Nanos = u64;

/// Nanoseconds in a millisecond.
pub const MS: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;

/// The longest time that [`rest`] needs to notice that it must stop.
const NOTICED_WITHIN: Duration = Duration::from_millis(50);

/// The present moment of the monotonic clock.
#[must_use]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// The time since `began`; zero if `began` is still to come.
#[must_use]
pub fn since(began: Nanos) -> Duration {
    Duration::from_nanos(now().saturating_sub(began))
}

/// The moment that is `duration` after now; the end of the clock for a duration that exceeds it.
#[must_use]
pub fn after(duration: Duration) -> Nanos {
    now().saturating_add(nanos(duration))
}

/// The time until `moment`; zero if it is past.
#[must_use]
pub fn until(moment: Nanos) -> Duration {
    Duration::from_nanos(moment.saturating_sub(now()))
}

/// Sleeps for `time`, or until `stop` is set, which is noticed within 50 ms.
pub fn rest(time: Duration, stop: &AtomicBool) {
    let began = now();
    while !stop.load(Ordering::Relaxed) && since(began) < time {
        let left = time.saturating_sub(since(began));
        std::thread::sleep(left.min(NOTICED_WITHIN));
    }
}

/// Keeps its core busy for `time`, or until `stop` is set; returns the moment of its end. The time
/// goes by the clock: a slow core does not prolong it.
pub fn busy(time: Nanos, stop: &AtomicBool) -> Nanos {
    let mut moment = now();
    let end = moment.saturating_add(time);
    while moment < end && !stop.load(Ordering::Relaxed) {
        moment = now();
    }
    moment
}

/// The wall-clock time. It jumps when the clock is set: for fields of HTTP and for logs only.
#[must_use]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// Nanoseconds since 1970 (UTC), by the wall clock.
#[must_use]
pub fn unix_nanos() -> Nanos {
    read(ClockId::Realtime)
}

/// The wall-clock time of the monotonic `moment`, in microseconds since 1970 (UTC).
#[must_use]
pub fn unix_micros(moment: Nanos) -> u64 {
    let ago = now().saturating_sub(moment);
    unix_nanos().saturating_sub(ago) / 1000
}

/// The monotonic moment, to some microseconds, at which the wall clock showed `unix` nanoseconds
/// since 1970. None if that is still to come, or if the scheduler keeps this thread from reading
/// both clocks at one time. A wall clock that was set since then moves the result.
#[must_use]
pub fn monotonic_at(unix: Nanos) -> Option<Nanos> {
    /// Between two readings of one clock with one of the other between them; 50 ns are usual.
    const AT_ONE_TIME: Nanos = 5_000;
    (0..10).find_map(|_| {
        let before = now();
        let wall = unix_nanos();
        let is_exact = now() - before <= AT_ONE_TIME;
        is_exact.then(|| before.checked_sub(wall.checked_sub(unix)?))?
    })
}

/// Seconds since 1970 at the moment `at`. The wall clock is read each time, so that a clock that is
/// set right counts at once.
#[must_use]
pub fn unix_seconds_at(at: Boottime) -> u64 {
    let (wall, boot) = (Duration::from_nanos(unix_nanos()), Boottime::now());
    let then = if at > boot {
        wall.saturating_add(at.since(boot))
    } else {
        wall.saturating_sub(boot.since(at))
    };
    then.as_secs()
}

/// CPU time of the calling thread, user and system.
#[must_use]
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// `duration` in nanoseconds, at most 584 years.
#[must_use]
pub fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * SECOND + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_one_time_of_the_calendar() {
        let now = Boottime::now();
        let hour = Duration::from_secs(3600);
        let base = unix_seconds_at(now);
        assert!(unix_seconds_at(now.plus(hour)).abs_diff(base + 3600) <= 1);
        assert!(unix_seconds_at(Boottime::from_nanos(0)) <= base);
        assert!(unix_seconds_at(Boottime::NEVER) > base);
    }
}
