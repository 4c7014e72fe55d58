//! Moves rows from file to file on PostgreSQL, in a session of its own.

use std::collections::BTreeSet;

use super::file_rows::{LOCK, TABLE, is_recorded, text};
use super::session::PostgresSession;
use crate::Error;
use crate::data_file::AppliedFile;
use crate::moved_rows::MovedRows;

/// Moves rows in a transaction. The file has a record from then on, so that its rows go if it is
/// gone before it is applied; none if no row has moved.
pub(crate) fn move_rows(
    session: &mut PostgresSession,
    moved: &MovedRows,
) -> Result<Option<AppliedFile>, Error> {
    session.run("begin isolation level read committed read write")?;
    let record = in_transaction(session, moved);
    match &record {
        Ok(_) => session.run("commit")?,
        // Without a connection there is nothing to roll back.
        Err(_) => drop(session.run("rollback")),
    }
    record
}

fn in_transaction(
    session: &mut PostgresSession,
    moved: &MovedRows,
) -> Result<Option<AppliedFile>, Error> {
    session.run(&format!("select pg_catalog.pg_advisory_xact_lock({LOCK})"))?;
    if !is_recorded(session)? {
        session.run(TABLE)?;
    }
    // As texts, keys are equal only if they are the same.
    let equal = |column: &str, number: usize| format!("{column}::text = ${number}");
    let (find, update) = (moved.owner(equal), moved.update(equal));
    let mut owners = BTreeSet::new();
    for row in &moved.rows {
        let Some(keys) = row.iter().map(text).collect::<Option<Vec<String>>>() else {
            continue;
        };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        if let Some(owner) = session.query(&find, &keys)?.into_iter().flatten().next() {
            owners.extend(owner);
            session.query(&format!("{update} returning '1'"), &keys)?;
        }
    }
    if owners.is_empty() {
        return Ok(None);
    }
    let record = moved.record(&owners);
    session.query(
        "insert into _millpond_data (\"file\", \"table\", hash, version) values ($1, $2, $3, 0) \
         on conflict (\"file\") do update set \"table\" = excluded.\"table\", \
         hash = excluded.hash, version = excluded.version",
        &[&record.file, &record.table, &record.hash],
    )?;
    Ok(Some(record))
}
