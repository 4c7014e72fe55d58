//! How a source of truth speaks to the store.

use std::fmt::Debug;

use crate::Tag;
use base_clock::Boottime;

/// A source of truth's notion of time.
///
/// Three words for it, because no single number does for every source (COHERENCE, rules 1, 2 and 4):
/// a *mark* names a committed change, a *snapshot* says which changes a fill could read, and a *position* says how far
/// the feed has been applied.
pub trait Feed: Send + Sync + 'static {
    /// Names one committed change (SQLite: a tick; PostgreSQL: a transaction id).
    type Mark: Copy + Debug + Send + Sync + 'static;
    /// What a fill could see.
    type Snapshot: Clone + Debug + Send + Sync + 'static;
    /// How far the feed has been applied. Monotone within an epoch.
    type Position: Copy + Ord + Debug + Send + Sync + 'static;

    /// Whether the change `mark` was certainly visible in `snapshot`. When in doubt, `false`.
    fn sees(snapshot: &Self::Snapshot, mark: Self::Mark) -> bool;

    /// A snapshot that sees everything the feed had applied at `position`: what a page combined from stored
    /// objects at that position amounts to.
    fn snapshot_at(position: Self::Position) -> Self::Snapshot;
}

/// One committed transaction as the feed gives it.
#[derive(Clone, Debug)]
pub struct Change<F: Feed> {
    /// The change's name.
    pub mark: F::Mark,
    /// Everything that it touched, old values and new ones. Duplicates are allowed.
    pub tags: Vec<Tag>,
}

/// Where a feed delivers. The store implements it; tests implement it to look at a feed.
///
/// Calls come in commit order from one thread at a time.
pub trait Sink<F: Feed>: Send + Sync + 'static {
    /// Applies one committed transaction as a whole. When this returns, no entry that depends on any of the
    /// change's tags is served again.
    fn apply(&self, change: Change<F>);

    /// Every snapshot that is taken from now on sees what `snapshot` sees. Changes that it sees need not be held
    /// against fills that begin later.
    fn visible(&self, snapshot: &F::Snapshot);

    /// The feed has been applied up to `position`, and nothing that was committed before `sent` is missing.
    fn heartbeat(&self, sent: Boottime, position: F::Position);

    /// The feed may have missed something, or what it cannot tell has changed: nothing that was stored before is served again.
    ///
    /// Changes that were applied, but not said to be [visible](Self::visible), still count: a fill that does not see
    /// them is not stored. What was missed must be visible to all new snapshots when this is called.
    fn new_epoch(&self, reason: &str);
}
