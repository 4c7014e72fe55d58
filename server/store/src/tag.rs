//! The unit of dependency.

/// Something that an entry depends on and a change touches: a whole table, the rows with one value
/// in one column, one row. The source of truth makes a tag by hashing; the store only compares
/// tags. If two things share a tag by chance, both are invalidated together, which is too often,
/// never too seldom.
///
/// A *narrow* tag has few dependents at a time. The store lists them and marks each one when the
/// tag is touched. A *broad* tag (a whole table) may have any number. The store keeps a generation
/// counter that the dependents compare at each hit, so a change costs the same for any number of
/// dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u64);

impl Tag {
    /// The narrow tag of a 64-bit hash.
    #[must_use]
    pub const fn narrow(hash: u64) -> Self {
        Self(hash & !1)
    }

    /// The broad tag of a 64-bit hash.
    #[must_use]
    pub const fn broad(hash: u64) -> Self {
        Self(hash | 1)
    }

    /// True if dependents of this tag compare a generation counter.
    #[must_use]
    pub const fn is_broad(self) -> bool {
        self.0 & 1 == 1
    }
}
