//! Finds the row of a file that its table refuses: rows that are put in many at once are not told
//! apart.

use super::file_rows::{RowFile, gather, insertion, unbounded_types};
use super::session::PostgresSession;
use crate::Error;
use crate::data_file::quoted;
use crate::file_set::FileSet;

/// A row is looked for among this number of rows, each in a step of its own.
const LIMIT: u64 = 20_000;

/// The error of the first row that a table of the same kind refuses, which has no other rows and
/// refers to none; it goes away again. None if it takes them all.
pub(super) fn refused_row(session: &mut PostgresSession, set: &mut FileSet<'_>) -> Option<Error> {
    let begin = "begin isolation level read committed read write";
    session.run(begin).ok()?;
    let found = probe(session, set);
    drop(session.run("rollback"));
    found
}

fn probe(session: &mut PostgresSession, set: &mut FileSet<'_>) -> Option<Error> {
    let types = unbounded_types(session, set).ok()?;
    let table = quoted(set.table);
    let create = format!("create temporary table _millpond_probe (like {table} including all)");
    session.run(&create).ok()?;
    let file = set.files.first()?.name;
    let mut sql = insertion("pg_temp._millpond_probe", set, &types, RowFile::One(file));
    if set.content_key().is_some() {
        // Equal rows get numbers.
        sql.push_str(" on conflict do nothing");
    }
    let refused = gather(session, &sql, set, 1, LIMIT).err()?;
    Some(of_table(refused, set.table))
}

/// The error as that of the table itself.
fn of_table(mut error: Error, table: &str) -> Error {
    if let Error::Constraint { message, .. } = &mut error {
        *message = message.replace("_millpond_probe", table);
    }
    error
}
