//! What an entry can depend on.

/// Something that an entry depends on and a change touches: a whole table, the rows with one value in one
/// column, one row. The source of truth makes tags by hashing what they stand for; the store only compares
/// them. Two things that happen to share a tag are invalidated together, which is too often, never too seldom.
///
/// A *narrow* tag has few dependents at a time; the store lists them and marks each one when the tag is touched.
/// A *broad* tag (a whole table) may have any number; the store keeps a generation counter for it that the
/// dependents compare at each hit, so a change costs the same however much depends on it.
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

    /// Whether dependents of this tag compare a generation counter.
    #[must_use]
    pub const fn is_broad(self) -> bool {
        self.0 & 1 == 1
    }
}
