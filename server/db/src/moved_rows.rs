//! Rows that stay when their file gets another name.

use crate::Value;
use crate::data_file::{FILE_COLUMN, literal, quoted};

/// Rows of files that are gone, which another file of their table takes over.
pub struct MovedRows {
    /// The table. It has [`FILE_COLUMN`].
    pub table: String,
    /// The file that takes rows over.
    pub file: String,
    /// Files that are gone.
    pub from: Vec<String>,
    /// The columns of the table's key.
    pub keys: Vec<String>,
    /// The keys of the file's rows, in the order of the columns.
    pub rows: Vec<Vec<Value>>,
}

/// The hash of a file that has taken rows over and was not applied yet.
pub(crate) const MOVED: &str = "moved";

impl MovedRows {
    /// The statement that moves one row; `equal` compares a column with the parameter of a number.
    pub(crate) fn statement(&self, equal: fn(&str, usize) -> String) -> String {
        let (table, file) = (quoted(&self.table), quoted(FILE_COLUMN));
        let from: Vec<String> = self.from.iter().map(|name| literal(name)).collect();
        let keys = self.keys.iter().enumerate();
        let keys: Vec<String> = keys
            .map(|(at, key)| equal(&format!("t.{}", quoted(key)), at + 1))
            .collect();
        format!(
            "update {table} as t set {file} = {} where t.{file} in ({}) and {}",
            literal(&self.file),
            from.join(", "),
            keys.join(" and ")
        )
    }
}
