//! Which streams have news: a waker for each place on a connection writes its number down.
//!
//! A connection with a hundred streams then polls the few that something came for, and not all of them for every read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The numbers of the places with news, in the order of the news.
#[derive(Default)]
pub(super) struct ReadySlots(Mutex<Vec<usize>>);

/// Wakes one place. A waker must be fit for other threads; this one only ever sees its own, and the lock is free.
struct SlotWaker {
    place: usize,
    ready: Arc<ReadySlots>,
}

impl ReadySlots {
    /// The waker of a place.
    pub(super) fn waker(self: &Arc<Self>, place: usize) -> Waker {
        Waker::from(Arc::new(SlotWaker {
            place,
            ready: Arc::clone(self),
        }))
    }

    /// A place is to be looked at.
    pub(super) fn add(&self, place: usize) {
        self.list().push(place);
    }

    /// Exchanges what has come together for an empty list.
    pub(super) fn take(&self, places: &mut Vec<usize>) {
        places.clear();
        std::mem::swap(&mut *self.list(), places);
    }

    fn list(&self) -> MutexGuard<'_, Vec<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.ready.add(self.place);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.add(self.place);
    }
}
