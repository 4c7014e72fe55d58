//! The right, and the duty, to make a value for all who wait for it.

use std::time::Duration;

use crate::{
    Class, Feed, Store, Tag, Value,
    flight::{Flight, Turn},
    ledger::{Leaving, Ledger, Provenance},
    log::FillNumber,
    sync::{Arc, atomic::Ordering},
};
use base_clock::Boottime;

/// A value that was made, and what must be known of it to store it.
pub struct Fill<V, F: Feed> {
    /// The value.
    pub value: Arc<V>,
    /// Everything that it depends on. Without any, only a new epoch or `expires` ends it.
    pub tags: Vec<Tag>,
    /// The snapshot in which all of it was read.
    pub snapshot: F::Snapshot,
    /// A position that covers everything that the snapshot could see: once the feed has passed it, the value may be
    /// combined with others.
    pub position: F::Position,
    /// When it is over whatever the feed says (`max-age`), if ever.
    pub expires: Option<Boottime>,
    /// What its memory is counted under.
    pub class: Class,
    /// What it took to make.
    pub cost: Duration,
}

/// What became of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored,
    /// A change that it may not have seen touched what it depends on. It went to those who had asked before it began.
    Fenced,
    /// The epoch in which it began is over.
    Outlived,
}

struct Begun {
    number: FillNumber,
    epoch: u64,
}

/// The right to make the value of one key. Dropped without a result (a panic, a cancelled request), it sets those who
/// wait free to start again.
pub struct Permit<V: Value, F: Feed> {
    store: Arc<Store<V, F>>,
    key: Box<[u8]>,
    flight: Arc<Flight<V>>,
    before: Option<Arc<Flight<V>>>,
    begun: Option<Begun>,
    landed: bool,
    provenance: Provenance,
}

impl<V: Value, F: Feed> Permit<V, F> {
    pub(crate) fn new(
        store: Arc<Store<V, F>>,
        key: &[u8],
        flight: Arc<Flight<V>>,
        before: Option<Arc<Flight<V>>>,
    ) -> Self {
        Self {
            store,
            key: key.into(),
            flight,
            before,
            begun: None,
            landed: false,
            provenance: Provenance::default(),
        }
    }

    /// The same where nobody has asked for the value yet.
    pub(crate) fn ahead(mut self) -> Self {
        self.provenance.is_ahead = true;
        self
    }

    /// Says that the value can be made again from its key alone, so that it may be made ahead when it is hot and a change has
    /// ended it.
    pub fn renewable(&mut self) {
        self.provenance.is_renewable = true;
    }

    /// Waits for the flight before this one, if there is one, and begins: to be called before the first snapshot is asked
    /// for. Notes the epoch; from here on every change is kept until this fill is over. Cancelled while it waits, it may be
    /// called again; once the flight has begun, it does nothing.
    pub async fn begin(&mut self) {
        if self.begun.is_some() {
            return;
        }
        // Forgotten only once it is over: were it forgotten before the wait, a second call would begin while the first flight
        // runs, and a request that needs a flight that has not begun would join this one.
        if let Some(before) = &self.before {
            Turn::after(before).await;
        }
        self.before = None;
        let mut ledger = self.store.lock();
        let number = ledger.log.begin();
        let epoch = self.store.present.epoch.load(Ordering::Relaxed);
        self.flight.begin();
        self.begun = Some(Begun { number, epoch });
    }

    /// The key that this permit is for.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Stores, beside the value that this permit is for, another that was read in the same flight under `key`.
    ///
    /// # Panics
    /// If the flight has not [begun](Self::begin).
    pub fn also(&self, key: &[u8], mut fill: Fill<V, F>) -> Outcome {
        // If it is refused, it is dropped outside the lock.
        let _value = fill.value.clone();
        sort(&mut fill.tags);
        let mut leaving = Leaving::new();
        let mut ledger = self.store.lock();
        self.insert(&mut ledger, key, fill, Provenance::default(), &mut leaving)
    }

