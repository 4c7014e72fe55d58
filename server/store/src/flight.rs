//! Single flight: one fill for all requests that wait for it (coherence.md, rules 3 and 5).

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use crate::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// How a flight ended.
enum FlightResult<V> {
    /// For every waiting request: the result was stored, or it is a failure, which is no staler for
    /// one request than for another.
    All(Arc<V>),
    /// Only for requests that joined before the flight asked for its snapshot.
    Early(Arc<V>),
    /// The result belongs to one visitor: every other request makes its own.
    Private,
    /// The fill panicked or was cancelled: waiting requests start again.
    Cancelled,
}

struct FlightState<V> {
    /// True if the flight has asked for its snapshot.
    begun: bool,
    /// True if a request has joined the leader.
    joined: bool,
    done: Option<FlightResult<V>>,
    /// In the order of registration. A tree, because thousands may wait and each may give up.
    wakers: BTreeMap<u64, Waker>,
    next_waker: u64,
}

/// One running fill with the requests that wait for it.
pub(crate) struct Flight<V> {
    state: Mutex<FlightState<V>>,
}

impl<V> Flight<V> {
    pub(crate) fn new() -> Arc<Self> {
        let state = FlightState {
            begun: false,
            joined: false,
            done: None,
            wakers: BTreeMap::new(),
            next_waker: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.state.lock().begun
    }

    pub(crate) fn begin(&self) {
        self.state.lock().begun = true;
    }

    /// Joins the flight. True if the flight has not begun yet.
    pub(crate) fn join(&self) -> bool {
        let mut state = self.state.lock();
        state.joined = true;
        !state.begun
    }

    pub(crate) fn is_joined(&self) -> bool {
        self.state.lock().joined
    }

    fn land(&self, done: FlightResult<V>) {
        let wakers = {
            let mut state = self.state.lock();
            state.done = Some(done);
            std::mem::take(&mut state.wakers)
        };
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    pub(crate) fn land_for_all(&self, value: Arc<V>) {
        self.land(FlightResult::All(value));
    }

    pub(crate) fn land_for_early_joiners(&self, value: Arc<V>) {
        self.land(FlightResult::Early(value));
    }

    pub(crate) fn land_private(&self) {
        self.land(FlightResult::Private);
    }

    pub(crate) fn cancel(&self) {
        self.land(FlightResult::Cancelled);
    }

    /// Registers or renews the waker `id`, unless the flight is over.
    fn poll<R>(
        &self,
        id: &mut Option<u64>,
        context: &Context<'_>,
        read: impl FnOnce(&FlightResult<V>) -> R,
    ) -> Poll<R> {
        // A waker may own the last reference to a task that waits here too, so no waker is dropped
        // under the lock.
        let mut waker = context.waker().clone();
        let mut state = self.state.lock();
        if let Some(done) = &state.done {
            return Poll::Ready(read(done));
        }
        if let Some(known) = id.and_then(|id| state.wakers.get_mut(&id)) {
            std::mem::swap(known, &mut waker);
        } else {
            let fresh = state.next_waker;
            state.next_waker += 1;
            state.wakers.insert(fresh, waker);
            *id = Some(fresh);
        }
        Poll::Pending
    }

    fn forget(&self, id: Option<u64>) {
        let Some(id) = id else { return };
        let waker = self.state.lock().wakers.remove(&id);
        drop(waker);
    }
}

/// How a flight ended for a waiting request.
#[derive(Debug)]
pub enum FlightEnd<V> {
    /// The result, which may be given to this request.
    Value(Arc<V>),
    /// The result is too old for this request, or there is no result: call
    /// [`join`](crate::Store::join) again.
    Retry,
    /// The answer belongs to another visitor, and so will every answer for this key: make the value
    /// without the store.
    Private,
}

/// Waits for a flight to land. Dropping it leaves the flight.
pub struct FlightWaiter<V> {
    flight: Arc<Flight<V>>,
    /// Joined before the snapshot was asked for.
    early: bool,
    waker: Option<u64>,
    waiters: Arc<AtomicUsize>,
}

impl<V> FlightWaiter<V> {
    /// The caller has already counted this request in `waiters`.
    pub(crate) fn new(flight: Arc<Flight<V>>, early: bool, waiters: Arc<AtomicUsize>) -> Self {
        Self {
            flight,
            early,
            waker: None,
            waiters,
        }
    }
}

impl<V> Future for FlightWaiter<V> {
    type Output = FlightEnd<V>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FlightEnd<V>> {
        let this = &mut *self;
        let early = this.early;
        this.flight
            .poll(&mut this.waker, context, |done| match done {
                FlightResult::All(value) => FlightEnd::Value(value.clone()),
                FlightResult::Early(value) if early => FlightEnd::Value(value.clone()),
                FlightResult::Early(_) | FlightResult::Cancelled => FlightEnd::Retry,
                FlightResult::Private => FlightEnd::Private,
            })
    }
}

impl<V> Drop for FlightWaiter<V> {
    fn drop(&mut self) {
        self.flight.forget(self.waker);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Resolves when the previous flight is over, however it ended.
pub(crate) struct PreviousFlight<'a, V> {
    flight: &'a Flight<V>,
    waker: Option<u64>,
}

impl<'a, V> PreviousFlight<'a, V> {
    pub(crate) fn after(flight: &'a Flight<V>) -> Self {
        Self {
            flight,
            waker: None,
        }
    }
}

impl<V> Future for PreviousFlight<'_, V> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.flight.poll(&mut this.waker, context, |_| ())
    }
}

impl<V> Drop for PreviousFlight<'_, V> {
    fn drop(&mut self) {
        self.flight.forget(self.waker);
    }
}
