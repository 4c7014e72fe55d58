//! Which file has the row of a key, on SQLite.

use rusqlite::{OptionalExtension, params_from_iter};

use super::file_rows::fail;
use super::writer::Writer;
use crate::data_file::{FILE_COLUMN, TableColumn, quoted};
use crate::{Error, Value};

impl Writer {
    /// For each key, the file whose row has it.
    pub(crate) fn key_owners(
        &mut self,
        table: &str,
        columns: &[TableColumn],
        keys: &[Vec<Value>],
    ) -> Result<Vec<Option<String>>, Error> {
        let equal = columns.iter().enumerate();
        let equal = equal.map(|(at, column)| format!("{} = ?{}", quoted(&column.name), at + 1));
        let sql = format!(
            "select {} from {} where {}",
            quoted(FILE_COLUMN),
            quoted(table),
            equal.collect::<Vec<_>>().join(" and ")
        );
        self.run_transaction(|session, _| {
            let find = || -> rusqlite::Result<Vec<Option<String>>> {
                let mut statement = session.connection().prepare(&sql)?;
                let mut owner = |key: &Vec<Value>| {
                    let found = statement.query_row(params_from_iter(key), |row| row.get(0));
                    found.optional().map(Option::flatten)
                };
                keys.iter().map(&mut owner).collect()
            };
            find().map_err(|error| fail(&error, &sql))
        })
    }
}
