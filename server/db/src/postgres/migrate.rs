//! Migrations: scripts that each run once, in order, also when several nodes start together.

use std::time::Duration;

use tokio_postgres::Client;

use super::connect::{PooledConnection, connect};
use super::context::DatabaseContext;
use super::failure::{chain, is_lost, place_in, sentence};
use super::sql::ends_transaction;
use crate::migration::{fingerprint, place};
use crate::sql::{Dialect, ScriptStatement, statements};
use crate::{Error, Migration};

/// Table that records the applied migrations, in the schema that comes first in the search path.
const TABLE: &str = "create table if not exists _millpond_migrations \
    (name text primary key, hash text not null, applied_at timestamptz not null default now())";

/// Number of the lock that nodes that start together agree on: "millpond" in ASCII.
const LOCK: i64 = 0x6d69_6c6c_706f_6e64;

/// The time between two attempts to get the lock. Waiting for it in the server would hold a
/// snapshot, and CREATE INDEX CONCURRENTLY, run by the node that has the lock, would wait for that:
/// a deadlock.
const PAUSE: Duration = Duration::from_millis(50);

/// On the first line of a script whose statements cannot run in a transaction.
const NO_TRANSACTION: &str = "-- millpond: no transaction";

/// Applies what was not applied before, on a connection of its own; gives the names.
pub(super) async fn migrate(
    shared: &DatabaseContext,
    migrations: &[Migration],
) -> Result<Vec<String>, Error> {
    let connection = connect(shared).await?;
    let applied = locked(shared, &connection, migrations).await;
    // The lock ends with the session.
    connection.close().await;
    let applied = applied?;
    if !applied.is_empty() {
        shared.link.schema_changed("migrations were applied");
    }
    Ok(applied)
}

async fn locked(
    shared: &DatabaseContext,
    connection: &PooledConnection,
    migrations: &[Migration],
) -> Result<Vec<String>, Error> {
    let client = &connection.client;
    let own = |error: tokio_postgres::Error| own_failure(&error, shared);
    // A migration may take its time, and so may what it waits for.
    let unlimited = "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; \
        set default_transaction_read_only = off; set default_transaction_isolation = 'read committed'";
    client.batch_execute(unlimited).await.map_err(own)?;
    loop {
        let locked = client
            .query_one("select pg_try_advisory_lock($1)", &[&LOCK])
            .await;
        if locked.and_then(|row| row.try_get(0)).map_err(own)? {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    if let Err(error) = client.batch_execute(TABLE).await {
        return Err(unrecorded(&error, shared));
    }
    let mut applied = Vec::new();
    for migration in migrations {
        if apply(shared, client, migration).await? {
            applied.push(migration.name.clone());
        }
    }
    Ok(applied)
}

/// The table in which migrations are recorded cannot be made.
fn unrecorded(error: &tokio_postgres::Error, shared: &DatabaseContext) -> Error {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    match error.as_db_error() {
        Some(database) if database.code().code() == INSUFFICIENT_PRIVILEGE => {
            let role = shared.target.config.get_user().unwrap_or_default();
            let said = sentence(database);
            let schema = said.strip_prefix("permission denied for schema ");
            Error::usage(format!(
                "{said}, where applied migrations are to be recorded; its owner can permit it: \
                 grant create on schema {} to \"{}\"",
                schema.unwrap_or("public"),
                role.replace('"', "\"\"")
            ))
        }
        _ => own_failure(error, shared),
    }
}

/// Something went wrong that is no statement's of a migration.
pub(super) fn own_failure(error: &tokio_postgres::Error, shared: &DatabaseContext) -> Error {
    match error.as_db_error() {
        Some(database) if !is_lost(error) => Error::Sql {
            message: sentence(database),
            sql: TABLE.into(),
        },
        _ => Error::unavailable(format!("{}: {}", shared.place, chain(error))),
    }
}

/// True if its statements run without a transaction.
pub(super) fn is_alone(migration: &Migration) -> bool {
    let first = migration.sql.lines().next().unwrap_or_default().trim();
    first.eq_ignore_ascii_case(NO_TRANSACTION)
}

/// Applies a migration unless it was applied before; says whether it was now.
async fn apply(
    shared: &DatabaseContext,
    client: &Client,
    migration: &Migration,
) -> Result<bool, Error> {
    let Migration { name, sql } = migration;
    let own = |error: tokio_postgres::Error| own_failure(&error, shared);
    let hash = fingerprint(sql);
    let known = "select hash from _millpond_migrations where name = $1";
    let known = client.query_opt(known, &[name]).await.map_err(own)?;
    if let Some(row) = known {
        let known: String = row.try_get(0).map_err(own)?;
        return if known == hash {
            Ok(false)
        } else {
            Err(Error::MigrationChanged { name: name.clone() })
        };
    }
    let alone = is_alone(migration);
    if !alone {
        client.batch_execute("begin").await.map_err(own)?;
    }
    for piece in statements(sql, Dialect::Postgres) {
        execute(shared, client, migration, piece, alone).await?;
    }
    let record = "insert into _millpond_migrations (name, hash) values ($1, $2)";
    client.execute(record, &[name, &hash]).await.map_err(own)?;
    if !alone {
        // A constraint that is checked only here fails as a whole.
        let committed = client.batch_execute("commit").await;
        committed.map_err(|error| failed(&error, shared, migration, 0))?;
    }
    Ok(true)
}

/// Runs one statement. If it fails, the transaction ends with the connection.
pub(super) async fn execute(
    shared: &DatabaseContext,
    client: &Client,
    migration: &Migration,
    piece: ScriptStatement<'_>,
    alone: bool,
) -> Result<(), Error> {
    if !alone && ends_transaction(piece.text) {
        let advice = "a migration runs in one transaction: leave this out, or make \
            `-- millpond: no transaction` the first line of the file";
        return Err(refused(migration, piece.start, advice.to_owned()));
    }
    client.batch_execute(piece.text).await.map_err(|error| {
        let within = place_in(&error, piece.text).unwrap_or(0);
        failed(&error, shared, migration, piece.start + within)
    })
}

fn failed(
    error: &tokio_postgres::Error,
    shared: &DatabaseContext,
    migration: &Migration,
    offset: usize,
) -> Error {
    match error.as_db_error() {
        Some(database) if !is_lost(error) => refused(migration, offset, sentence(database)),
        _ => Error::unavailable(format!("{}: {}", shared.place, chain(error))),
    }
}

fn refused(migration: &Migration, offset: usize, message: String) -> Error {
    let (line, column) = place(&migration.sql, offset);
    Error::Migration {
        name: migration.name.clone(),
        line,
        column,
        message,
    }
}
