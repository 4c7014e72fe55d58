//! How long a response from memory answers later requests with the very same head.
//!
//! It is valid while the store would give the value of which it was made. The store's entry is
//! asked each time, with the checks of a look-up, so a repeated response is never older than one
//! that is looked up.

use std::sync::Arc;

use base_clock::Boottime;
use millpond_http::{Prepared, Request, Validity, ValidityCheck};
use millpond_store::{Feed, Hit, Value};

/// A hit, as what a response depends on.
pub struct HitCheck<V: Value, F: Feed>(pub Hit<V, F>);

impl<V: Value, F: Feed> ValidityCheck for HitCheck<V, F> {
    fn is_valid(&self, received: Boottime) -> bool {
        self.0.is_valid(received)
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

/// Checks that a response is in the best coding, beside what else it depends on.
struct CodingCheck<C> {
    prepared: Arc<Prepared>,
    /// The codings that existed, if the request accepts any: a new one may be the better response.
    codings: Option<u8>,
    check: C,
}

/// Returns the validity of the response that `prepared` gives to `request`, which `check` decides
/// on; none while a better coding is being made. The response is made after this has read the
/// codings.
pub fn validity<C: ValidityCheck + 'static>(
    prepared: &Arc<Prepared>,
    request: &Request<'_>,
    check: C,
) -> Option<Validity> {
    let codings = accepts_codings(request).then(|| prepared.codings());
    prepared.wanted(request).is_none().then(|| {
        Validity::Check(Box::new(CodingCheck {
            prepared: prepared.clone(),
            codings,
            check,
        }))
    })
}

/// Returns whether a request may get another response once there is another coding.
#[must_use]
pub fn accepts_codings(request: &Request<'_>) -> bool {
    request.fields.get("accept-encoding").is_some()
}

impl<C: ValidityCheck> ValidityCheck for CodingCheck<C> {
    fn is_valid(&self, received: Boottime) -> bool {
        let is_same = |codings: u8| self.prepared.codings() == codings;
        // Last, as it may count what is given.
        self.codings.is_none_or(is_same) && self.check.is_valid(received)
    }

    fn is_over(&self) -> bool {
        self.check.is_over()
    }
}
