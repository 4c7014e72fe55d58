//! Periods without faults in which all nodes have shown that changes reach them.
//!
//! A node with a bound of ten minutes may show data that is ten minutes old, and a time-to-live
//! could pass for coherence there. But the bound is for the worst case: with a healthy feed such a
//! node has no reason to be older than the others may be. So in a quiet period its pages are judged
//! by the shortest bound too.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base_clock::Boottime;

/// Since when it lasts, if it does.
#[derive(Debug, Default)]
pub(crate) struct QuietPeriod(Mutex<Option<Boottime>>);

impl QuietPeriod {
    fn since(&self) -> MutexGuard<'_, Option<Boottime>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self) {
        *self.since() = Some(Boottime::now());
    }

    pub(crate) fn end(&self) {
        *self.since() = None;
    }

    /// When the present one began.
    pub(crate) fn now(&self) -> Option<Boottime> {
        *self.since()
    }

    /// True if a quiet period that existed when a request was sent had then lasted for longer than
    /// `bound`, and still lasts: commits acknowledged more than `bound` before had all that time.
    pub(crate) fn covers(&self, began: Option<Boottime>, sent: Boottime, bound: Duration) -> bool {
        began.is_some_and(|since| sent.since(since) > bound) && self.now() == began
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::QuietPeriod;
    use base_clock::Boottime;

    #[test]
    fn a_request_is_covered_by_one_long_quiet_period() {
        let quiet_period = QuietPeriod::default();
        let sent = Boottime::from_nanos(u64::MAX);
        let covers = |began, bound| quiet_period.covers(began, sent, bound);
        assert!(!covers(quiet_period.now(), Duration::ZERO));
        quiet_period.begin();
        let first = quiet_period.now();
        assert!(covers(first, Duration::from_secs(1)));
        assert!(!covers(first, Duration::MAX));
        assert!(!quiet_period.covers(first, Boottime::from_nanos(0), Duration::ZERO));
        quiet_period.end();
        assert!(!covers(first, Duration::ZERO));
        quiet_period.begin();
        assert!(!covers(first, Duration::ZERO), "another one");
    }
}
