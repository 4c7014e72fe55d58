//! The store itself: hits, flights to join, and the feed's calls.

use std::{task::Waker, time::Duration};

use crate::{
    Change, Config, Feed, FlightWaiter, Hit, MissReason, Permit, Sink, Stats, Tag, Value,
    ahead::Detection,
    entry::Present,
    flight::Flight,
    history::TouchedSummary,
    index::Index,
    ledger::{Leaving, Ledger},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};
use base_clock::Boottime;

/// The coherent store of values `V` with the feed `F`. See the [crate's documentation](crate).
pub struct Store<V: Value, F: Feed> {
    pub(crate) present: Arc<Present>,
    pub(crate) index: Index<V, F>,
    pub(crate) waiters: Arc<AtomicUsize>,
    ledger: Mutex<Ledger<V, F>>,
    /// The waker of the task that makes values ahead.
    pub(crate) attendant: Mutex<Option<Waker>>,
    pub(crate) observer: Mutex<Option<Waker>>,
    /// Held by a sweep and by a fold: each takes the names of the watched entries, and returns the
    /// names that are to stay.
    pub(crate) tending: Mutex<()>,
    pub(crate) config: Config,
}

/// How fresh the flight that a request joins must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The feed is healthy: a running flight will do, because its result is compared with
    /// everything that the feed has brought before it is stored.
    Any,
    /// Only a flight that has not begun to read: the feed is too old to vouch for a flight that has
    /// begun.
    Unbegun,
}

/// Next step of a request without a hit.
pub enum Joined<V: Value, F: Feed> {
    /// Make the value: this request leads.
    Lead(Permit<V, F>),
    /// Wait: another request makes the value.
    Wait(FlightWaiter<V>),
    /// Too many flights or too many waiters.
    Refused,
}

/// Stored values that were all valid at one position of the feed (coherence.md, rule 4).
pub struct Combined<V, F: Feed> {
    /// The values, in the order of the keys.
    pub values: Vec<Arc<V>>,
    /// Everything on which the values depend.
    pub tags: Vec<Tag>,
    /// The position at which they were all valid.
    pub position: F::Position,
    /// The earliest end of the values' own `max-age`, if one has any.
    pub expires: Option<Boottime>,
}

/// A value that only the silence of the feed keeps from being a hit.
pub struct Stale<V> {
    /// The value.
    pub value: Arc<V>,
    /// The time since the last heartbeat was sent: the value has everything that was committed
    /// before.
    pub age: Duration,
    /// How long the bound has been over.
    pub overdue: Duration,
}

