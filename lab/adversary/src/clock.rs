//! The only module here that reads the clock: `CLOCK_BOOTTIME`, in which the promise is made.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, in nanoseconds since the machine started. All processes of the machine agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// The present one.
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
        Self(seconds * 1_000_000_000 + nanos)
    }

    /// So long before; the machine's start if that is before it.
    pub(crate) fn minus(self, span: Duration) -> Self {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }

    /// The time since `earlier`; zero if it is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
impl Moment {
    /// For tests that make up their times.
    pub(crate) const fn at(nanos: u64) -> Self {
        Self(nanos)
    }
}
