//! The coherent store.
//!
//! It keeps prepared values with what they depend on, and decides when one may be given again. It knows
//! neither HTTP nor SQL: keys are bytes, values are whatever the caller stores, dependencies are [`Tag`]s, and
//! the notion of time of the source of truth is a [`Feed`].
//!
//! # The promise
//! With a feed that keeps its word, every value that [`Store::get`] gives at `now`, that
//! [`Hit::is_valid`] confirms at `now`, or that a flight joined at `now` gives,
//! reflects every change that was committed more than `max_staleness` before `now`, and every change that new snapshots saw
//! and whose [`apply`](Sink::apply) had returned at `now`. (A writer is told of its commit when both are true. Where a feed runs ahead
//! of visibility, a hit reflects what was applied even if new snapshots do not show it yet.)
//!
//! # Why it holds
//! *Invalidation reaches what is stored.* An entry lists its tags when it is stored; [`apply`](Sink::apply) marks the
//! listed dependents of each touched tag and advances the tag's generation. Both happen under the ledger's lock, and a
//! hit loads the mark and compares the generations, so once `apply` has returned no dependent is valid.
//!
//! *It reaches what is about to be stored.* A fill reads at a moment of its own and is stored later. A change that is applied in
//! between finds no entry to mark; it is in the change log instead, which keeps every change that some running fill may not
//! have seen. Under the same lock that guards `apply`, a fill is held against the log with its final tags, and stored only if
//! every change that touches them is certainly visible in the fill's snapshot. So of a fill and a change, one always finds the other.
//! The question is put to the snapshot and not to an order of arrival, because a feed may run ahead of
//! visibility: a change applied *before* a fill has begun may still be missing from what the fill reads.
//!
//! *The log forgets nothing too early.* A change leaves the log when it is known to be visible to all new snapshots *and*
//! every running fill began after that was known. When the log is full, a new epoch begins instead. An epoch ends what is stored and
//! what is being filled, but not the changes that were applied and cannot be seen yet: of those the marks stay, and a fill
//! that does not see all of them is not stored.
//!
//! *It reaches those who wait.* Storing and leaving the board are one step under the lock. So who joined a flight that was
//! stored had joined before any later change was applied; and who joined a flight that was not stored gets its result only if
//! they had asked before its snapshot was asked for, and starts again otherwise.
//!
//! *What the feed cannot tell ends everything.* A fill notes the epoch before it reads and is stored only in the same one; an
//! entry is valid only in its own.
//!
//! *Silence is not health.* Hits need a heartbeat *sent* within the bound. A request that comes later joins only
//! flights that have not begun to read ([`Need::Unbegun`]).
//!
//! *Several values make one state.* [`Store::combine`] looks at all of them under the ledger's lock, so that no change is
//! applied between; each was valid at that moment, and none contains anything that the feed had not passed.
//!
//! *Making ahead is making.* What is made before it is asked for is a flight like any other: it begins, it is held against the log, and
//! those who ask meanwhile join it by the same rules. That nobody has asked yet decides nothing.
//!
//! The property test in `tests/it/model.rs` holds all of this against a plain model; `src/model_checked.rs` runs the
//! races under a model checker.

mod ahead;
mod config;
mod entry;
mod explain;
mod feed;
mod flight;
mod heat;
mod history;
mod hit;
mod index;
mod ledger;
mod log;
#[cfg(all(test, shuttle))]
mod model_checked;
mod permit;
mod policy;
mod refresh;
mod stats;
mod store;
mod sync;
mod tag;
mod tags;
mod watched;

pub use ahead::MadeAhead;
pub use config::Config;
pub use entry::Why;
pub use explain::{Explanation, FeedState, Stored};
pub use feed::{Change, Feed, Sink};
pub use flight::{Landed, Waiting};
pub use history::Cause;
pub use hit::Hit;
pub use permit::{Fill, Outcome, Permit};
pub use refresh::Degree;
pub use stats::Stats;
pub use store::{Combined, Joined, Need, Store};
pub use tag::Tag;

/// Whatever is stored.
pub trait Value: Send + Sync + 'static {
    /// The bytes that the value takes, itself included.
    fn weight(&self) -> usize;
}

/// What an entry's memory is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Something that exists.
    Normal = 0,
    /// The answer that something does not exist.
    Negative = 1,
}
