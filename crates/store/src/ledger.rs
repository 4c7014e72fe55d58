//! Everything that changes together, under one lock: what is stored, on what it depends, what is running, what has changed.
//!
//! The lock is what makes "replayed against its final dependencies before it is stored" one step (COHERENCE, rule 1): a
//! change is applied either before a fill is stored, and then it is in the log, or after, and then it finds the entry.
//! A hit never takes it.

use hashbrown::HashMap;

use crate::{
    Class, Config, Feed, Fill, Stats, Value,
    entry::{Entry, HandleCell, Present},
    flight::Flight,
    index::Index,
    log::ChangeLog,
    policy::Policy,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering},
    },
    tags::TagTable,
};

/// The flight that runs for a key and the one that begins after it, for those who cannot use what the first has read.
pub(crate) struct Slot<V> {
    pub(crate) current: Arc<Flight<V>>,
    pub(crate) next: Option<Arc<Flight<V>>>,
}

pub(crate) struct Ledger<V, F: Feed> {
    pub(crate) log: ChangeLog<F>,
    pub(crate) tags: TagTable<V, F>,
    pub(crate) flights: HashMap<Box<[u8]>, Slot<V>, foldhash::fast::RandomState>,
    pub(crate) flying: usize,
    /// How far the feed has been applied, once it is known in this epoch.
    pub(crate) passed: Option<F::Position>,
    pub(crate) stats: Stats,
    policies: [Policy<Arc<Entry<V, F>>>; 2],
    /// Mean time that the stored fills took, in seconds (exponentially weighted).
    mean_cost: f32,
}

/// Entries that left the store, to be dropped after the lock is released.
pub(crate) type Leaving<V, F> = Vec<Arc<Entry<V, F>>>;

/// What the maps and lists that refer to an entry take for it beside its own fields: index slot, policy node, and for each tag a
/// list slot and a share of the tag's own bucket. Checked against an allocator's count by `bench-peers overhead`.
const REFERENCES: usize = 64;
const PER_TAG: usize = 72;

impl<V: Value, F: Feed> Ledger<V, F> {
    pub(crate) fn new(config: &Config) -> Self {
        let negative = config.memory / 100 * config.negative_percent.min(100);
        Self {
            log: ChangeLog::new(),
            tags: TagTable::new(),
            flights: HashMap::default(),
            flying: 0,
            passed: None,
            stats: Stats { epoch_reason: "start".to_owned(), ..Stats::default() },
            policies: [Policy::new(config.memory - negative), Policy::new(negative)],
            mean_cost: 0.0,
        }
    }

    /// Stores a fill that the fence let through.
    pub(crate) fn insert(
        &mut self,
        index: &Index<V, F>,
        present: &Arc<Present>,
        key: &[u8],
        fill: Fill<V, F>,
        leaving: &mut Leaving<V, F>,
    ) {
        let mut tags = fill.tags;
        tags.sort_unstable();
        tags.dedup();
        let weight = fill.value.weight() + key.len() + tags.len() * PER_TAG + REFERENCES + size_of::<Entry<V, F>>();
        let witnesses = self.tags.witnesses(&tags);
        let entry = Arc::new(Entry {
            hash: index.hash(key),
            key: key.into(),
            value: fill.value,
            present: present.clone(),
            epoch: present.epoch.load(Ordering::Relaxed),
            position: fill.position,
            expires: fill.expires,
            witnesses,
            tags: tags.into_boxed_slice(),
            cost: self.relative_cost(fill.cost.as_secs_f32()),
            class: fill.class,
            dead: AtomicBool::new(false),
            visits: AtomicU8::new(0),
            weight: AtomicUsize::new(weight),
            handle: HandleCell::empty(),
        });
        self.tags.list(&entry);
        if let Some(old) = index.replace(&entry) {
            // What was hot before a change is hot after it: its visits stay.
            entry.visits.store(old.visits.load(Ordering::Relaxed), Ordering::Relaxed);
            self.release(&old);
            leaving.push(old);
        }
        let handle = self.policies[entry.class as usize].insert(entry.clone());
        entry.handle.set(handle);
        self.stats.stored += 1;
        self.make_room(index, entry.class, leaving);
    }

    /// A fill's cost as a multiple of the mean; 1 while there is no mean to compare with.
    fn relative_cost(&mut self, seconds: f32) -> f32 {
        let mean = if self.mean_cost > 0.0 { self.mean_cost } else { seconds };
        self.mean_cost = mean + (seconds - mean) / 64.0;
        if mean > 0.0 { seconds / mean } else { 1.0 }
    }

    /// Takes an entry that is no longer in the index out of everything else.
    fn release(&mut self, entry: &Arc<Entry<V, F>>) {
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
    pub(crate) fn grow(&mut self, index: &Index<V, F>, entry: &Arc<Entry<V, F>>, bytes: usize, leaving: &mut Leaving<V, F>) {
        let Some(handle) = entry.handle.get() else { return };
        let old = entry.weight.load(Ordering::Relaxed);
        entry.weight.store(old + bytes, Ordering::Relaxed);
        self.policies[entry.class as usize].reweigh(handle, old, old + bytes);
        self.make_room(index, entry.class, leaving);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.policies.iter().map(Policy::used).sum()
    }
}
