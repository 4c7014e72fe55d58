//! The store's part in making values ahead. The caller decides what is made, and how much of it.

use std::task::Waker;

use crate::{
    Feed, MissReason, Permit, Store, Value,
    ahead::{Ahead, Detection, heat_of},
    entry::StoredEntry,
    heat::HOT,
    ledger::Ledger,
    sync::{Arc, MutexGuard},
};
use base_clock::Boottime;

/// Entries that are examined before the ledger's lock is released: about ten microseconds of work.
const STRIDE: u32 = 128;

/// How often a value was asked for before it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degree(u8);

/// The hottest keys among the entries that were offered.
struct Hottest {
    limit: usize,
    keys: Vec<(f32, Box<[u8]>)>,
}

impl Hottest {
    fn new(limit: usize) -> Self {
        let keys = Vec::new();
        Self { limit, keys }
    }

    fn order(a: &(f32, Box<[u8]>), b: &(f32, Box<[u8]>)) -> std::cmp::Ordering {
        b.0.total_cmp(&a.0)
    }

    fn add(&mut self, heat: f32, key: &[u8]) {
        self.keys.push((heat, key.into()));
        if self.limit > 0 && self.keys.len() >= 2 * self.limit {
            self.keys
                .select_nth_unstable_by(self.limit - 1, Self::order);
            self.keys.truncate(self.limit);
        }
    }

    fn into_keys(mut self) -> Vec<Box<[u8]>> {
        self.keys.sort_by(Self::order);
        self.keys.truncate(self.limit);
        self.keys.into_iter().map(|(_, key)| key).collect()
    }
}

impl<V: Value, F: Feed> Store<V, F> {
    /// Wakes `waker` when there is a value to make ahead. Wakes it once, until
    /// [`has_work_ahead`](Self::has_work_ahead) has returned false.
    pub fn set_attendant(&self, waker: Waker) {
        let before = self.attendant.lock().replace(waker);
        drop(before);
    }

    /// Wakes `waker` whenever a change or a new epoch was applied; none wakes nothing more.
    pub fn set_observer(&self, waker: Option<Waker>) {
        let before = std::mem::replace(&mut *self.observer.lock(), waker);
        drop(before);
    }

    /// True if keys wait to be made ahead, or a sweep has to look for them.
    #[must_use]
    pub fn has_work_ahead(&self) -> bool {
        self.lock().ahead.has_work()
    }

    /// Looks for hot entries that have ended without being touched, if there may be any. True if it
    /// looked. Takes the ledger's lock repeatedly, each time for some entries.
    pub fn sweep(&self, now: Boottime) -> bool {
        let tending = self.tending.lock();
        if !self.lock().ahead.take_sweep() {
            return false;
        }
        let mut looked = 0;
        let mut look = |ahead: &mut Ahead, entry: &Arc<StoredEntry<V, F>>| {
            looked += 1;
            match entry.valid(now) {
                Err(MissReason::Invalidated | MissReason::Epoch) => {
                    ahead.examine_ended(entry, Detection::Swept, now)
                }
                _ => entry.watch(),
            }
        };
        match self.present.watched.take() {
            Some(seats) => {
                for seats in seats.chunks(STRIDE as usize) {
                    self.lock().visit_named_seats(seats, &mut look);
                }
            }
            None => self.walk(look),
        }
        self.lock().stats.swept += looked;
        drop(tending);
        true
    }

    /// The key to make ahead next: the hottest, by the number of recent requests times the cost of
    /// a fill. The [`Degree`] is for [`inherit_heat`](Self::inherit_heat).
    #[must_use]
    pub fn next_ahead(&self, now: Boottime) -> Option<(Box<[u8]>, Degree)> {
        let (key, degree) = self.lock().ahead.next(now)?;
        Some((key, Degree(degree)))
    }

    /// The right to make the value of `key` before a request asks for it. None if the value is
    /// valid, if a flight makes it already, or if too many fills run.
    pub fn lead_ahead(self: &Arc<Self>, key: &[u8], now: Boottime) -> Option<Permit<V, F>> {
        let mut ledger = self.lock();
        let is_valid = self.index.read(key, |entry| entry.valid(now).is_ok());
        if is_valid == Some(true)
            || ledger.flights.contains_key(key)
            || ledger.running_flights >= self.config.flights
        {
            return None;
        }
        let flight = ledger.start(key);
        Some(Permit::new(self.clone(), key, flight, None).ahead())
    }

    /// Halves the weight of all requests until now. Call it at equal intervals: an entry is hot if
    /// it was requested in the last few of them.
    pub fn fold_heat(&self) {
        let tending = self.tending.lock();
        // The walk names every hot entry anew, and once.
        self.present.watched.clear();
        self.walk(|_, entry| {
            entry.heat.fold();
            entry.watch();
        });
        drop(tending);
    }

    /// The keys of hot entries that can be made again, at most `limit`, the hottest first. Takes
    /// the ledger's lock as a [sweep](Self::sweep) does.
    #[must_use]
    pub fn hottest(&self, limit: usize) -> Vec<Box<[u8]>> {
        let mut hottest = Hottest::new(limit);
        // Under the lock only reference counts change. Copying keys, choosing and freeing hold up
        // no change and no fill.
        let mut seen = Vec::with_capacity(STRIDE as usize);
        let mut next = Some(0);
        while let Some(from) = next {
            next = self
                .lock()
                .visit_seats(from, STRIDE, |_, entry: &Arc<StoredEntry<V, F>>| {
                    if entry.heat.is_renewable() && entry.heat.degree() >= HOT {
                        seen.push(entry.clone());
                    }
                });
            debug_assert!(
                seen.len() <= STRIDE as usize,
                "no room was made under the lock"
            );
            for entry in seen.drain(..) {
                hottest.add(heat_of(&entry), &entry.key);
            }
        }
        hottest.into_keys()
    }

    /// Makes the entry under `key` at least as hot as `degree`, the degree of an entry under
    /// another key that it replaces. Does nothing if there is no such entry.
    pub fn inherit_heat(&self, key: &[u8], degree: Degree) {
        let ledger = self.lock();
        self.index.read(key, |entry| {
            entry.heat.raise_to(degree.0);
            entry.watch();
        });
        drop(ledger);
    }

    /// Shows each entry that is present all the time. Releases the lock repeatedly, because changes
    /// and fills have priority.
    fn walk(&self, mut look: impl FnMut(&mut Ahead, &Arc<StoredEntry<V, F>>)) {
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.lock().visit_seats(from, STRIDE, &mut look);
        }
    }

    /// Releases the lock after a change, and wakes who waits for one; the attendant if there is new
    /// work.
    pub(crate) fn unlock_and_notify(&self, mut ledger: MutexGuard<'_, Ledger<V, F>>) {
        let has_news = ledger.ahead.take_notification();
        drop(ledger);
        if has_news && let Some(waker) = &*self.attendant.lock() {
            waker.wake_by_ref();
        }
        if let Some(waker) = &*self.observer.lock() {
            waker.wake_by_ref();
        }
    }
}
