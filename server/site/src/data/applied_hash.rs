//! The hash by which a file is known: that of its content and that of its table's columns, as both
//! say what its rows are.

/// The hash; `table` is the signature of the table.
pub(super) fn of(content: u128, table: &str) -> String {
    format!("{content:032x}-{table}")
}
