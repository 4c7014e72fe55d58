//! A clock that does not stop while the machine sleeps.
//!
//! Moments are of `CLOCK_BOOTTIME`, which runs on while the machine is suspended: a laptop that
//! wakes up does not take an hour-old response for a fresh one. The clock never jumps when the
//! wall clock is set.

use std::time::Duration;

/// A moment on `CLOCK_BOOTTIME`, in nanoseconds since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Boottime(u64);

impl Boottime {
    /// A moment that never comes: 584 years after boot.
    pub const NEVER: Self = Self(u64::MAX);

    /// The present moment. Costs one vDSO call (about 25 ns).
    #[must_use]
    pub fn now() -> Self {
        Self(crate::read(rustix::time::ClockId::Boottime))
    }

    /// The moment `nanos` nanoseconds after boot.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since boot.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `by` later; saturates.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(crate::nanos(by)))
    }

    /// The moment `by` earlier; the machine's start if that is before it.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(crate::nanos(by)))
    }
}
