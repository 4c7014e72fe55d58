//! One stored value, with what decides whether the value may still be given.

use crate::{
    Class, Config, Feed, Tag,
    heat::Heat,
    policy::{Handle, Resident},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    watched::Watched,
};
use base_clock::Boottime;

/// Present state for all entries at a hit: the epoch, and the time until which the feed counts as
/// heard.
pub(crate) struct Present {
    pub(crate) epoch: AtomicU64,
    /// Boottime in nanoseconds.
    pub(crate) fresh_until: AtomicU64,
    pub(crate) watched: Watched,
}

impl Present {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            epoch: AtomicU64::default(),
            fresh_until: AtomicU64::default(),
            watched: Watched::new(config.ahead > 0),
        }
    }

    /// When the bound is over, if no later heartbeat comes.
    pub(crate) fn fresh_until(&self) -> Boottime {
        Boottime::from_nanos(self.fresh_until.load(Ordering::Acquire))
    }

    /// True if the feed was heard within the bound (coherence.md, rule 6).
    pub(crate) fn is_heard(&self, now: Boottime) -> bool {
        now.as_nanos() <= self.fresh_until.load(Ordering::Acquire)
    }
}

/// A generation counter of one tag, compared at each hit by the entries that depend on it.
#[derive(Default)]
pub(crate) struct Generation(AtomicU64);

impl Generation {
    pub(crate) fn advance(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// A tag's counter and its value when the entry was stored.
pub(crate) struct GenerationCheck {
    pub(crate) generation: Arc<Generation>,
    pub(crate) at: u64,
}

pub(crate) struct StoredEntry<V, F: Feed> {
    pub(crate) hash: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) value: Arc<V>,
    pub(crate) present: Arc<Present>,
    pub(crate) epoch: u64,
    /// The entry may be combined with others once the feed has passed this position.
    pub(crate) position: F::Position,
    /// End of the owner's `max-age`; [`Boottime::NEVER`] for entries that only the feed bounds.
    pub(crate) expires: Boottime,
    /// When the entry was stored, and after how many changes. Used only by explanations.
    pub(crate) stored: Boottime,
    pub(crate) since: u32,
    pub(crate) tags: Box<[Tag]>,
    pub(crate) checks: Box<[GenerationCheck]>,
    pub(crate) cost: f32,
    pub(crate) class: Class,
    /// Set once: by the change that touched a narrow tag, or by replacement.
    pub(crate) dead: AtomicBool,
    pub(crate) heat: Heat,
    pub(crate) weight: AtomicUsize,
    /// The entry's seat in the eviction policy. Written under the ledger's lock: before the index
    /// has the entry, and when the entry leaves.
    pub(crate) handle: HandleCell,
}

/// A [`Handle`] in a shared entry. The ledger's lock orders all accesses except that of a hit,
/// which only names a seat to look at.
pub(crate) struct HandleCell(AtomicU32);

const NO_HANDLE: u32 = u32::MAX;

impl HandleCell {
    pub(crate) fn empty() -> Self {
        Self(AtomicU32::new(NO_HANDLE))
    }

    pub(crate) fn set(&self, handle: Handle) {
        self.0.store(handle.0, Ordering::Relaxed);
    }

    pub(crate) fn take(&self) -> Option<Handle> {
        let raw = self.0.swap(NO_HANDLE, Ordering::Relaxed);
        (raw != NO_HANDLE).then_some(Handle(raw))
    }

    pub(crate) fn get(&self) -> Option<Handle> {
        let raw = self.0.load(Ordering::Relaxed);
        (raw != NO_HANDLE).then_some(Handle(raw))
    }
}

/// Why an entry may not be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissReason {
    /// There is no such entry.
    Absent,
    /// A change touched something that the entry depends on.
    Invalidated,
    /// The entry was stored in an earlier epoch.
    Epoch,
    /// The entry's own `max-age` is over.
    Expired,
    /// The feed has been silent for longer than the bound.
    FeedOld,
}

impl<V, F: Feed> StoredEntry<V, F> {
    /// `Ok` if the entry may be given at `now`. The caller checks the feed's age, which is the same
    /// for all entries.
    ///
    /// The loads acquire what [`Generation::advance`] and the store to `dead` release. So a thread
    /// that learned of a change after the change was applied cannot find the entry valid here.
    pub(crate) fn valid(&self, now: Boottime) -> Result<(), MissReason> {
        if self.epoch != self.present.epoch.load(Ordering::Acquire) {
            return Err(MissReason::Epoch);
        }
        if self.dead.load(Ordering::Acquire)
            || self
                .checks
                .iter()
                .any(|check| check.generation.now() != check.at)
        {
            return Err(MissReason::Invalidated);
        }
        if now >= self.expires {
            return Err(MissReason::Expired);
        }
        Ok(())
    }

    /// The end of `max-age`, if the entry has one.
    pub(crate) fn ends(&self) -> Option<Boottime> {
        (self.expires != Boottime::NEVER).then_some(self.expires)
    }

    /// Notes a hit. Writes nothing once the counts of the entry are full.
    pub(crate) fn visit(&self) {
        if self.heat.visit() {
            self.watch();
        }
    }

    /// Queues the entry for the next sweep, if a sweep could use it.
    #[cold]
    pub(crate) fn watch(&self) {
        if self.class == Class::Normal
            && self.heat.is_watched()
            && let Some(Handle(seat)) = self.handle.get()
        {
            self.present.watched.add(seat);
        }
    }
}

impl<V, F: Feed> Resident for Arc<StoredEntry<V, F>> {
    fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    fn hash(&self) -> u64 {
        self.hash
    }

    fn visits(&self) -> u8 {
        self.heat.visits()
    }

    fn set_visits(&self, visits: u8) {
        self.heat.set_visits(visits);
    }

    fn cost(&self) -> f32 {
        self.cost
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
            || self.epoch != self.present.epoch.load(Ordering::Relaxed)
    }
}
