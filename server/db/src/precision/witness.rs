//! Witnesses: queries of ours that find the values of a join key (coherence.md, rule 21).
//!
//! With `r.c = s.d`, where only some rows of `s` count, only those rows of `r` count whose `c` is
//! one of the values that `s.d` has in these rows. A witness asks for these values in the snapshot
//! of the read.

use super::values::{ColumnRestriction, MAX_VALUES, Operand, ValueClass};
use crate::Value;

/// A witness that finds more rows makes the whole table a dependency. So a witness costs at most
/// this many lookups in an index.
pub(crate) const MAX_ROWS: usize = 1_024;

/// A query for the values that `column` has in the rows of `table` that count.
#[derive(Debug, PartialEq)]
pub(crate) struct Witness {
    /// A table or a view, as the owner writes it.
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) class: ValueClass,
    /// The column that selects the rows of the table.
    pub(crate) key: String,
    /// The restriction of the table, on `key`. It refers only to witnesses before this one.
    pub(crate) rows: ColumnRestriction,
    pub(crate) sql: String,
    /// The values of the parameters of `sql`, in order.
    pub(crate) params: Vec<Operand>,
}

/// Returns the distinct values that a witness has found; none if there are more rows than it may
/// give. Of more than [`MAX_VALUES`] values the rest is not looked at.
pub(crate) fn distinct(found: impl ExactSizeIterator<Item = Option<Value>>) -> Option<Vec<Value>> {
    if found.len() > MAX_ROWS {
        return None;
    }
    let mut distinct: Vec<Value> = Vec::new();
    for value in found {
        let value = value?;
        // Nothing equals NULL.
        let is_wanted = distinct.len() <= MAX_VALUES && value != Value::Null;
        if is_wanted && !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    Some(distinct)
}
