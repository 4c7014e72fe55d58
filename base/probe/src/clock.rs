//! The clocks that a probe stamps its samples with, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, the same for all processes of a machine.
pub(crate) fn monotonic() -> u64 {
    read(ClockId::Monotonic)
}

/// Wall-clock time since 1970, which another machine can be held against.
pub(crate) fn wall() -> u64 {
    read(ClockId::Realtime)
}

/// Time since the machine started, sleep included: what the ages of processes count from.
pub(crate) fn since_boot() -> u64 {
    read(ClockId::Boottime)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> u64 {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
