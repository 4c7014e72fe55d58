//! Everything that changes together, under one lock: stored entries, dependencies, running fills,
//! changes.
//!
//! The lock makes "compared with the log and then stored" one step (coherence.md, rule 1). A change
//! is applied either before a fill is stored, and then the change is in the log, or after, and then
//! it finds the entry. A hit never takes the lock.

use hashbrown::HashMap;

use crate::{
    Class, Config, Feed, Fill, Stats, Tag, Value,
    ahead::{Ahead, Detection},
    entry::{HandleCell, Present, StoredEntry},
    flight::Flight,
    heat::Heat,
    history::History,
    index::Index,
    log::ChangeLog,
    policy::Policy,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    tags::TagTable,
};
use base_clock::Boottime;

/// The flight that runs for a key, and the flight that begins after it, for requests that cannot
/// use what the first has read.
pub(crate) struct Slot<V> {
    pub(crate) current: Arc<Flight<V>>,
    pub(crate) next: Option<Arc<Flight<V>>>,
}

pub(crate) struct Ledger<V, F: Feed> {
    pub(crate) log: ChangeLog<F>,
    pub(crate) history: History<F>,
    pub(crate) tags: TagTable<V, F>,
    pub(crate) flights: HashMap<Box<[u8]>, Slot<V>, foldhash::fast::RandomState>,
    pub(crate) running_flights: usize,
    /// How far the feed has been applied; `None` until it is known in this epoch.
    pub(crate) feed_position: Option<F::Position>,
    pub(crate) stats: Stats,
    pub(crate) ahead: Ahead,
    policies: [Policy<Arc<StoredEntry<V, F>>>; 2],
    /// Mean time that the stored fills took, in seconds (exponentially weighted).
    mean_cost: f32,
}

/// How a value came to be stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Provenance {
    /// True if no request had asked for the value.
    pub(crate) is_ahead: bool,
    /// True if the value can be made again from its key alone.
    pub(crate) is_renewable: bool,
    /// True if it may never be asked for again.
    pub(crate) is_unproven: bool,
}

/// Entries that left the store; dropped after the lock is released.
pub(crate) type Leaving<V, F> = Vec<Arc<StoredEntry<V, F>>>;

/// Bytes that refer to an entry beside its own fields: its slot in the index, the two counts of its
/// `Arc`, its node in the eviction policy, and, once the store is full, one and a half ghosts of
/// entries that have left.
const REFERENCES: usize = 128;
/// A narrow tag: itself in the entry, its bucket in the tag table, and the shortest list of
/// dependents.
const NARROW: usize = 128;
/// A broad tag: itself and its check in the entry, and a share of the bucket and the counter that
/// all dependents share.
const BROAD: usize = 32;
/// The most by which one fill may exceed the mean and move it, in multiples of the mean.
const OUTLIER: f32 = 16.0;

/// The bytes that an entry with these tags takes beside its key and its value.
///
/// Without tags it is 256: 128 of the entry's fields (when a position takes 8) and 128 of
/// references. An allocator counts as much once the store is full (`tests/it/memory.rs`). Before
/// that, without ghosts, it is a quarter less. Three narrow tags that no other entry has make it
/// 640; one broad tag that all entries have makes it 288.
fn overhead<V: Value, F: Feed>(tags: &[Tag]) -> usize {
    let broad = tags.iter().filter(|tag| tag.is_broad()).count();
    size_of::<StoredEntry<V, F>>() + REFERENCES + broad * BROAD + (tags.len() - broad) * NARROW
}

/// The bytes of an entry.
fn weight<V: Value, F: Feed>(value: &V, key: usize, tags: &[Tag]) -> usize {
    value.weight().saturating_add(key + overhead::<V, F>(tags))
}

impl<V: Value, F: Feed> Ledger<V, F> {
    pub(crate) fn new(config: &Config) -> Self {
        let negative = config.memory / 100 * config.negative_percent.min(100);
        Self {
            log: ChangeLog::new(),
            history: History::new(Boottime::now()),
            tags: TagTable::new(),
            flights: HashMap::default(),
            running_flights: 0,
            feed_position: None,
            stats: Stats {
                epoch_reason: "start".to_owned(),
                ..Stats::default()
            },
            ahead: Ahead::new(config.ahead),
            policies: [Policy::new(config.memory - negative), Policy::new(negative)],
            mean_cost: 0.0,
        }
    }

    /// Puts a flight for `key` on the board, which must have none.
    pub(crate) fn start(&mut self, key: &[u8]) -> Arc<Flight<V>> {
        let flight = Flight::new();
        let slot = Slot {
            current: flight.clone(),
            next: None,
        };
        self.flights.insert(key.into(), slot);
        self.running_flights += 1;
        flight
    }

    /// Invalidates every entry that depends on `tag`.
    pub(crate) fn touch(&mut self, tag: Tag, now: Boottime) {
        let ahead = &mut self.ahead;
        let touched = self.tags.touch(tag, |entry| {
            ahead.examine_ended(entry, Detection::Marked, now)
        });
        if touched.others {
            ahead.request_sweep();
        }
        self.stats.invalidated += touched.marked as u64;
    }

    /// Shows the entries in `seats` seats from `from` on, without negative entries. Returns the
    /// seat to go on with; none at the end.
    pub(crate) fn visit_seats(
        &mut self,
        from: u32,
        seats: u32,
        mut look: impl FnMut(&mut Ahead, &Arc<StoredEntry<V, F>>),
    ) -> Option<u32> {
        let policy = &self.policies[Class::Normal as usize];
        for entry in policy.residents(from, seats) {
            look(&mut self.ahead, entry);
        }
        let next = from + seats;
        (next < policy.seats()).then_some(next)
    }

