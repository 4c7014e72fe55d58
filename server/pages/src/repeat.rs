//! How long a response from memory answers later requests with the very same head.
//!
//! It is valid while the store would give the value of which it was made. The store's entry is
//! asked each time, with the checks of a look-up, so a repeated response is never older than one
//! that is looked up. A [`Guard`] says what else has to hold.

use std::sync::Arc;

use base_clock::Boottime;
use millpond_http::{Prepared, Request, Validity, ValidityCheck};
use millpond_store::{Feed, Hit, Value};

/// What besides the store decides whether a response may be given again.
pub trait Guard: 'static {
    /// Returns whether it may be given to a request that was received then.
    fn is_valid(&self, received: Boottime) -> bool;

    /// Returns whether it will never be given again.
    fn is_over(&self) -> bool;

    /// Notes that it is given again.
    fn repeats(&self) {}
}

/// Nothing besides the store.
impl Guard for () {
    fn is_valid(&self, _: Boottime) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// Checks a response that is made of a prepared one.
struct RepeatCheck<V: Value, F: Feed, G> {
    prepared: Arc<Prepared>,
    /// The codings that existed, if the request accepts any: a new one may be the better response.
    codings: Option<u8>,
    hit: Option<Hit<V, F>>,
    guard: G,
}

/// Returns the validity of the response that `prepared`, found by `hit`, gives to `request`; none
/// while a better coding is being made. The response is made after this has read the codings.
pub fn of_hit<V: Value, F: Feed, G: Guard>(
    prepared: &Arc<Prepared>,
    request: &Request<'_>,
    hit: Hit<V, F>,
    guard: G,
) -> Option<Validity> {
    let codings = codings(prepared, request);
    prepared.wanted(request).is_none().then(|| {
        Validity::Check(Box::new(RepeatCheck {
            prepared: prepared.clone(),
            codings,
            hit: Some(hit),
            guard,
        }))
    })
}

/// The same for a response that is kept outside of the store, and only for the client's `codings`.
pub fn of_codings<V: Value, F: Feed, G: Guard>(
    prepared: &Arc<Prepared>,
    codings: u8,
    guard: G,
) -> Validity {
    Validity::Check(Box::new(RepeatCheck::<V, F, G> {
        prepared: prepared.clone(),
        codings: Some(codings),
        hit: None,
        guard,
    }))
}

/// Returns the codings that exist, if the request accepts any.
#[must_use]
pub fn codings(prepared: &Prepared, request: &Request<'_>) -> Option<u8> {
    let accepts = request.fields.get("accept-encoding").is_some();
    accepts.then(|| prepared.codings())
}

impl<V: Value, F: Feed, G: Guard> ValidityCheck for RepeatCheck<V, F, G> {
    fn is_valid(&self, received: Boottime) -> bool {
        let is_better = |codings: u8| self.prepared.codings() != codings;
        if !self.guard.is_valid(received) || self.codings.is_some_and(is_better) {
            return false;
        }
        let Some(hit) = &self.hit else {
            return true;
        };
        let is_valid = hit.is_valid(received);
        if is_valid {
            self.guard.repeats();
        }
        is_valid
    }

    fn is_over(&self) -> bool {
        self.hit.as_ref().is_some_and(Hit::is_over) || self.guard.is_over()
    }
}
