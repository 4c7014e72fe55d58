//! Migrations in a transaction that is never committed, so that queries can be checked against what
//! they will find.
//!
//! The locks that the migrations take are held until the database is closed, which a check does at
//! once. A wait for a lock would block later statements, so that ends soon.

use std::sync::atomic::Ordering;

use tokio_postgres::Client;

use super::migrate::{execute, is_alone, own_failure};
use super::pool::Pool;
use crate::migration::fingerprint;
use crate::sql::{Dialect, statements};
use crate::{Error, Migration};

/// Result of a rehearsal of the migrations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// The names of those that would be applied.
    pub pending: Vec<String>,
    /// The first that cannot run in a transaction: it and what comes after it was left out.
    pub left_out: Option<String>,
    /// The names of all that were applied before, also of those that the site no longer has.
    pub applied: Vec<String>,
}

/// A migration may take longer than a query, but not wait for a lock that others queue up behind.
const BEGIN: &str = "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; \
    begin isolation level read committed read write; set local lock_timeout = '2s'";

/// Runs in the transaction what was not applied before. From now on statements are prepared there.
pub(super) async fn rehearse(pool: &Pool, migrations: &[Migration]) -> Result<Rehearsal, Error> {
    let shared = &pool.shared;
    let connection = pool.get().await?;
    let client = &connection.client;
    let own = |error: tokio_postgres::Error| own_failure(&error, shared);
    client.batch_execute(BEGIN).await.map_err(own)?;
    let applied = applied(client).await.map_err(own)?;
    let mut rehearsal = Rehearsal::default();
    for migration in migrations {
        let known = applied.iter().find(|(name, _)| *name == migration.name);
        match known {
            Some((_, hash)) if *hash == fingerprint(&migration.sql) => continue,
            Some(_) => {
                return Err(Error::MigrationChanged {
                    name: migration.name.clone(),
                });
            }
            None => {}
        }
        if is_alone(migration) {
            rehearsal.left_out = Some(migration.name.clone());
            break;
        }
        for piece in statements(&migration.sql, Dialect::Postgres) {
            execute(shared, client, migration, piece, false).await?;
        }
        rehearsal.pending.push(migration.name.clone());
    }
    rehearsal.applied = applied.into_iter().map(|(name, _)| name).collect();
    shared.rehearsing.store(true, Ordering::SeqCst);
    pool.put(connection);
    Ok(rehearsal)
}

/// Names and hashes of what was applied; nothing where no migration ever was.
async fn applied(client: &Client) -> Result<Vec<(String, String)>, tokio_postgres::Error> {
    let is_there = "select to_regclass('_millpond_migrations') is not null";
    let is_there: bool = client.query_one(is_there, &[]).await?.try_get(0)?;
    if !is_there {
        return Ok(Vec::new());
    }
    let rows = client
        .query("select name, hash from _millpond_migrations", &[])
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}
