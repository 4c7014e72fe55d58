//! The only module here that reads the clock.

use std::time::Instant;

/// The present moment.
pub(crate) fn now() -> Instant {
    Instant::now()
}
