//! Rows that stay when their file gets another name.

use crate::Value;
use crate::data_file::{FILE_COLUMN, literal, quoted};

/// Rows of files, which another file of their table takes over.
pub struct MovedRows {
    /// The table. It has [`FILE_COLUMN`].
    pub table: String,
    /// The file that takes rows over.
    pub file: String,
    /// The files that have had them.
    pub from: Vec<String>,
    /// Columns that tell rows apart: those of the table's key, or of another unique constraint.
    pub keys: Vec<String>,
    /// Their values in the file's rows, in the order of the columns.
    pub rows: Vec<Vec<Value>>,
}

/// The hash of a file that has taken rows over and was not applied yet, and of one that is there
/// and has lost rows: such a file is applied again where that is possible.
pub(crate) const MOVED: &str = "moved";

impl MovedRows {
    /// The statement that moves one row; `equal` compares a column with the parameter of a number.
    pub(crate) fn statement(&self, equal: fn(&str, usize) -> String) -> String {
        let (table, file) = (quoted(&self.table), quoted(FILE_COLUMN));
        let keys = self.keys.iter().enumerate();
        let keys: Vec<String> = keys
            .map(|(at, key)| equal(&format!("t.{}", quoted(key)), at + 1))
            .collect();
        format!(
            "update {table} as t set {file} = {} where t.{file} in ({}) and {}",
            literal(&self.file),
            self.sources(),
            keys.join(" and ")
        )
    }

    /// The statement that lets the files that have lost rows count as not applied, in any version.
    pub(crate) fn loss(&self) -> String {
        format!(
            "update _millpond_data set hash = '{MOVED}', version = 0 where \"file\" in ({})",
            self.sources()
        )
    }

    /// The files that have had the rows, as a list of SQL.
    fn sources(&self) -> String {
        let from: Vec<String> = self.from.iter().map(|name| literal(name)).collect();
        from.join(", ")
    }
}
