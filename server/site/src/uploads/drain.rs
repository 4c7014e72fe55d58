//! A form with a file that is not taken, which is read to its end so that the visitor can be led
//! back with the rest of it.
//!
//! Nothing of it will be stored, so it gives its place among the forms that are received to others,
//! and it is read for a bounded time. *Counterexample*: a client that sends a kilobyte each second
//! would keep a place for hours, and a hundred of them would keep all places.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use base_clock::Boottime;

use millpond_site_compile::refusal::upload::UploadRefusal;

/// Bytes that are read and thrown away of files that are not taken, so that the visitor can be led
/// back to the form.
pub(super) const THROWN_AWAY: u64 = 64 << 20;

/// The first file that was not taken, and until when the form is read. The parser of the form
/// begins it, and the receiver of the pieces looks at it.
#[derive(Clone, Default)]
pub(super) struct Drain(Rc<RefCell<Option<Begun>>>);

struct Begun {
    until: Boottime,
    refusal: UploadRefusal,
}

impl Drain {
    pub(super) fn is_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Begins at `now`, if it has not begun.
    pub(super) fn begin(&self, refusal: &UploadRefusal, now: Boottime, time: Duration) {
        self.0.borrow_mut().get_or_insert_with(|| Begun {
            until: now.plus(time),
            refusal: refusal.clone(),
        });
    }

    /// Returns the refusal that ends a form whose time is over. The clock is read only for a form
    /// that is drained.
    pub(super) fn ended(&self, now: impl FnOnce() -> Boottime) -> Option<UploadRefusal> {
        let begun = self.0.borrow();
        let begun = begun.as_ref()?;
        (now() > begun.until).then(|| begun.refusal.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_ends_after_its_time_with_the_first_refusal() {
        let at = |seconds: u64| Boottime::from_nanos(seconds * 1_000_000_000);
        let (drain, time) = (Drain::default(), Duration::from_secs(30));
        assert!(!drain.is_begun() && drain.ended(|| at(1000)).is_none());
        drain.begin(&UploadRefusal::new(415, "first"), at(10), time);
        drain.begin(&UploadRefusal::new(413, "second"), at(30), time);
        assert!(drain.is_begun() && drain.ended(|| at(40)).is_none());
        assert_eq!(drain.ended(|| at(41)).unwrap().sentence, "first");
    }
}
