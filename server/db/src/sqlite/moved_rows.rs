//! Moves rows from file to file on SQLite, in a transaction of the writer.

use std::collections::BTreeSet;

use rusqlite::{Connection, params, params_from_iter};

use super::file_rows::{TABLE, fail, run};
use super::writer::Writer;
use crate::data_file::AppliedFile;
use crate::moved_rows::MovedRows;
use crate::{Error, Value};

impl Writer {
    /// Moves rows. The file has a record from then on, so that its rows go if it is gone before it
    /// is applied; none if no row has moved.
    pub(crate) fn move_rows(&mut self, moved: &MovedRows) -> Result<Option<AppliedFile>, Error> {
        self.run_transaction(|session, _| {
            let connection = session.connection();
            run(connection, TABLE)?;
            let mut owners = BTreeSet::new();
            for row in &moved.rows {
                owners.extend(move_row(connection, moved, row)?);
            }
            if owners.is_empty() {
                return Ok(None);
            }
            let record = moved.record(&owners);
            let AppliedFile {
                file,
                table,
                hash,
                version,
            } = &record;
            let sql =
                "insert or replace into _millpond_data values (?1, ?2, ?3, ?4, datetime('now'))";
            let recorded = connection.execute(sql, params![file, table, hash, version]);
            recorded.map_err(|error| fail(&error, sql))?;
            Ok(Some(record))
        })
    }
}

/// Moves the row with this key, if there is one; gives the file that it was of.
fn move_row(
    connection: &Connection,
    moved: &MovedRows,
    key: &[Value],
) -> Result<Option<String>, Error> {
    let equal = |column: &str, number: usize| format!("{column} = ?{number}");
    let find = moved.owner(equal);
    let owner = || {
        let mut statement = connection.prepare_cached(&find)?;
        let mut rows = statement.query(params_from_iter(key))?;
        rows.next()?.map(|row| row.get(0)).transpose()
    };
    let owner: Option<String> = owner().map_err(|error| fail(&error, &find))?;
    if owner.is_some() {
        let update = moved.update(equal);
        let changed = || {
            let mut statement = connection.prepare_cached(&update)?;
            statement.execute(params_from_iter(key))
        };
        changed().map_err(|error| fail(&error, &update))?;
    }
    Ok(owner)
}
