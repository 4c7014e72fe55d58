//! The right, and the duty, to make a value for all requests that wait for it.

use std::time::Duration;

use crate::{
    Class, Feed, Store, Tag, Value,
    flight::{Flight, PreviousFlight},
    ledger::{Leaving, Ledger, Provenance},
    log::FillNumber,
    sync::{Arc, atomic::Ordering},
};
use base_clock::Boottime;

/// A value that was made, and what the store must know to keep it.
pub struct Fill<V, F: Feed> {
    /// The value.
    pub value: Arc<V>,
    /// Everything that the value depends on. Without tags, only a new epoch or `expires` ends the
    /// value.
    pub tags: Vec<Tag>,
    /// The snapshot in which everything was read.
    pub snapshot: F::Snapshot,
    /// A position that covers everything that the snapshot could see: once the feed has passed the
    /// position, the value may be combined with others.
    pub position: F::Position,
    /// When the value ends regardless of the feed (`max-age`), if ever.
    pub expires: Option<Boottime>,
    /// The budget that the value's memory counts against.
    pub class: Class,
    /// The time that the fill took.
    pub cost: Duration,
}

/// How a fill ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillOutcome {
    /// The value is stored.
    Stored,
    /// A change that the fill may not have seen touched a dependency. Only requests that had asked
    /// before the fill began got the value.
    Fenced,
    /// The epoch in which the fill began is over.
    Outlived,
    /// It may [never be asked for again](Permit::unproven), and there is no room. All who wait got
    /// it.
    Unproven,
}

struct FillStart {
    number: FillNumber,
    epoch: u64,
}

/// The right to make the value of one key. If the permit is dropped without a result (a panic, a
/// cancelled request), the waiting requests start again.
pub struct Permit<V: Value, F: Feed> {
    store: Arc<Store<V, F>>,
    key: Box<[u8]>,
    flight: Arc<Flight<V>>,
    before: Option<Arc<Flight<V>>>,
    begun: Option<FillStart>,
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

    /// A permit for a value that no request has asked for yet.
    pub(crate) fn ahead(mut self) -> Self {
        self.provenance.is_ahead = true;
        self
    }

    /// Declares that the value can be made again from its key alone, so it may be made ahead when
    /// it is hot and a change has ended it.
    pub fn renewable(&mut self) {
        self.provenance.is_renewable = true;
    }

    /// Declares that a request asks for the value which may be the only one ever: a crawler's, or
    /// one of a kind whose values hardly repeat. If the store is full, the value is then kept only
    /// when it is asked for again, so that it takes no other value's place.
    pub fn unproven(&mut self) {
        self.provenance.is_unproven = true;
    }

    /// Waits until the previous flight for the key is over, if there is one.
    pub async fn previous_landed(&mut self) {
        // `before` is cleared only once the previous flight is over. If it were cleared before the
        // wait, a second call would begin while the previous flight runs, and a request that needs
        // a flight that has not begun would join this one.
        if let Some(before) = &self.before {
            PreviousFlight::after(before).await;
        }
        self.before = None;
    }

    /// Waits for the previous flight, if there is one, and begins. Call it before the first
    /// snapshot is asked for. It notes the epoch; from here on the log keeps every change until
    /// this fill is over. A call that was cancelled while it waited may be repeated; once the
    /// flight has begun, a call does nothing.
    pub async fn begin(&mut self) {
        if self.begun.is_some() {
            return;
        }
        self.previous_landed().await;
        let mut ledger = self.store.lock();
        let number = ledger.log.begin();
        let epoch = self.store.present.epoch.load(Ordering::Relaxed);
        self.flight.begin();
        self.begun = Some(FillStart { number, epoch });
    }

    /// The key of the value.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Stores another value, read in the same flight, under `key`.
    ///
    /// # Panics
    /// If the flight has not [begun](Self::begin).
    pub fn also(&self, key: &[u8], mut fill: Fill<V, F>) -> FillOutcome {
        // A refused value is dropped outside the lock.
        let _value = fill.value.clone();
        sort(&mut fill.tags);
        let mut leaving = Leaving::new();
        let mut ledger = self.store.lock();
        let provenance = Provenance {
            is_unproven: self.provenance.is_unproven,
            ..Provenance::default()
        };
        self.insert(&mut ledger, key, fill, provenance, &mut leaving)
    }

