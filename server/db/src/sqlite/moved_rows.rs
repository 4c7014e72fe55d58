//! Moves rows from file to file on SQLite, in a transaction of the writer.

use rusqlite::params;

use super::file_rows::{TABLE, fail, run};
use super::writer::Writer;
use crate::Error;
use crate::moved_rows::{MOVED, MovedRows};

impl Writer {
    /// Moves rows; gives their number. The file has a record from then on, so that its rows go if
    /// it is gone before it is applied.
    pub(crate) fn move_rows(&mut self, moved: &MovedRows) -> Result<u64, Error> {
        self.run_transaction(|session, _| {
            let connection = session.connection();
            run(connection, TABLE)?;
            let sql = moved.statement(|column, number| format!("{column} = ?{number}"));
            let mut count = 0;
            let mut statement = connection
                .prepare(&sql)
                .map_err(|error| fail(&error, &sql))?;
            for row in &moved.rows {
                let changed = statement.execute(rusqlite::params_from_iter(row));
                count += changed.map_err(|error| fail(&error, &sql))? as u64;
            }
            if count > 0 {
                let sql =
                    "insert or replace into _millpond_data values (?1, ?2, ?3, 0, datetime('now'))";
                let recorded = connection.execute(sql, params![moved.file, moved.table, MOVED]);
                recorded.map_err(|error| fail(&error, sql))?;
            }
            Ok(count)
        })
    }
}
