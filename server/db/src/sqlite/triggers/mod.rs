//! Triggers that record the changes of other programs (coherence.md, "SQLite with triggers").
//!
//! Each ordinary table has triggers that write what a change touched into `_millpond_change`, and
//! count it in `_millpond_feed`. The writer thread reads the new rows when another program has
//! committed.

mod columns;
pub(crate) mod definitions;
pub(crate) mod install;
mod keys;
pub(crate) mod recording;
pub(crate) mod records;
pub(crate) mod requirements;

use super::interest::ValueLocation;

/// The table of changes. No column has a type or a constraint, so that recording cannot fail and an
/// outer `or ignore` cannot drop a record.
pub(crate) const CHANGES: &str = "_millpond_change";

/// One row: the name of this installation (`nonce`), the number of the last recorded change (`n`),
/// up to which number changes may have been removed (`floor`), and whether a transaction of a
/// server runs, which needs no records (`own`).
pub(crate) const FEED: &str = "_millpond_feed";

/// The number of columns with old values in a record, and of those with new values. A wider table
/// has several records for each change.
pub(crate) const VALUES: usize = 16;

/// The number of changes that the table of changes holds. Later changes are only counted, and the
/// server begins a new epoch for them.
pub(crate) const MAX_UNREAD: i64 = 8_192;

/// Longer texts are recorded as "any value", in bytes.
pub(crate) const MAX_TEXT: usize = 300;

/// Changes that one transaction of the server removes.
pub(crate) const REMOVED_AT_ONCE: i64 = 512;

/// True for the tables that belong to the triggers.
pub(crate) fn is_own_table(name: &str) -> bool {
    name.eq_ignore_ascii_case(CHANGES) || name.eq_ignore_ascii_case(FEED)
}

/// In the place of a value: it may be any.
const ANY: &str = "x''";
/// In the place of a new value: it is the old one.
const SAME: &str = "x'00'";
/// In the place of a blob in a column of texts, which equals no value that a query selects by.
const OTHER: &str = "x'01'";

/// Values that a table's triggers record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedValues {
    /// The places of the values, in the order of the records.
    pub(crate) places: Vec<ValueLocation>,
    /// The number of columns of the table.
    pub(crate) columns: usize,
}

impl RecordedValues {
    /// The record of a change that has the value, and its place there.
    pub(crate) fn place(&self, at: ValueLocation) -> Option<(usize, usize)> {
        let index = self.places.iter().position(|recorded| *recorded == at)?;
        Some((index / VALUES, index % VALUES))
    }
}