    /// Shows the entries in these seats, as [`show`](Self::show) does.
    pub(crate) fn visit_named_seats(
        &mut self,
        seats: &[u32],
        mut look: impl FnMut(&mut Ahead, &Arc<StoredEntry<V, F>>),
    ) {
        let policy = &self.policies[Class::Normal as usize];
        for entry in seats.iter().filter_map(|seat| policy.resident(*seat)) {
            look(&mut self.ahead, entry);
        }
    }

    /// Returns whether an unproven fill has a place: there is room, or its key was asked for before
    /// and is forgotten now. If not, the key is remembered.
    pub(crate) fn has_room_for(&mut self, hash: u64, fill: &Fill<V, F>, key: usize) -> bool {
        let weight = weight::<V, F>(&fill.value, key, &fill.tags);
        self.policies[fill.class as usize].admits_unproven(hash, weight)
    }

    /// Stores a fill that the fence let through. Its tags are sorted, without duplicates.
    pub(crate) fn insert(
        &mut self,
        index: &Index<V, F>,
        present: &Arc<Present>,
        key: &[u8],
        fill: Fill<V, F>,
        provenance: Provenance,
        leaving: &mut Leaving<V, F>,
    ) {
        let tags = fill.tags;
        let weight = weight::<V, F>(&fill.value, key.len(), &tags);
        let checks = self.tags.checks(&tags);
        let entry = Arc::new(StoredEntry {
            hash: index.hash(key),
            key: key.into(),
            value: fill.value,
            present: present.clone(),
            epoch: present.epoch.load(Ordering::Relaxed),
            position: fill.position,
            expires: fill.expires.unwrap_or(Boottime::NEVER),
            stored: Boottime::now(),
            since: self.history.count(),
            checks,
            tags: tags.into_boxed_slice(),
            cost: self.relative_cost(fill.cost.as_secs_f32()),
            class: fill.class,
            dead: AtomicBool::new(false),
            heat: Heat::new(!provenance.is_ahead, provenance.is_renewable),
            weight: AtomicUsize::new(weight),
            handle: HandleCell::empty(),
        });
        self.tags.list(&entry);
        let handle = self.policies[entry.class as usize].insert(entry.clone());
        entry.handle.set(handle);
        if let Some(old) = index.replace(&entry) {
            entry.heat.inherit(&old.heat);
            self.ahead.replaced(&old);
            self.release(&old);
            leaving.push(old);
        }
        entry.watch();
        self.stats.stored += 1;
        if provenance.is_ahead {
            self.ahead.count_made(entry.hash);
        }
        self.make_room(index, entry.class, leaving);
    }

    /// A fill's cost as a multiple of the mean; 1 while there is no mean to compare with.
    fn relative_cost(&mut self, seconds: f32) -> f32 {
        let mean = if self.mean_cost > 0.0 {
            self.mean_cost
        } else {
            seconds
        };
        // Without the limit, one fill that hung for half a minute would make hundreds of later
        // fills look cheap.
        self.mean_cost = mean + (seconds.min(OUTLIER * mean) - mean) / 64.0;
        if mean > 0.0 { seconds / mean } else { 1.0 }
    }

    /// Removes an entry that has left the index from everything else.
    fn release(&mut self, entry: &Arc<StoredEntry<V, F>>) {
        entry.dead.store(true, Ordering::Release);
        if let Some(handle) = entry.handle.take() {
            self.policies[entry.class as usize].remove(handle);
        }
        self.tags.unlist(entry);
    }

    fn make_room(&mut self, index: &Index<V, F>, class: Class, leaving: &mut Leaving<V, F>) {
        let from = leaving.len();
        self.policies[class as usize].evict(leaving);
        for entry in &leaving[from..] {
            entry.handle.take();
            index.remove(entry);
            entry.dead.store(true, Ordering::Release);
            self.tags.unlist(entry);
            self.stats.evicted += 1;
        }
    }

    /// The entry's value grew by `bytes`.
    pub(crate) fn grow(
        &mut self,
        index: &Index<V, F>,
        entry: &Arc<StoredEntry<V, F>>,
        bytes: usize,
        leaving: &mut Leaving<V, F>,
    ) {
        let Some(handle) = entry.handle.get() else {
            return;
        };
        let old = entry.weight.load(Ordering::Relaxed);
        let new = old.saturating_add(bytes);
        entry.weight.store(new, Ordering::Relaxed);
        self.policies[entry.class as usize].reweigh(handle, old, new);
        self.make_room(index, entry.class, leaving);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.policies.iter().map(Policy::used).sum()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::time::Duration;

    use super::{Feed, Ledger, Value};
    use crate::Config;

    struct Nothing;

    impl Value for Nothing {
        fn weight(&self) -> usize {
            0
        }
    }

    impl Feed for Nothing {
        type Mark = ();
        type Snapshot = ();
        type Position = ();

        fn sees((): &(), (): ()) -> bool {
            true
        }

        fn snapshot_at((): ()) {}
    }

    #[test]
    fn a_cost_is_relative_to_the_mean_and_one_outlier_does_not_move_it_far() {
        let mut ledger = Ledger::<Nothing, Nothing>::new(&Config::default());
        assert_eq!(ledger.relative_cost(0.0), 1.0);
        for _ in 0..1000 {
            ledger.relative_cost(0.001);
        }
        assert!((ledger.relative_cost(0.004) - 4.0).abs() < 0.1);
        assert!(ledger.relative_cost(30.0) > 10_000.0);
        assert!(ledger.relative_cost(0.001) > 0.7);
        assert!(
            ledger
                .relative_cost(Duration::MAX.as_secs_f32())
                .is_finite()
        );
    }
}
