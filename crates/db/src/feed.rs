//! The notion of time of the SQLite feed, and its way to the sink.
//!
//! One thread owns the writer connection. What it does there, its own transactions and the polls for foreign ones, are
//! *events* with ascending ticks, one at a time. An event first says that it has begun, then works, then says that it has passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_store::clock::Boottime;
use millpond_store::{Change, Feed, Sink, Tag};
use parking_lot::Mutex;

/// The feed of one SQLite database.
#[derive(Debug)]
pub struct SqliteFeed;

/// What a read could see: every event up to and including tick `low`, and perhaps later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteSnapshot {
    /// The last event that had certainly passed before the snapshot was taken.
    pub low: u64,
}

impl Feed for SqliteFeed {
    type Mark = u64;
    type Position = u64;
    type Snapshot = SqliteSnapshot;

    fn sees(snapshot: &SqliteSnapshot, mark: u64) -> bool {
        mark <= snapshot.low
    }

    fn snapshot_at(position: u64) -> SqliteSnapshot {
        SqliteSnapshot { low: position }
    }
}

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

    /// Taken before a read's snapshot.
    pub(crate) fn snapshot(&self) -> SqliteSnapshot {
        SqliteSnapshot {
            low: self.passed.load(Ordering::SeqCst),
        }
    }

    /// Taken after a read's last query. A foreign commit that the read saw is found at the latest by the first event
    /// that begins from now on, so only once that one has passed may the result be combined with others.
    pub(crate) fn position(&self) -> u64 {
        self.begun.load(Ordering::SeqCst) + 1
    }
}

/// Where the feed delivers; nowhere until it is started.
///
/// The lock makes the calls of the writer thread and of those who add interest come one at a time.
#[derive(Default)]
pub(crate) struct Delivery {
    sink: Mutex<Option<Arc<dyn Sink<SqliteFeed>>>>,
}

impl Delivery {
    pub(crate) fn start(&self, sink: Arc<dyn Sink<SqliteFeed>>) {
        let mut slot = self.sink.lock();
        // A read from before the start may end after it, and what was committed meanwhile was not delivered.
        sink.new_epoch("the feed starts");
        *slot = Some(sink);
    }

    fn with(&self, deliver: impl FnOnce(&dyn Sink<SqliteFeed>)) {
        if let Some(sink) = self.sink.lock().as_ref() {
            deliver(sink.as_ref());
        }
    }

    pub(crate) fn apply(&self, mark: u64, tags: Vec<Tag>) {
        self.with(|sink| sink.apply(Change { mark, tags }));
    }

    pub(crate) fn new_epoch(&self, reason: &str) {
        self.with(|sink| sink.new_epoch(reason));
    }

    /// Says that event `tick` has passed, and that nothing committed before `sent` is missing.
    pub(crate) fn passed(&self, tick: u64, sent: Boottime) {
        self.with(|sink| {
            sink.visible(&SqliteSnapshot { low: tick });
            sink.heartbeat(sent, tick);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_sees_what_had_passed_and_is_placed_after_what_had_begun() {
        let ticks = Ticks::default();
        let first = ticks.begin();
        assert!(!SqliteFeed::sees(&ticks.snapshot(), first));
        assert_eq!(ticks.position(), first + 1);
        ticks.pass(first);
        assert!(SqliteFeed::sees(&ticks.snapshot(), first));
        assert_eq!(
            SqliteFeed::snapshot_at(first),
            SqliteSnapshot { low: first }
        );
    }
}
