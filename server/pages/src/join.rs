//! Joining the flight of a key (coherence.md, rules 1 to 5).

use std::sync::Arc;

use base_clock::Boottime;
use millpond_store::{Feed, FlightEnd, Joined, Need, Permit, Store, Value};

use crate::{Admission, Arrival, Refused, Turn};

/// Two are enough in general: a request that starts again joins a flight that has not begun. More
/// are needed only if fills panic or are cancelled.
const ATTEMPTS: usize = 8;

/// Says that a request has gone while it waited for a flight.
struct Leaving<'r>(&'r Admission, &'r [u8]);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left(self.1);
    }
}

/// Result of joining flights.
pub enum JoinOutcome<V: Value, F: Feed> {
    /// Meanwhile the value has arrived in the store.
    Found(Arc<V>),
    /// Another request has made the value.
    Shared(Arc<V>),
    /// This request makes the value.
    Lead(Permit<V, F>),
    /// The value is each visitor's own.
    Alone,
    /// There are too many flights or too many waiters.
    Refused,
}

/// Returns which flights a request may join: while the feed is silent, only one that has not begun.
pub fn need<V: Value, F: Feed>(store: &Store<V, F>) -> Need {
    match store.healthy(Boottime::now()) {
        true => Need::Any,
        false => Need::Unbegun,
    }
}

/// A request for a value that is not in the store.
#[derive(Clone, Copy)]
pub struct FillRequest<'r, V: Value, F: Feed> {
    /// The store to which the value belongs.
    pub store: &'r Arc<Store<V, F>>,
    /// Decides when the value is made.
    pub admission: &'r Arc<Admission>,
    /// Its key.
    pub key: &'r [u8],
    /// The request, for admission.
    pub arrival: Arrival,
}

impl<V: Value, F: Feed> FillRequest<'_, V, F> {
    /// Joins flights until one gives its value or is this request's to lead. `may_find` if a value
    /// of the store will do; `waits` is called whenever the request waits for another.
    pub async fn join(
        &self,
        mut need: Need,
        may_find: bool,
        waits: impl Fn(),
    ) -> JoinOutcome<V, F> {
        let (store, key) = (self.store, self.key);
        let look = || {
            let hit = may_find.then(|| store.get(key, Boottime::now()));
            hit?.ok().map(|hit| hit.value().clone())
        };
        for _ in 0..ATTEMPTS {
            match store.join(key, need) {
                Joined::Lead(permit) => {
                    // Between the look and the join another flight may have landed.
                    let found = (need == Need::Any).then(look).flatten();
                    return found.map_or(JoinOutcome::Lead(permit), JoinOutcome::Found);
                }
                Joined::Wait(waiting) => {
                    waits();
                    self.admission.joined(key, &self.arrival);
                    let leaving = Leaving(self.admission, key);
                    let end = waiting.await;
                    std::mem::forget(leaving);
                    match end {
                        FlightEnd::Value(value) => return JoinOutcome::Shared(value),
                        FlightEnd::Private => return JoinOutcome::Alone,
                        FlightEnd::Retry => {}
                    }
                    if let Some(value) = look() {
                        return JoinOutcome::Found(value);
                    }
                    need = Need::Unbegun;
                }
                Joined::Refused => break,
            }
        }
        JoinOutcome::Refused
    }

    /// Begins the fill that a permit is for, when it is its turn; the fill takes a connection until
    /// the turn is dropped. Every leader goes through here, before it asks a database or renders.
    ///
    /// # Errors
    /// It has waited for too long: the flight is to fail.
    pub async fn begin(&self, permit: &mut Permit<V, F>) -> Result<Turn, Refused> {
        // A turn that waited for the flight before it would be a connection that does nothing.
        permit.previous_landed().await;
        let turn = self.admission.turn(Some(self.key), self.arrival).await?;
        permit.begin().await;
        Ok(turn)
    }
}
