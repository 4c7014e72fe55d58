//! Moves rows from file to file on PostgreSQL, in a session of its own.

use super::file_rows::{LOCK, TABLE, is_recorded, text};
use super::session::PostgresSession;
use crate::Error;
use crate::moved_rows::{MOVED, MovedRows};

/// Moves rows in a transaction; gives their number. The file has a record from then on, so that its
/// rows go if it is gone before it is applied.
pub(crate) fn move_rows(session: &mut PostgresSession, moved: &MovedRows) -> Result<u64, Error> {
    session.run("begin isolation level read committed read write")?;
    let count = in_transaction(session, moved);
    match &count {
        Ok(_) => session.run("commit")?,
        // Without a connection there is nothing to roll back.
        Err(_) => drop(session.run("rollback")),
    }
    count
}

fn in_transaction(session: &mut PostgresSession, moved: &MovedRows) -> Result<u64, Error> {
    session.run(&format!("select pg_catalog.pg_advisory_xact_lock({LOCK})"))?;
    if !is_recorded(session)? {
        session.run(TABLE)?;
    }
    // As texts, keys are equal only if they are the same.
    let sql = moved.statement(|column, number| format!("{column}::text = ${number}"));
    let sql = format!("{sql} returning '1'");
    let mut count = 0;
    for row in &moved.rows {
        let Some(keys) = row.iter().map(text).collect::<Option<Vec<String>>>() else {
            continue;
        };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        count += session.query(&sql, &keys)?.len() as u64;
    }
    if count > 0 {
        session.query(
            "insert into _millpond_data (\"file\", \"table\", hash, version) values ($1, $2, $3, 0) \
             on conflict (\"file\") do update set \"table\" = excluded.\"table\", \
             hash = excluded.hash, version = excluded.version",
            &[&moved.file, &moved.table, MOVED],
        )?;
    }
    Ok(count)
}
