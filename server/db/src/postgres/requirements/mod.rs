//! What a server needs so that its changes can be reported, as data for `millpond check`.
//!
//! What must be published, or be given triggers, is what the site's queries read. Partitions are
//! published under their own names (`publish_via_partition_root` stays off): then the replica
//! identity that the feed is told is that of the table which holds the row, and old values can be
//! believed. A table without a replica identity is never published as it is: from then on
//! PostgreSQL would refuse the application's UPDATE and DELETE (coherence.md, rule 20). It is given
//! one first.

mod publication;
mod server;
mod triggers;

use std::collections::BTreeSet;

use tokio_postgres::Client;

use super::catalog::Catalog;
use super::pool::Pool;
use super::replica::Replicas;
use super::server_error::refused;
use crate::{Error, FeedKind, Requirement, SqlError};
use server::Facts;
use triggers::Objects;

/// Lists the requirements that are missing so that results that are read from `tables` may be kept;
/// the most basic first. `running` says that this program's own feed runs, and has a slot already.
pub(crate) async fn requirements(
    client: &Client,
    catalog: &Catalog,
    tables: &BTreeSet<u32>,
    running: bool,
) -> Result<Vec<Requirement>, SqlError> {
    let facts = Facts::ask(client, &catalog.publication().name).await?;
    let kind = catalog.recording().feed;
    let mut all = server::missing_requirements(&facts, kind, running);
    let concerned = tables | catalog.recording().tables_with_triggers();
    let owned = publication::owned(client, catalog, &concerned).await?;
    let objects = Objects::ask(client).await?;
    match kind {
        FeedKind::Logical => {
            all.extend(publication::missing_requirements(
                &facts, catalog, tables, &owned,
            ));
            all.extend(triggers::leftover_triggers(&objects, catalog, &owned));
        }
        FeedKind::Triggers => all.extend(triggers::missing_requirements(
            &objects, catalog, tables, &owned,
        )),
    }
    Ok(all)
}

/// Runs the statement of a requirement that may be mended so.
pub(crate) async fn fix(client: &Client, requirement: &Requirement) -> Result<(), SqlError> {
    match &requirement.statement {
        Some(statement) if requirement.may_fix => client
            .batch_execute(statement)
            .await
            .map_err(|error| refused(&error)),
        _ => Err(SqlError {
            message: format!("{}: this is not for Millpond to mend", requirement.missing),
            offset: None,
            hint: requirement.statement.clone(),
        }),
    }
}

/// Lists the missing requirements on a connection of the pool, and the faults that keep replicas
/// from being read.
pub(super) async fn ask(
    pool: &Pool,
    replicas: &Replicas,
    tables: &BTreeSet<u32>,
) -> Result<Vec<Requirement>, Error> {
    let connection = pool.get().await?;
    let options = &pool.shared.options;
    let loaded = Catalog::load(&connection.client, options.feed, &options.publication).await;
    let found = match loaded {
        Ok(catalog) => {
            let running = pool.shared.link.has_feed();
            requirements(&connection.client, &catalog, tables, running).await
        }
        Err(error) => Err(error),
    };
    let lacking = replicas.missing_requirements(&connection.client).await;
    pool.put(connection);
    let mut found = found.map_err(Error::unavailable)?;
    found.extend(lacking);
    Ok(found)
}

/// Mends one of them on a connection of the pool.
pub(super) async fn repair(pool: &Pool, requirement: &Requirement) -> Result<(), Error> {
    let connection = pool.get().await?;
    // The sessions of the pool only read, so this one is not given back. A statement that waits for
    // a lock blocks the statements queued behind it.
    let writing = connection
        .client
        .batch_execute("set default_transaction_read_only = off; set lock_timeout = '2s'");
    let done = match writing.await {
        Ok(()) => fix(&connection.client, requirement).await,
        Err(error) => Err(refused(&error)),
    };
    connection.close().await;
    done.map_err(|error| Error::usage(error.to_string()))
}
