//! What the store knows of one key, to explain why a request for it is answered as it is.

use std::time::Duration;

use crate::{
    Feed, MadeAhead, MissReason, Store, Value,
    history::Cause,
    sync::{Arc, atomic::Ordering},
};
use base_clock::Boottime;

/// Knowledge of the store of one key, and of its feed, at one moment.
pub struct Explanation<V, F: Feed> {
    /// Result that [`Store::get`] would return, without the value.
    pub state: Result<(), MissReason>,
    /// True if a flight runs for the key.
    pub is_flying: bool,
    /// The entry that is stored, or that was stored and has not been replaced.
    pub entry: Option<Stored<V, F>>,
    /// The change that ended the entry, if one did and is still remembered.
    pub ended_by: Option<Cause<F::Mark>>,
    /// If no change has ended the entry: the last change that touched one of its dependencies, and
    /// so ended the value before it, if that change is still remembered.
    pub ended_before: Option<Cause<F::Mark>>,
    /// How often the value was made ahead.
    pub ahead: MadeAhead,
    /// The feed at this moment.
    pub feed: FeedState<F>,
}

/// A stored value.
pub struct Stored<V, F: Feed> {
    /// The value.
    pub value: Arc<V>,
    /// When it was stored.
    pub at: Boottime,
    /// The feed's position that covers what it was read from.
    pub position: F::Position,
    /// The end of its `max-age`, if it has one.
    pub expires: Option<Boottime>,
    /// The time that the fill took, as a multiple of the mean.
    pub cost: f32,
    /// The bytes that count for it.
    pub weight: usize,
    /// How many tags it has.
    pub tags: usize,
}

/// How far the feed is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedState<F: Feed> {
    /// Time since the newest heartbeat was sent; none before the first.
    pub age: Option<Duration>,
    /// The longest age with which hits are given.
    pub bound: Duration,
    /// How far the feed has been applied in this epoch.
    pub position: Option<F::Position>,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Why the epoch began.
    pub epoch_reason: String,
    /// How long ago the epoch began.
    pub epoch_age: Duration,
}

impl<V: Value, F: Feed> Store<V, F> {
    /// Explains `key` at `now`. Takes the ledger's lock, so it is for people and not for requests.
    #[must_use]
    pub fn explain(&self, key: &[u8], now: Boottime) -> Explanation<V, F> {
        let ledger = self.lock();
        let entry = self.index.read(key, Arc::clone);
        let state = match &entry {
            _ if !self.healthy(now) => Err(MissReason::FeedOld),
            Some(entry) => entry.valid(now),
            None => Err(MissReason::Absent),
        };
        let history = &ledger.history;
        let (ended_by, ended_before) = match &entry {
            Some(entry) if entry.valid(now) == Err(MissReason::Invalidated) => {
                (history.first(entry.since, &entry.tags), None)
            }
            Some(entry) => (None, history.last(&entry.tags)),
            None => (None, None),
        };
        let stored = entry.as_ref().map(|entry| Stored {
            value: entry.value.clone(),
            at: entry.stored,
            position: entry.position,
            expires: entry.ends(),
            cost: entry.cost,
            weight: entry.weight.load(Ordering::Relaxed),
            tags: entry.tags.len(),
        });
        Explanation {
            state,
            is_flying: ledger.flights.contains_key(key),
            ended_by,
            ended_before,
            entry: stored,
            ahead: ledger.ahead.tally_of(self.index.hash(key)),
            feed: self.feed_of(&ledger, now),
        }
    }

    /// How far the feed is at `now`.
    #[must_use]
    pub fn feed(&self, now: Boottime) -> FeedState<F> {
        self.feed_of(&self.lock(), now)
    }

    fn feed_of(&self, ledger: &crate::ledger::Ledger<V, F>, now: Boottime) -> FeedState<F> {
        FeedState {
            age: ledger.history.heard.map(|sent| now.since(sent)),
            bound: self.config.max_staleness,
            position: ledger.feed_position,
            epoch: self.present.epoch.load(Ordering::Relaxed),
            epoch_reason: ledger.stats.epoch_reason.clone(),
            epoch_age: now.since(ledger.history.epoch_began),
        }
    }
}