    /// Stores the value if nothing speaks against it and gives it to those who may have it.
    ///
    /// Storing and leaving the board are one step: were they two, a change could be applied between them, and who asks after
    /// that change would join this flight and be given what it had read before.
    ///
    /// # Panics
    /// If the flight has not [begun](Self::begin).
    pub fn complete(mut self, mut fill: Fill<V, F>) -> Outcome {
        let value = fill.value.clone();
        sort(&mut fill.tags);
        let mut leaving = Leaving::new();
        let store = self.store.clone();
        let mut ledger = store.lock();
        let key = self.key.clone();
        let provenance = Provenance {
            // Who joined has asked for it.
            is_ahead: self.provenance.is_ahead && !self.flight.is_joined(),
            ..self.provenance
        };
        let outcome = self.insert(&mut ledger, &key, fill, provenance, &mut leaving);
        self.retire(&mut ledger);
        drop(ledger);
        match outcome {
            Outcome::Stored => self.flight.land_for_all(value),
            Outcome::Fenced | Outcome::Outlived => self.flight.land_for_early(value),
        }
        // `leaving` is dropped here, outside the lock: freeing megabytes takes time.
        outcome
    }

    /// The value cannot be stored: it goes to those who asked before it was begun, the others start again.
    pub fn give(mut self, value: Arc<V>) {
        self.leave();
        self.flight.land_for_early(value);
    }

    /// The fill failed, and `value` says so to everyone who waits.
    pub fn fail(mut self, value: Arc<V>) {
        self.leave();
        self.flight.land_for_all(value);
    }

    /// What was made is one visitor's own: nobody else gets it.
    pub fn alone(mut self) {
        self.leave();
        self.flight.land_alone();
    }

    /// The fence (COHERENCE, rules 1 and 2). The fill's tags are sorted, without duplicates.
    fn insert(
        &self,
        ledger: &mut Ledger<V, F>,
        key: &[u8],
        fill: Fill<V, F>,
        provenance: Provenance,
        leaving: &mut Leaving<V, F>,
    ) -> Outcome {
        let begun = self.begun.as_ref().expect("a fill begins before it reads");
        if begun.epoch != self.store.present.epoch.load(Ordering::Relaxed) {
            ledger.stats.outlived += 1;
            return Outcome::Outlived;
        }
        if ledger.log.contradicts(&fill.snapshot, &fill.tags) {
            ledger.stats.fenced += 1;
            return Outcome::Fenced;
        }
        let (index, present) = (&self.store.index, &self.store.present);
        ledger.insert(index, present, key, fill, provenance, leaving);
        Outcome::Stored
    }

    fn leave(&mut self) {
        let store = self.store.clone();
        self.retire(&mut store.lock());
    }

    /// Takes the flight off the board: whoever joins from now on finds the next one, or none.
    fn retire(&mut self, ledger: &mut Ledger<V, F>) {
        if let Some(begun) = &self.begun {
            ledger.log.end(begun.number);
        }
        ledger.flying -= 1;
        self.landed = true;
        let Some(slot) = ledger.flights.get_mut(&self.key) else {
            return;
        };
        if Arc::ptr_eq(&slot.current, &self.flight) {
            match slot.next.take() {
                Some(next) => slot.current = next,
                None => {
                    ledger.flights.remove(&self.key);
                }
            }
        } else if slot
            .next
            .as_ref()
            .is_some_and(|next| Arc::ptr_eq(next, &self.flight))
        {
            slot.next = None;
        }
    }
}

impl<V: Value, F: Feed> Drop for Permit<V, F> {
    fn drop(&mut self) {
        if !self.landed {
            self.leave();
            self.flight.vanish();
        }
    }
}

/// Done before the lock is taken: a page may have thousands.
fn sort(tags: &mut Vec<Tag>) {
    tags.sort_unstable();
    tags.dedup();
}
