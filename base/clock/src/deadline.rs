//! When to give up.

use std::time::Duration;

use crate::{Nanos, after, until};

/// A moment after which waiting is given up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Nanos);

impl Deadline {
    /// The deadline that is `time` from now.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(after(time))
    }

    /// Returns the time that is left; zero when the deadline is past.
    #[must_use]
    pub fn left(self) -> Duration {
        until(self.0)
    }

    /// True if it is past.
    #[must_use]
    pub fn is_past(self) -> bool {
        self.left().is_zero()
    }
}
