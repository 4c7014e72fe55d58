//! What a look-up found, with the knowledge of how long the value is valid.

use std::ops::Deref;

use crate::{Feed, entry::StoredEntry, sync::Arc};
use base_clock::Boottime;

/// Result of [`Store::get`](crate::Store::get): the value, and the means to ask if the value is
/// still valid. The guard keeps the value in memory, also after the store has given the entry up.
pub struct Hit<V, F: Feed> {
    entry: Arc<StoredEntry<V, F>>,
}

impl<V, F: Feed> Hit<V, F> {
    pub(crate) const fn new(entry: Arc<StoredEntry<V, F>>) -> Self {
        Self { entry }
    }

    /// The value that was found.
    #[must_use]
    pub fn value(&self) -> &Arc<V> {
        &self.entry.value
    }

    /// True if the store has given the entry up, so that the hit is never [valid](Hit::is_valid)
    /// again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.entry.valid(Boottime::default()).is_err()
    }

    /// True if [`Store::get`](crate::Store::get) would give this very value at `now`; if so, the
    /// call counts as a hit.
    ///
    /// The checks are those of the look-up. The index is not read again: eviction, replacement and
    /// every other removal marks an entry before the entry's tags are given up.
    #[must_use]
    pub fn is_valid(&self, now: Boottime) -> bool {
        let is_valid = self.entry.present.is_heard(now) && self.entry.valid(now).is_ok();
        if is_valid {
            self.entry.visit();
        }
        is_valid
    }
}

impl<V, F: Feed> Clone for Hit<V, F> {
    fn clone(&self) -> Self {
        Self::new(self.entry.clone())
    }
}

impl<V, F: Feed> Deref for Hit<V, F> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.entry.value
    }
}

impl<V, F: Feed> std::fmt::Debug for Hit<V, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hit").finish_non_exhaustive()
    }
}
