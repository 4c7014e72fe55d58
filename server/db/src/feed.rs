//! Marks, positions and snapshots of both databases, and the delivery of changes to the sink.
//!
//! One type serves both databases, so that the cache need not know which one a result came from.

use std::sync::Arc;

use base_clock::Boottime;
use millpond_store::{Change, Feed, Sink, Tag};
use parking_lot::Mutex;

/// The feed of one database.
#[derive(Debug)]
pub struct DatabaseFeed;

/// How a database reports the changes of other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedKind {
    /// By logical replication, from the server's log.
    #[default]
    Logical,
    /// By triggers that record changes in a table, where logical replication cannot be had.
    Triggers,
}

impl FeedKind {
    /// All of them, with their names in the configuration.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Logical, "logical"), (Self::Triggers, "triggers")];
}

/// Identifies one committed change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number that [`Feed::sees`] compares with a snapshot: SQLite's tick, PostgreSQL's 64-bit
    /// transaction id.
    pub transaction: u64,
    /// The position at which the feed delivers the change: once the feed has passed this position,
    /// the change is applied. SQLite's tick. For PostgreSQL the end of the commit record, or the id
    /// after the transaction's own if triggers report changes.
    pub at: u64,
}

/// State that a read could see. [`Feed::sees`] answers "yes" for a change only if that is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// Everything that the feed delivers up to and including this position, and possibly more.
    Applied(u64),
    /// Snapshot by PostgreSQL's `pg_current_snapshot()`.
    Transactions(Arc<Transactions>),
}

/// A snapshot by transaction ids (PostgreSQL's `pg_snapshot`): which transactions had ended when it
/// was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transactions {
    xmin: u64,
    xmax: u64,
    running: Box<[u64]>,
}

impl Transactions {
    /// All transactions below `xmin` had ended, and none from `xmax` on. Between them, all had
    /// ended except those in `running`.
    #[must_use]
    pub fn new(xmin: u64, xmax: u64, mut running: Vec<u64>) -> Self {
        running.sort_unstable();
        Self {
            xmin,
            xmax,
            running: running.into_boxed_slice(),
        }
    }

    /// Reads `xmin:xmax:xip,…`, as PostgreSQL writes a `pg_snapshot`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let xmin = parts.next()?.parse().ok()?;
        let xmax = parts.next()?.parse().ok()?;
        let list = parts.next()?;
        let running = list
            .split(',')
            .filter(|id| !id.is_empty())
            .map(|id| id.parse().ok())
            .collect::<Option<Vec<u64>>>()?;
        (parts.next().is_none() && xmin <= xmax).then(|| Self::new(xmin, xmax, running))
    }

    /// All transactions below this id had ended.
    #[must_use]
    pub fn xmin(&self) -> u64 {
        self.xmin
    }

    /// The transaction with this id and all later ones had not begun, or had not ended.
    #[must_use]
    pub fn xmax(&self) -> u64 {
        self.xmax
    }

    /// True if the writes of `transaction` are visible in this snapshot, provided it was committed.
    #[must_use]
    pub fn sees(&self, transaction: u64) -> bool {
        transaction < self.xmin
            || (transaction < self.xmax && self.running.binary_search(&transaction).is_err())
    }
}

impl Feed for DatabaseFeed {
    type Mark = Mark;
    type Position = u64;
    type Snapshot = Snapshot;

    fn sees(snapshot: &Snapshot, mark: Mark) -> bool {
        match snapshot {
            Snapshot::Applied(position) => mark.at <= *position,
            Snapshot::Transactions(transactions) => transactions.sees(mark.transaction),
        }
    }

    fn snapshot_at(position: u64) -> Snapshot {
        Snapshot::Applied(position)
    }
}

/// The sink of the feed; none until the feed is started.
///
/// The lock serialises the calls of the feed's thread and of threads that register columns.
#[derive(Default)]
pub(crate) struct Delivery {
    sink: Mutex<Option<Arc<dyn Sink<DatabaseFeed>>>>,
}

impl Delivery {
    pub(crate) fn start(&self, sink: Arc<dyn Sink<DatabaseFeed>>) {
        let mut slot = self.sink.lock();
        // A read that began before the start may end after it, and commits in between were not
        // delivered.
        sink.new_epoch("the feed starts");
        *slot = Some(sink);
    }

    fn with(&self, deliver: impl FnOnce(&dyn Sink<DatabaseFeed>)) {
        if let Some(sink) = self.sink.lock().as_ref() {
            deliver(sink.as_ref());
        }
    }

    pub(crate) fn apply(&self, mark: Mark, tags: Vec<Tag>) {
        self.with(|sink| sink.apply(Change { mark, tags }));
    }

    /// Applies a change whose tags may be incomplete. `incomplete` is called under the lock. If it
    /// returns a reason, a new epoch begins in the same step. The change is applied in both cases:
    /// its mark must stay until all snapshots see it.
    pub(crate) fn apply_unless(
        &self,
        mark: Mark,
        tags: Vec<Tag>,
        incomplete: impl FnOnce() -> Option<&'static str>,
    ) {
        self.with(|sink| {
            sink.apply(Change { mark, tags });
            if let Some(reason) = incomplete() {
                sink.new_epoch(reason);
            }
        });
    }

    pub(crate) fn new_epoch(&self, reason: &str) {
        self.with(|sink| sink.new_epoch(reason));
    }

    /// Reports that every snapshot taken from now on sees what `seen` sees, that the feed is
    /// applied up to `position`, and that no commit from before `sent` is missing.
    pub(crate) fn passed(&self, seen: &Snapshot, position: u64, sent: Boottime) {
        self.with(|sink| {
            sink.visible(seen);
            sink.heartbeat(sent, position);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(transaction: u64, at: u64) -> Mark {
        Mark { transaction, at }
    }

    #[test]
    fn a_position_sees_what_was_applied_up_to_it() {
        let seen = DatabaseFeed::snapshot_at(7);
        assert!(DatabaseFeed::sees(&seen, mark(900, 7)));
        assert!(!DatabaseFeed::sees(&seen, mark(1, 8)));
    }

    #[test]
    fn a_snapshot_sees_what_had_ended_when_it_was_taken() {
        let seen = Transactions::parse("100:110:108,100,105").unwrap();
        assert_eq!((seen.xmin(), seen.xmax()), (100, 110));
        let visible: Vec<u64> = (98..112).filter(|id| seen.sees(*id)).collect();
        assert_eq!(visible, [98, 99, 101, 102, 103, 104, 106, 107, 109]);
        let idle = Transactions::parse("736:736:").unwrap();
        assert!(idle.sees(735) && !idle.sees(736));
    }

    #[test]
    fn what_is_no_snapshot_is_none() {
        for text in ["", "1", "1:2", "2:1:", "1:2:x", "1:2:1:", "-1:2:"] {
            assert_eq!(Transactions::parse(text), None, "{text}");
        }
    }
}
