//! The only place that reads the clock: when to give up.

use std::time::{Duration, Instant};

/// A moment after which nobody waits any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    pub(crate) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// What is left of it; zero when it is past.
    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
