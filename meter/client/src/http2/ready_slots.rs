//! Streams with news: the waker of each place on a connection records the place's index.
//!
//! A connection with a hundred streams then polls only the streams with news, and not all streams
//! for every read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Indices of the places with news, in the order of the news.
#[derive(Default)]
pub(super) struct ReadySlots(Mutex<Vec<usize>>);

/// Wakes one place. A `Waker` must work across threads; this one is used on one thread only, so its
/// lock is always free.
struct SlotWaker {
    place: usize,
    ready: Arc<ReadySlots>,
}

impl ReadySlots {
    pub(super) fn waker(self: &Arc<Self>, place: usize) -> Waker {
        Waker::from(Arc::new(SlotWaker {
            place,
            ready: Arc::clone(self),
        }))
    }

    /// Marks a place to be polled.
    pub(super) fn add(&self, place: usize) {
        self.list().push(place);
    }

    /// Exchanges the collected indices for an empty list.
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
