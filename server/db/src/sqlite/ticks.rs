//! The events of the writer thread, and what a read could see of them.
//!
//! One thread owns the writer connection. What it does there, its own transactions and the polls for foreign ones, are
//! *events* with ascending ticks, one at a time. An event first says that it has begun, then works, then says that it has passed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::feed::{Mark, Snapshot};

/// The ticks of the events.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    begun: AtomicU64,
    passed: AtomicU64,
}

impl Ticks {
    /// Only the writer thread calls this.
    pub(crate) fn begin(&self) -> u64 {
        // SeqCst, because a reader's load after its queries must not be ordered before the event that follows: if it
        // reads `b`, event `b + 1` had not begun, so that event's look at the database comes after the reader's snapshot.
        self.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn pass(&self, tick: u64) {
        self.passed.store(tick, Ordering::SeqCst);
    }

    /// The last event that has passed.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    /// Taken before a read's snapshot: it sees every event that had certainly passed.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::Applied(self.passed())
    }

    /// Taken after a read's last query. A foreign commit that the read saw is found at the latest by the first event
    /// that begins from now on, so only once that one has passed may the result be combined with others.
    pub(crate) fn position(&self) -> u64 {
        self.begun.load(Ordering::SeqCst) + 1
    }
}

/// The mark of the change that an event brings.
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