impl<V: Value, F: Feed> Store<V, F> {
    /// An empty store. Nothing is a hit before the feed's first heartbeat.
    #[must_use]
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Self {
            present: Arc::new(Present::new(&config)),
            index: Index::new(),
            waiters: Arc::default(),
            ledger: Mutex::new(Ledger::new(&config)),
            attendant: Mutex::default(),
            observer: Mutex::default(),
            tending: Mutex::default(),
            config,
        })
    }

    /// The value under `key`, if it may be given to a request that was sent no later than `now`.
    /// The returned [`Hit`] also says later whether the value is still valid.
    ///
    /// Takes one shard's lock for reading, compares one counter for each broad tag, and writes at
    /// most one byte of the entry and the entry's reference count.
    ///
    /// # Errors
    /// Why there is no hit.
    pub fn get(&self, key: &[u8], now: Boottime) -> Result<Hit<V, F>, MissReason> {
        if !self.healthy(now) {
            return Err(MissReason::FeedOld);
        }
        let found = self.index.read(key, |entry| {
            entry.valid(now)?;
            entry.visit();
            Ok(Hit::new(entry.clone()))
        });
        found.unwrap_or(Err(MissReason::Absent))
    }

    /// The value under `key` that would be a hit if the feed had been heard in time, for a request
    /// whose value cannot be made. None if the bound has been over for longer than `allowance`.
    /// **Such a value has not the promised age**: the caller says so with the response, and does
    /// not have it repeated.
    #[must_use]
    pub fn get_stale(&self, key: &[u8], now: Boottime, allowance: Duration) -> Option<Stale<V>> {
        let fresh_until = self.present.fresh_until();
        let overdue = now.since(fresh_until);
        if overdue > allowance {
            return None;
        }
        let value = self.index.read(key, |entry| {
            entry.valid(now).ok()?;
            Some(entry.value.clone())
        });
        Some(Stale {
            value: value.flatten()?,
            age: (now.plus(self.config.max_staleness)).since(fresh_until),
            overdue,
        })
    }

    /// True if the feed was heard within the bound (coherence.md, rule 6).
    #[must_use]
    pub fn healthy(&self, now: Boottime) -> bool {
        self.present.is_heard(now)
    }

    /// Returns whether a value is being made for `key`, so that a request for it need only wait.
    #[must_use]
    pub fn has_flight(&self, key: &[u8]) -> bool {
        self.lock().flights.contains_key(key)
    }

    /// Joins the flight for `key`, or starts one.
    pub fn join(self: &Arc<Self>, key: &[u8], need: Need) -> Joined<V, F> {
        let mut ledger = self.lock();
        let room = ledger.running_flights < self.config.flights;
        let Some(slot) = ledger.flights.get_mut(key) else {
            if !room {
                ledger.stats.refused += 1;
                return Joined::Refused;
            }
            let flight = ledger.start(key);
            return Joined::Lead(Permit::new(self.clone(), key, flight, None));
        };
        let begun = slot.current.has_begun();
        let flight = match (&slot.next, need) {
            _ if !begun => slot.current.clone(),
            (_, Need::Any) => slot.current.clone(),
            (Some(next), Need::Unbegun) => next.clone(),
            (None, Need::Unbegun) if room => {
                let next = Flight::new();
                slot.next = Some(next.clone());
                let before = slot.current.clone();
                ledger.running_flights += 1;
                return Joined::Lead(Permit::new(self.clone(), key, next, Some(before)));
            }
            (None, Need::Unbegun) => {
                ledger.stats.refused += 1;
                return Joined::Refused;
            }
        };
        if self.waiters.fetch_add(1, Ordering::Relaxed) >= self.config.waiters {
            self.waiters.fetch_sub(1, Ordering::Relaxed);
            ledger.stats.refused += 1;
            return Joined::Refused;
        }
        ledger.stats.waited += 1;
        let early = flight.join();
        Joined::Wait(FlightWaiter::new(flight, early, self.waiters.clone()))
    }

    /// The values under `keys`, if every one is valid and the feed has passed all their positions.
    #[must_use]
    pub fn combine(&self, keys: &[&[u8]], now: Boottime) -> Option<Combined<V, F>> {
        if !self.healthy(now) {
            return None;
        }
        // Under the lock no change is applied between the first look and the last.
        let ledger = self.lock();
        let position = ledger.feed_position?;
        let mut combined = Combined {
            values: Vec::with_capacity(keys.len()),
            tags: Vec::new(),
            position,
            expires: None,
        };
        for key in keys {
            let value = self.index.read(key, |entry| {
                if entry.valid(now).is_err() || entry.position > position {
                    return None;
                }
                entry.visit();
                combined.tags.extend_from_slice(&entry.tags);
                combined.expires = [combined.expires, entry.ends()].into_iter().flatten().min();
                Some(entry.value.clone())
            });
            combined.values.push(value.flatten()?);
        }
        Some(combined)
    }

    /// Adds `bytes` to the weight of the value under `key` (a coding of it was made). Does nothing
    /// if another value is stored there by now.
    pub fn grow(&self, key: &[u8], value: &Arc<V>, bytes: usize) {
        let mut leaving = Leaving::new();
        let mut ledger = self.lock();
        let entry = self.index.read(key, Arc::clone);
        if let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.value, value)) {
            ledger.grow(&self.index, &entry, bytes, &mut leaving);
        }
        drop(ledger);
    }

    /// Ends the values under these keys, as a change does that touches them, and returns how many
    /// ended. Reads all keys, so it is for people and not for requests. A value that is being made
    /// is stored all the same: it may have been read before this call.
    pub fn end(&self, is_wanted: impl Fn(&[u8]) -> bool) -> usize {
        let now = Boottime::now();
        let mut ended = self.index.select(is_wanted);
        ended.retain(|entry| entry.valid(now).is_ok());
        let mut ledger = self.lock();
        for entry in &ended {
            entry.dead.store(true, Ordering::Release);
            ledger.ahead.examine_ended(entry, Detection::Marked, now);
        }
        ledger.stats.invalidated += ended.len() as u64;
        self.unlock_and_notify(ledger);
        ended.len()
    }

    /// Counters and gauges.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let ledger = self.lock();
        let (logged, logged_tags) = ledger.log.size();
        Stats {
            entries: self.index.len(),
            bytes: ledger.bytes(),
            tags: ledger.tags.len(),
            epoch: self.present.epoch.load(Ordering::Relaxed),
            flights: ledger.running_flights,
            waiting: self.waiters.load(Ordering::Relaxed),
            logged,
            logged_tags,
            ahead: ledger.ahead.len(),
            ahead_dropped: ledger.ahead.dropped,
            made_ahead: ledger.ahead.made,
            made_unused: ledger.ahead.unused,
            ..ledger.stats.clone()
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Ledger<V, F>> {
        self.ledger.lock()
    }

    fn renew(&self, ledger: &mut Ledger<V, F>, reason: &str) {
        self.present.epoch.fetch_add(1, Ordering::Release);
        ledger.feed_position = None;
        ledger.log.seal();
        ledger.history.epoch_began = Boottime::now();
        ledger.ahead.request_sweep();
        reason.clone_into(&mut ledger.stats.epoch_reason);
    }
}

impl<V: Value, F: Feed> Sink<F> for Store<V, F> {
    fn apply(&self, mut change: Change<F>) {
        // Done before the lock is taken: a transaction may have touched a hundred thousand tags.
        change.tags.sort_unstable();
        change.tags.dedup();
        let tags = change.tags.into();
        let touched = TouchedSummary::of(&tags);
        let now = Boottime::now();
        let mut ledger = self.lock();
        for &tag in tags.iter() {
            ledger.touch(tag, now);
        }
        ledger.stats.changes += 1;
        ledger.history.push(change.mark, touched, now);
        ledger.log.push(change.mark, tags);
        if ledger
            .log
            .exceeds(self.config.logged_changes, self.config.logged_tags)
        {
            self.renew(&mut ledger, "the change log was full");
        }
        self.unlock_and_notify(ledger);
    }

    fn visible(&self, snapshot: &F::Snapshot) {
        self.lock().log.visible(snapshot);
    }

    fn heartbeat(&self, sent: Boottime, position: F::Position) {
        let mut ledger = self.lock();
        ledger.feed_position = Some(position);
        ledger.history.heard = ledger.history.heard.max(Some(sent));
        let until = sent.plus(self.config.max_staleness).as_nanos();
        self.present.fresh_until.fetch_max(until, Ordering::AcqRel);
    }

    fn new_epoch(&self, reason: &str) {
        let mut ledger = self.lock();
        self.renew(&mut ledger, reason);
        self.unlock_and_notify(ledger);
    }
}
