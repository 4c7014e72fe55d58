//! For how long a response is the response to later requests with the very same head.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base_clock::Boottime;

/// Knows whether a response may be given again. [`Reply::Reusable`](crate::Reply) carries it.
pub enum Validity {
    /// The response is valid exactly as long as the counter has this value. Reading the counter
    /// follows one pointer less than a check does.
    Counter(Arc<AtomicU64>, u64),
    /// The check is asked each time.
    Check(Box<dyn ValidityCheck>),
}

/// The source of a response, asked before each time that the response is given again.
pub trait ValidityCheck {
    /// True if [`Service::call`](crate::Service::call) would give the same response to a request
    /// with the very same head that was received at `received`, from any client. Must not block.
    fn is_valid(&self, received: Boottime) -> bool;

    /// True if the response will never be valid again. The connections ask this now and then, so
    /// that the memory behind the response can be freed.
    fn is_over(&self) -> bool {
        false
    }
}

impl Validity {
    /// True if the response may be given to a request that was received at `received`.
    #[inline]
    #[must_use]
    pub fn is_valid(&self, received: Boottime) -> bool {
        match self {
            Self::Counter(counter, value) => counter.load(Ordering::Acquire) == *value,
            Self::Check(check) => check.is_valid(received),
        }
    }

    /// True if the response will never be valid again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Self::Counter(counter, value) => counter.load(Ordering::Acquire) != *value,
            Self::Check(check) => check.is_over(),
        }
    }
}

impl std::fmt::Debug for Validity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validity").finish_non_exhaustive()
    }
}