    /// Stores the value if the fence allows it, and gives it to the waiting requests that may have
    /// it.
    ///
    /// Storing the value and removing the flight from the board are one step. Otherwise a change
    /// could be applied between the two, and a request that arrives after the change would join
    /// this flight and get what the flight had read before the change.
    ///
    /// # Panics
    /// If the flight has not [begun](Self::begin).
    pub fn complete(mut self, mut fill: Fill<V, F>) -> FillOutcome {
        let value = fill.value.clone();
        let expires = fill.expires;
        sort(&mut fill.tags);
        let mut leaving = Leaving::new();
        let store = self.store.clone();
        let mut ledger = store.lock();
        let key = self.key.clone();
        let is_over = expires.is_some_and(|end| end <= Boottime::now());
        let provenance = Provenance {
            // A request that joined has asked for the value.
            is_ahead: self.provenance.is_ahead && !self.flight.is_joined(),
            is_unproven: self.provenance.is_unproven && !self.flight.is_joined(),
            ..self.provenance
        };
        let outcome = self.insert(&mut ledger, &key, fill, provenance, &mut leaving);
        self.retire(&mut ledger);
        drop(ledger);
        match outcome {
            FillOutcome::Stored | FillOutcome::Unproven if !is_over => {
                self.flight.land_for_all(value)
            }
            // A request from after its end may not have it.
            _ => self.flight.land_for_early_joiners(value),
        }
        // `leaving` is dropped here, outside the lock: freeing megabytes takes time.
        outcome
    }

    /// Gives a value that cannot be stored to the requests that asked before the flight began; the
    /// others start again.
    pub fn give(mut self, value: Arc<V>) {
        self.leave_board();
        self.flight.land_for_early_joiners(value);
    }

    /// The fill failed: every waiting request gets `value`, which describes the failure.
    pub fn fail(mut self, value: Arc<V>) {
        self.leave_board();
        self.flight.land_for_all(value);
    }

    /// The value belongs to one visitor: no other request gets it.
    pub fn alone(mut self) {
        self.leave_board();
        self.flight.land_private();
    }

    /// The fence (coherence.md, rules 1 and 2). The fill's tags are sorted, without duplicates.
    fn insert(
        &self,
        ledger: &mut Ledger<V, F>,
        key: &[u8],
        fill: Fill<V, F>,
        provenance: Provenance,
        leaving: &mut Leaving<V, F>,
    ) -> FillOutcome {
        let begun = self.begun.as_ref().expect("a fill begins before it reads");
        if begun.epoch != self.store.present.epoch.load(Ordering::Relaxed) {
            ledger.stats.outlived += 1;
            return FillOutcome::Outlived;
        }
        if ledger.log.contradicts(&fill.snapshot, &fill.tags) {
            ledger.stats.fenced += 1;
            return FillOutcome::Fenced;
        }
        let (index, present) = (&self.store.index, &self.store.present);
        if provenance.is_unproven && !ledger.has_room_for(index.hash(key), &fill, key.len()) {
            ledger.stats.unproven += 1;
            return FillOutcome::Unproven;
        }
        ledger.insert(index, present, key, fill, provenance, leaving);
        FillOutcome::Stored
    }

    fn leave_board(&mut self) {
        let store = self.store.clone();
        self.retire(&mut store.lock());
    }

    /// Removes the flight from the board: a request that joins from now on finds the next flight,
    /// or none.
    fn retire(&mut self, ledger: &mut Ledger<V, F>) {
        if let Some(begun) = &self.begun {
            ledger.log.end(begun.number);
        }
        ledger.running_flights -= 1;
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
            self.leave_board();
            self.flight.cancel();
        }
    }
}

/// Done before the lock is taken: a page may have thousands of tags.
fn sort(tags: &mut Vec<Tag>) {
    tags.sort_unstable();
    tags.dedup();
}
