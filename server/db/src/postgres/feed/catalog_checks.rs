//! When a feed looks at the catalog.
//!
//! The fingerprint of 1,000 tables takes about 10 ms of the server's processor. So not every
//! heartbeat looks at the catalog: the longer it takes, the more are between two that do, and those
//! count from the moment at which the last that looked was sent.

use std::time::Duration;

use base_clock::Boottime;

/// The share of time that looks at the catalog may take is one part in this number, if enough looks
/// remain.
const SHARE: u32 = 20;

/// The looks so far, and the next.
pub(crate) struct CatalogChecks {
    /// Between two heartbeats.
    interval: Duration,
    due: Boottime,
    last: Boottime,
}

impl CatalogChecks {
    /// The first is due at once.
    pub(crate) fn new(interval: Duration, now: Boottime) -> Self {
        Self {
            interval,
            due: now,
            last: Boottime::default(),
        }
    }

    /// True if a heartbeat that is sent now is to look.
    pub(crate) fn is_due(&self, now: Boottime) -> bool {
        self.due <= now
    }

    /// One that was sent then has found the catalog as it is known.
    pub(crate) fn found(&mut self, sent: Boottime, now: Boottime) {
        self.last = sent;
        // At least four times within the bound, which is ten intervals or more.
        let pause = (now.since(sent) * SHARE).min(self.interval * 5 / 2);
        self.due = sent.plus(pause);
    }

    /// The catalog has changed: the next heartbeat looks again.
    pub(crate) fn invalidate(&mut self) {
        self.due = Boottime::default();
    }

    /// When the last was sent that found the catalog as it is known.
    pub(crate) fn last(&self) -> Boottime {
        self.last
    }
}
