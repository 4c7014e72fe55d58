//! What is kept of a file that was applied: the hash of its content, that of its table's columns,
//! and the names of those that it filled.
//!
//! The same files give the same table, with any former content. A column that a file fills no
//! more becomes in its rows what it is in a new row, once; then it is the owner's again. Columns
//! that the file has never filled, such as a counter, are not touched. As this is done at each
//! change, the names of the last one are enough.

use std::collections::BTreeSet;

use millpond_db::{AppliedFile, FILE_COLUMN, TableColumn};

use super::columns::TargetTable;

/// The text that is kept; `table` is the signature of the table.
pub(super) fn of(content: u128, table: &str, filled: &[TableColumn]) -> String {
    let names: Vec<&str> = filled.iter().map(|column| &*column.name).collect();
    format!("{}-{}", beginning(content, table), names.join(","))
}

/// The text of a file that has taken over the rows of others and was not applied yet: the names of
/// what they filled, so that it is reset where this one does not fill it.
pub(super) fn moved<'a>(former: impl Iterator<Item = &'a AppliedFile>) -> String {
    let names: BTreeSet<&str> = former.flat_map(filled_by).collect();
    let names: Vec<&str> = names.into_iter().collect();
    format!("moved--{}", names.join(","))
}

/// True if a text is that of this content and table: the columns that are filled follow from them.
pub(super) fn is_of(applied: &str, content: u128, table: &str) -> bool {
    let rest = applied.strip_prefix(&beginning(content, table));
    // Without names, what is filled no more is not known.
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn beginning(content: u128, table: &str) -> String {
    format!("{content:032x}-{table}")
}

/// The columns of the table that the file was seen to fill when it was applied last, and that are
/// not among those which it fills now.
pub(super) fn no_longer_filled(
    applied: Option<&AppliedFile>,
    table: &TargetTable,
    filled: &[TableColumn],
) -> Vec<TableColumn> {
    let names: Vec<&str> = applied.into_iter().flat_map(filled_by).collect();
    let is_left = |column: &&TableColumn| {
        names.contains(&&*column.name)
            && column.name != FILE_COLUMN
            && !column.is_key
            && !filled.iter().any(|known| known.name == column.name)
    };
    table.columns.iter().filter(is_left).cloned().collect()
}

/// The names of the columns that a file was seen to fill.
fn filled_by(applied: &AppliedFile) -> impl Iterator<Item = &str> {
    let names = applied.hash.splitn(3, '-').nth(2).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty())
}
