//! The clocks, in nanoseconds. Reading one costs some 25 ns (vDSO), so each answer gets a stamp of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub(crate) type Nanos = u64;

/// Nanoseconds in a millisecond.
pub(crate) const MS: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// Now, by the monotonic clock.
pub(crate) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Time since `began`.
pub(crate) fn since(began: Nanos) -> std::time::Duration {
    std::time::Duration::from_nanos(now().saturating_sub(began))
}

/// The moment so long after now; at the far end of the clock for a duration that exceeds it.
pub(crate) fn after(duration: std::time::Duration) -> Nanos {
    now().saturating_add(nanos(duration))
}

/// Waits so long, or until `stop` is set, which is noticed within 50 ms.
pub(crate) fn rest(time: std::time::Duration, stop: &AtomicBool) {
    let began = now();
    while !stop.load(Ordering::Relaxed) && since(began) < time {
        let left = time.saturating_sub(since(began));
        std::thread::sleep(left.min(std::time::Duration::from_millis(50)));
    }
}

/// Keeps its core busy for so long, or until `stop` is set; the moment after that. A core that is slow does not make this longer, one
/// that is taken away does by what is left of the gap when the time is over.
pub(crate) fn busy(time: Nanos, stop: &AtomicBool) -> Nanos {
    let mut moment = now();
    let end = moment.saturating_add(time);
    while moment < end && !stop.load(Ordering::Relaxed) {
        moment = now();
    }
    moment
}

/// Time until `moment`: none when it is past.
pub(crate) fn until(moment: Nanos) -> std::time::Duration {
    std::time::Duration::from_nanos(moment.saturating_sub(now()))
}

/// The wall-clock time of a moment of the monotonic clock, in microseconds since 1970 (UTC).
pub(crate) fn unix_micros(moment: Nanos) -> u64 {
    let ago = now().saturating_sub(moment);
    read(ClockId::Realtime).saturating_sub(ago) / 1000
}

/// The moment of the monotonic clock, to some microseconds, at which the wall clock showed `unix`, in nanoseconds since 1970. None if
/// that is still to come, or if this thread is kept from reading both clocks at one time. A wall clock that was set since then moves it.
pub(crate) fn monotonic(unix: Nanos) -> Option<Nanos> {
    /// Between two readings of one clock with one of the other between them; 50 ns are usual.
    const AT_ONE_TIME: Nanos = 5_000;
    (0..10).find_map(|_| {
        let before = now();
        let wall = read(ClockId::Realtime);
        let is_exact = now() - before <= AT_ONE_TIME;
        is_exact.then(|| before.checked_sub(wall.checked_sub(unix)?))?
    })
}

/// CPU time of the calling thread, user and system.
pub(crate) fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// A duration in nanoseconds, at most 584 years.
pub(crate) fn nanos(duration: std::time::Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
