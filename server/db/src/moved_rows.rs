//! Rows that stay when their file gets another name.

use std::collections::BTreeSet;

use crate::Value;
use crate::data_file::{AppliedFile, FILE_COLUMN, literal, quoted};

/// The hash of a file, by the files that have given it rows.
pub type HashOfMoved = dyn Fn(&BTreeSet<String>) -> String + Send;

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
    /// The [hash](AppliedFile::hash) of the file until it is applied.
    pub hash: Box<HashOfMoved>,
}

impl MovedRows {
    /// What is remembered of the file once it has rows of these files: it was never applied, so any
    /// version is newer.
    pub(crate) fn record(&self, owners: &BTreeSet<String>) -> AppliedFile {
        AppliedFile {
            file: self.file.clone(),
            table: self.table.clone(),
            hash: (self.hash)(owners),
            version: 0,
        }
    }

    /// The query for the file of one row that is to move; `equal` compares a column with the
    /// parameter of a number.
    pub(crate) fn owner(&self, equal: fn(&str, usize) -> String) -> String {
        let (table, file) = (quoted(&self.table), quoted(FILE_COLUMN));
        format!(
            "select t.{file} from {table} as t where {}",
            self.is_row(equal)
        )
    }

    /// The statement that moves the row.
    pub(crate) fn update(&self, equal: fn(&str, usize) -> String) -> String {
        let (table, file) = (quoted(&self.table), quoted(FILE_COLUMN));
        format!(
            "update {table} as t set {file} = {} where {}",
            literal(&self.file),
            self.is_row(equal)
        )
    }

    fn is_row(&self, equal: fn(&str, usize) -> String) -> String {
        let from: Vec<String> = self.from.iter().map(|name| literal(name)).collect();
        let keys = self.keys.iter().enumerate();
        let keys: Vec<String> = keys
            .map(|(at, key)| equal(&format!("t.{}", quoted(key)), at + 1))
            .collect();
        let file = quoted(FILE_COLUMN);
        format!(
            "t.{file} in ({}) and {}",
            from.join(", "),
            keys.join(" and ")
        )
    }
}
