//! The coherent store.
//!
//! The store keeps prepared values with their dependencies, and decides when a value may be given
//! again. It knows neither HTTP nor SQL: keys are bytes, values are what the caller stores,
//! dependencies are [`Tag`]s, and a [`Feed`] defines the time of the source of truth.
//!
//! # The promise
//! The promise concerns every value that [`Store::get`] gives at `now`, that [`Hit::is_valid`]
//! confirms at `now`, or that a flight joined at `now` gives. If the feed keeps its contract, the
//! value reflects:
//!
//! - every change that was committed more than `max_staleness` before `now`;
//! - every change that new snapshots saw and whose [`apply`](Sink::apply) had returned at `now`.
//!
//! A writer gets the acknowledgement of its commit when both are true. Where a feed runs ahead of
//! visibility, a hit reflects each applied change even if new snapshots do not show the change yet.
//!
//! # Why it holds
//! *Invalidation reaches what is stored.* An entry lists its tags when it is stored.
//! [`apply`](Sink::apply) marks the listed dependents of each touched tag and advances the tag's
//! generation. Both happen under the ledger's lock. A hit loads the mark and compares the
//! generations, so once `apply` has returned no dependent is valid.
//!
//! *Invalidation reaches what is about to be stored.* A fill reads at one moment and is stored
//! later. A change that is applied in between finds no entry to mark. The change is in the change
//! log instead, which keeps every change that a running fill may not have seen. Under the lock that
//! also guards `apply`, the fill's final tags are compared with the log. The fill is stored only if
//! every change that touches these tags is certainly visible in the fill's snapshot. So of a fill
//! and a change, one always finds the other. The snapshot decides, not the order of arrival,
//! because a feed may run ahead of visibility: a fill may miss a change that was applied *before*
//! the fill began.
//!
//! *The log forgets nothing too early.* A change leaves the log when it is known to be visible to
//! all new snapshots *and* every running fill began after that was known. When the log is full, a
//! new epoch begins instead. A new epoch ends all stored entries and all running fills. It does not
//! end the changes that were applied and are not visible yet: their marks stay, and a fill that
//! does not see all of them is not stored.
//!
//! *Invalidation reaches waiting requests.* Storing a result and removing its flight from the board
//! are one step under the lock. So a request that joined a stored flight had joined before any
//! later change was applied. A request that joined a flight that was not stored gets the result
//! only if the request arrived before the flight asked for its snapshot. Otherwise the request
//! starts again.
//!
//! *If the feed may have missed a change, everything ends.* A fill notes the epoch before it reads,
//! and is stored only in that epoch. An entry is valid only in its own epoch.
//!
//! *Silence is not health.* Hits need a heartbeat that was *sent* within the bound. Without such a
//! heartbeat, a request joins only flights that have not begun to read ([`Need::Unbegun`]).
//!
//! *Several values make one state.* [`Store::combine`] looks at all values under the ledger's lock,
//! so no change is applied in between. Each value was valid at that moment, and none contains a
//! change that the feed had not passed.
//!
//! *Making a value ahead is an ordinary fill.* A value that is made before a request asks for it is
//! a flight like any other. The flight begins, its result is compared with the log, and requests
//! that arrive meanwhile join it by the same rules.
//!
//! The property test in `tests/it/model.rs` compares all of this with a plain model.
//! `src/model_checked.rs` runs the races under a model checker.

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
#[cfg(test)]
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
pub use entry::MissReason;
pub use explain::{Explanation, FeedState, Stored};
pub use feed::{Change, Feed, Sink};
pub use flight::{FlightEnd, FlightWaiter};
pub use history::Cause;
pub use hit::Hit;
pub use permit::{Fill, FillOutcome, Permit};
pub use refresh::Degree;
pub use stats::Stats;
pub use store::{Combined, Joined, Need, Stale, Store};
pub use tag::Tag;

/// A value that the store keeps.
pub trait Value: Send + Sync + 'static {
    /// The bytes that the value takes, itself included.
    fn weight(&self) -> usize;
}

/// The budget that an entry's memory counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Something that exists.
    Normal = 0,
    /// The answer that something does not exist.
    Negative = 1,
}
