//! A span of time in which many threads work, and which one of them ends.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Open until it is ended.
#[derive(Debug, Default)]
pub(crate) struct Span {
    over: Mutex<bool>,
    wake: Condvar,
}

impl Span {
    fn over(&self) -> MutexGuard<'_, bool> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets so much time pass, or less if the span ends meanwhile; true once it is over.
    pub(crate) fn pass(&self, time: Duration) -> bool {
        let ended = self
            .wake
            .wait_timeout_while(self.over(), time, |over| !*over);
        *ended.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over()
    }

    pub(crate) fn end(&self) {
        *self.over() = true;
        self.wake.notify_all();
    }
}
