//! An entry in hand: asked again without being looked up.

use crate::{Feed, entry::Entry, sync::Arc};
use base_clock::Boottime;

/// What [`Store::hold`](crate::Store::hold) found. It keeps the value in memory, also when the store has given it up.
pub struct Held<V, F: Feed> {
    entry: Arc<Entry<V, F>>,
}

impl<V, F: Feed> std::fmt::Debug for Held<V, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl<V, F: Feed> Held<V, F> {
    pub(crate) const fn new(entry: Arc<Entry<V, F>>) -> Self {
        Self { entry }
    }

    /// The value that was found.
    #[must_use]
    pub fn value(&self) -> &Arc<V> {
        &self.entry.value
    }

    /// Whether the store has given the entry up, or never gives it again: it [stands](Held::stands) no more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.entry.valid(Boottime::default()).is_err()
    }

    /// Whether [`Store::get`](crate::Store::get) would give this very value now, and if so, a hit.
    ///
    /// The same is asked as there. That the entry is still in the index need not be: whatever takes one out of it, eviction and
    /// replacement too, marks it before its tags are given up.
    #[must_use]
    pub fn stands(&self, now: Boottime) -> bool {
        let stands = self.entry.present.is_heard(now) && self.entry.valid(now).is_ok();
        if stands {
            self.entry.visit();
        }
        stands
    }
}
