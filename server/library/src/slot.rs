//! One value from a thread to a future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

struct SlotState<T> {
    value: Option<T>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// Gives the value. Dropped without one, the future ends with none.
pub(crate) struct SlotSender<T>(Arc<Mutex<SlotState<T>>>);

/// Waits for the value.
pub(crate) struct SlotReceiver<T>(Arc<Mutex<SlotState<T>>>);

/// Both ends.
pub(crate) fn slot<T>() -> (SlotSender<T>, SlotReceiver<T>) {
    let state = Arc::new(Mutex::new(SlotState {
        value: None,
        is_closed: false,
        waker: None,
    }));
    (SlotSender(Arc::clone(&state)), SlotReceiver(state))
}

impl<T> SlotSender<T> {
    pub(crate) fn send(self, value: T) {
        self.0.lock().value = Some(value);
        // `drop` wakes the receiver.
    }

    /// True if the receiver is gone.
    pub(crate) fn is_unwanted(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl<T> Drop for SlotSender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> SlotReceiver<T> {
    /// The value if it is there; none if it never will be.
    pub(crate) fn poll_value(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.lock();
        if state.is_closed {
            return Poll::Ready(state.value.take());
        }
        let before = state.waker.replace(context.waker().clone());
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl<T> Future for SlotReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_value(context)
    }
}
