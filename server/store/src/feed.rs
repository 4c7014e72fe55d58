//! How a source of truth reports changes to the store.

use std::fmt::Debug;

use crate::Tag;
use base_clock::Boottime;

/// A source of truth's notion of time.
///
/// It has three parts, because no single number fits every source (coherence.md, rules 1, 2 and 4):
/// a *mark* names a committed change, a *snapshot* says which changes a fill could read, and a
/// *position* says how far the feed has been applied.
pub trait Feed: Send + Sync + 'static {
    /// Names one committed change (SQLite: a tick; PostgreSQL: a transaction id).
    type Mark: Copy + Debug + Send + Sync + 'static;
    /// State that a fill could see.
    type Snapshot: Clone + Debug + Send + Sync + 'static;
    /// How far the feed has been applied. Monotone within an epoch.
    type Position: Copy + Ord + Debug + Send + Sync + 'static;

    /// True if the change `mark` was certainly visible in `snapshot`. When in doubt, `false`.
    fn sees(snapshot: &Self::Snapshot, mark: Self::Mark) -> bool;

    /// A snapshot that sees everything that the feed had applied at `position`. A page that is
    /// combined from stored objects at `position` is as good as one that was read in this snapshot.
    fn snapshot_at(position: Self::Position) -> Self::Snapshot;
}

/// One committed transaction as the feed gives it.
#[derive(Clone, Debug)]
pub struct Change<F: Feed> {
    /// The change's name.
    pub mark: F::Mark,
    /// Everything that the change touched, old values and new ones. Duplicates are allowed.
    pub tags: Vec<Tag>,
}

/// The receiver of a feed. The store implements it; tests implement it to observe a feed.
///
/// Calls come in commit order from one thread at a time.
pub trait Sink<F: Feed>: Send + Sync + 'static {
    /// Applies one committed transaction as a whole. When this returns, no entry that depends on
    /// one of the change's tags is served again.
    fn apply(&self, change: Change<F>);

    /// Every snapshot that is taken from now on sees what `snapshot` sees. Fills that begin later
    /// need not be compared with these changes.
    fn visible(&self, snapshot: &F::Snapshot);

    /// The feed has been applied up to `position`, and no change is missing that was committed
    /// before `sent`.
    fn heartbeat(&self, sent: Boottime, position: F::Position);

    /// The feed may have missed a change, or something that the feed does not report has changed.
    /// No value that was stored before is served again.
    ///
    /// Changes that were applied, but not declared [visible](Self::visible), still count: a fill
    /// that does not see them is not stored. A missed change must be visible to all new snapshots
    /// when this is called.
    fn new_epoch(&self, reason: &str);
}
