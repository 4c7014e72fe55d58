//! The events of the writer thread, and which of them a read could see.
//!
//! One thread owns the writer connection. Its transactions and its polls for foreign commits are
//! *events* with ascending ticks, one at a time. An event first records that it has begun, then
//! works, then records that it has passed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::feed::{Mark, Snapshot};

/// The ticks of the events.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    begun: AtomicU64,
    passed: AtomicU64,
}

impl Ticks {
    /// Only the writer thread calls this function.
    pub(crate) fn begin(&self) -> u64 {
        // SeqCst, because a reader's load after its queries must not be ordered before the
        // following event. If the reader loads `b`, event `b + 1` had not begun, so that event
        // looks at the database after the reader's snapshot was taken.
        self.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn pass(&self, tick: u64) {
        self.passed.store(tick, Ordering::SeqCst);
    }

    /// The last event that has passed.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    /// To be taken before a read's snapshot: the snapshot sees every event that had certainly
    /// passed.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::Applied(self.passed())
    }

    /// To be taken after a read's last query. The first event that begins from now on finds every
    /// foreign commit that the read saw. So the result may be combined with others only once that
    /// event has passed.
    pub(crate) fn position(&self) -> u64 {
        self.begun.load(Ordering::SeqCst) + 1
    }
}

/// The mark of the change that an event delivers.
pub(crate) fn mark(tick: u64) -> Mark {
    Mark {
        transaction: tick,
        at: tick,
    }
}

#[cfg(test)]
mod tests {
    use millpond_store::Feed;

    use super::*;
    use crate::feed::DatabaseFeed;

    #[test]
    fn a_read_sees_what_had_passed_and_is_placed_after_what_had_begun() {
        let ticks = Ticks::default();
        let first = ticks.begin();
        assert!(!DatabaseFeed::sees(&ticks.snapshot(), mark(first)));
        assert_eq!(ticks.position(), first + 1);
        ticks.pass(first);
        assert!(DatabaseFeed::sees(&ticks.snapshot(), mark(first)));
        assert_eq!(DatabaseFeed::snapshot_at(first), Snapshot::Applied(first));
    }
}
