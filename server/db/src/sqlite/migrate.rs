//! Applies migrations to SQLite.

use rusqlite::{Connection, OptionalExtension};

use super::failure::sentence;
use super::hint;
use crate::migration::{fingerprint, place};
use crate::sql::{Dialect, statements};
use crate::{Error, Migration};

/// The table that records the applied migrations.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS _millpond_migrations (name TEXT PRIMARY KEY, hash TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT";

/// True if the migration was applied before.
pub(crate) fn is_applied(connection: &Connection, migration: &Migration) -> Result<bool, Error> {
    let Migration { name, sql } = migration;
    let applied: Option<String> = connection
        .query_row(
            "SELECT hash FROM _millpond_migrations WHERE name = ?1",
            [name],
            |row| row.get(0),
        )
        .optional()
        .map_err(|error| own(&error))?;
    match applied {
        Some(applied) if applied == fingerprint(sql) || applied == marked(sql) => Ok(true),
        Some(_) => Err(Error::MigrationChanged { name: name.clone() }),
        None => Ok(false),
    }
}

/// Applies a migration inside a transaction.
pub(crate) fn apply(connection: &Connection, migration: &Migration) -> Result<(), Error> {
    let Migration { name, sql } = migration;
    for piece in statements(sql, Dialect::Sqlite) {
        if let Err((offset, message)) = execute(connection, piece.text) {
            let (line, column) = place(sql, piece.start + offset);
            return Err(Error::Migration {
                name: name.clone(),
                line,
                column,
                message,
            });
        }
    }
    connection
        .execute(
            "INSERT INTO _millpond_migrations VALUES (?1, ?2, datetime('now'))",
            [name, &fingerprint(sql)],
        )
        .map_err(|error| own(&error))?;
    Ok(())
}

fn own(error: &rusqlite::Error) -> Error {
    Error::from_sqlite(error, TABLE)
}

fn execute(connection: &Connection, statement: &str) -> Result<(), (usize, String)> {
    let mut prepared = connection.prepare(statement).map_err(|error| {
        let offset = match &error {
            rusqlite::Error::SqlInputError { offset, .. } => usize::try_from(*offset).unwrap_or(0),
            _ => hint::locate(&sentence(&error), statement).unwrap_or(0),
        };
        (offset, sentence(&error))
    })?;
    let mut rows = prepared.raw_query();
    while rows
        .next()
        .map_err(|error| (0, sentence(&error)))?
        .is_some()
    {}
    Ok(())
}

/// The fingerprint of a script with a byte order mark, as scripts were once applied.
fn marked(sql: &str) -> String {
    fingerprint(&format!("\u{feff}{sql}"))
}
