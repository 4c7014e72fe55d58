//! Reads: all queries of a read in one snapshot and one round trip ([`super::wire`]).
//!
//! Behind them goes a statement of our own, which says which snapshot it was, and whether the
//! tables were as it knows them.

use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use tokio::time::timeout;
use tokio_postgres::types::Type;

use super::analysis::{Found, PreparedWitness};
use super::connect::PooledConnection;
use super::context::DatabaseContext;
use super::files::{FileComparison, FileQuery};
use super::pool::Pool;
use super::prepare::{PrepareError, is_current};
use super::read_snapshot::ReadSnapshot;
use super::run::RunError;
use super::server_error::DatabaseError;
use super::statement::{Statement, StatementAnalysis};
use super::types::fits;
use super::wire::open::STANDBY;
use super::wire::{BatchError, FailedBatch, Item, StatementRows};
use super::{failure, read_snapshot};
use crate::value::MAX_RESULT;
use crate::{Call, Deps, Error, Query, ReadResult, ResultRows, Snapshot, Value};

/// Time that our own deadline leaves to the server's, which is kinder: it keeps the connection.
const GRACE: Duration = Duration::from_millis(500);
/// How often a read is done again because a table was written anew meanwhile.
const REWRITES: u32 = 3;

/// Why a read came to nothing, and what becomes of its connection.
enum ReadFailure {
    /// The caller's; the connection is good.
    Failed(Error),
    /// Something still runs on the connection.
    Abandoned(Error),
    /// Not even the server's own limit has made it answer.
    Silent,
    /// The connection is gone.
    Lost(String),
    /// A statement was prepared for another schema than there is now.
    Outdated(Error),
    /// A witness has failed.
    Unwitnessed,
    /// A table was emptied or written anew while it was read, or before, which is not `certain`.
    Rewritten { certain: bool },
}

/// Runs the calls on a connection of the pool.
pub(super) async fn read(pool: &Pool, calls: &[Call]) -> Result<ReadResult, Error> {
    let started = Boottime::now();
    let mut connection = pool.get().await?;
    let (mut began, limit) = (Boottime::now(), limit(&pool.shared, calls.len()));
    // A second attempt has what the first has left: a connection whose packets are lost delays the
    // caller no longer than that.
    let left = |began| limit.saturating_sub(Boottime::now().since(began));
    let (mut retried, mut renew, mut rewrites) = (false, false, 0);
    let mut witnesses = true;
    loop {
        let attempt = attempt(&pool.shared, &mut connection, calls, renew, witnesses);
        match timeout(left(began), attempt)
            .await
            .unwrap_or(Err(ReadFailure::Silent))
        {
            Ok(mut read) => {
                pool.put(connection);
                read.elapsed = Boottime::now().since(started);
                return Ok(read);
            }
            Err(ReadFailure::Failed(error)) => {
                pool.put(connection);
                return Err(error);
            }
            Err(ReadFailure::Abandoned(error)) => {
                connection.abandon(&pool.shared);
                return Err(error);
            }
            Err(ReadFailure::Silent) => {
                // Who had to wait for a table once has not waited for the network.
                if rewrites == 0 {
                    pool.mark_suspect();
                }
                connection.abandon(&pool.shared);
                return Err(Error::Timeout { sql: only(calls) });
            }
            // A read changes nothing, so it may be done again: the connection may have died long
            // ago.
            Err(ReadFailure::Lost(_)) if !retried => {
                let opened = timeout(left(began), pool.open()).await;
                connection = opened.map_err(|_| Error::Timeout { sql: None })??;
            }
            Err(ReadFailure::Lost(reason)) => {
                let place = &pool.shared.place;
                return Err(Error::unavailable(format!("{place}: {reason}")));
            }
            Err(ReadFailure::Rewritten { certain }) if rewrites < REWRITES => {
                rewrites += u32::from(certain);
                continue;
            }
            Err(ReadFailure::Rewritten { .. }) => {
                pool.put(connection);
                let place = &pool.shared.place;
                return Err(Error::unavailable(format!(
                    "{place}: a table is emptied or written anew whenever it is read"
                )));
            }
            Err(ReadFailure::Unwitnessed) => {
                // The page does not wait less for its own queries.
                (witnesses, began) = (false, Boottime::now());
                continue;
            }
            Err(ReadFailure::Outdated(error)) => {
                connection.forget_all();
                if retried {
                    pool.put(connection);
                    return Err(error);
                }
                renew = true;
            }
        }
        retried = true;
    }
}

/// The statement of a read that has one.
fn only(calls: &[Call]) -> Option<Arc<str>> {
    match calls {
        [call] => Some(Arc::clone(call.query.sql_arc())),
        _ => None,
    }
}

/// How long the attempts at a read may take together.
fn limit(shared: &DatabaseContext, calls: usize) -> Duration {
    let statements = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
    shared.options.statement_timeout.saturating_mul(statements) + GRACE
}

/// One value for each parameter, each of its type.
pub(super) fn check_values(query: &Query, kinds: &[Type], values: &[Value]) -> Result<(), Error> {
    let names = &query.prepared::<Statement>()?.sql.names;
    if kinds.len() != values.len() {
        return Err(Error::usage(format!(
            "{} values for {} parameters, in: {}",
            values.len(),
            kinds.len(),
            query.sql()
        )));
    }
    for ((name, value), kind) in names.iter().zip(values).zip(kinds) {
        fits(name, value, kind)?;
    }
    Ok(())
}

/// `renew`: the queries' columns may have changed. Without `witnesses`, the results may depend on
/// more rows.
async fn attempt(
    shared: &DatabaseContext,
    connection: &mut PooledConnection,
    calls: &[Call],
    renew: bool,
    witnesses: bool,
) -> Result<ReadResult, ReadFailure> {
    let mut found = Vec::with_capacity(calls.len());
    for call in calls {
        found.push(look_up(shared, connection, call, renew).await?);
    }
    let witnesses = match witnesses {
        true => WitnessItem::all(calls, &found),
        false => Vec::new(),
    };
    let read = in_one_snapshot(shared, connection, calls, &found, &witnesses);
    let (seen, files, mut results) = read.await?;
    let witnessed = results.split_off(calls.len());
    let transactions = seen.transactions;
    let position = of_primary(seen.position)?;
    let uncovered = uncovered(files, shared.link.may_keep(&transactions));
    if uncovered.is_some() {
        still_current(&shared.place, connection, calls, &found).await?;
    }
    let deps = deps_of(calls, &found, &results, &witnesses, witnessed);
    let rows = found.iter().zip(results).map(|(found, rows)| ResultRows {
        columns: Arc::clone(&found.shape.columns),
        rows,
    });
    Ok(ReadResult {
        deps,
        results: rows.collect(),
        snapshot: Snapshot::Transactions(Arc::new(transactions)),
        position,
        uncovered,
        elapsed: Duration::ZERO,
    })
}

/// Without a feed no notification says that the schema has changed, so statements whose casts hide
/// it from the server are looked at after each read.
async fn still_current(
    place: &str,
    connection: &PooledConnection,
    calls: &[Call],
    found: &[StatementAnalysis],
) -> Result<(), ReadFailure> {
    for (Call { query, .. }, found) in calls.iter().zip(found) {
        if !found.shape.is_cast {
            continue;
        }
        let statement: &Statement = query.prepared().map_err(ReadFailure::Failed)?;
        let sql = &statement.sql;
        let current = is_current(&found.shape, &connection.client, sql).await;
        if !current.map_err(|error| unprepared(error, query, place))? {
            return Err(ReadFailure::Outdated(changed(query.sql_arc())));
        }
    }
    Ok(())
}

fn changed(sql: &Arc<str>) -> Error {
    Error::Sql {
        message: "its columns have changed while it was read".to_owned(),
        sql: Arc::clone(sql),
    }
}

/// Finds the kind of a call, and how it is run.
async fn look_up(
    shared: &DatabaseContext,
    connection: &mut PooledConnection,
    call: &Call,
    renew: bool,
) -> Result<StatementAnalysis, ReadFailure> {
    let Call { query, params } = call;
    let statement: &Statement = query.prepared().map_err(ReadFailure::Failed)?;
    let found = if renew {
        statement.renewed(shared, connection).await
    } else {
        statement.current(shared, connection).await
    };
    let found = found.map_err(|error| unprepared(error, query, &shared.place))?;
    let checked = query.check_reads(&found.analysis.facts);
    let checked = checked.and_then(|()| check_values(query, &found.shape.params, params));
    checked.map_err(ReadFailure::Failed)?;
    Ok(found)
}

fn unprepared(error: PrepareError, query: &Query, place: &str) -> ReadFailure {
    match error {
        PrepareError::Refused(error) => ReadFailure::Failed(query.refused(&error)),
        PrepareError::Prevented(trouble) => {
            let sorted = failure::sort(&trouble, query.sql_arc(), &[], place);
            ReadFailure::Failed(sorted)
        }
        PrepareError::Lost(reason) => ReadFailure::Lost(reason),
    }
}

/// Runs all calls at once.
async fn in_one_snapshot(
    shared: &DatabaseContext,
    connection: &mut PooledConnection,
    calls: &[Call],
    found: &[StatementAnalysis],
    witnesses: &[WitnessItem<'_>],
) -> Result<(ReadSnapshot, FileComparison, Vec<StatementRows>), ReadFailure> {
    let question = question(connection, found);
    let mut items = Vec::with_capacity(calls.len() + witnesses.len() + 1);
    items.extend(items_of(calls, found));
    items.extend(witnesses.iter().map(WitnessItem::item));
    items.push(read_snapshot::item(shared.options.feed, &question));
    let tables = connection.read(&items).await;
    let mut tables = tables.map_err(|failed| {
        if WitnessItem::has_failed(&failed, witnesses, found) {
            return ReadFailure::Unwitnessed;
        }
        sort(failed, calls, &shared.place)
    })?;
    let seen = ReadSnapshot::read(&tables.pop().unwrap_or_default()).map_err(ReadFailure::Lost)?;
    let seen = seen.ok_or_else(|| {
        let place = &shared.place;
        ReadFailure::Failed(Error::unavailable(format!("{place} gives no snapshot")))
    })?;
    match connection.files.answer(&question, &seen.files) {
        files @ (FileComparison::Same | FileComparison::Gone) => Ok((seen, files, tables)),
        FileComparison::Unsure => Err(ReadFailure::Rewritten { certain: false }),
        FileComparison::Changed => Err(ReadFailure::Rewritten { certain: true }),
    }
}

/// The statements of a read, with their values.
pub(super) fn items_of<'a>(
    calls: &'a [Call],
    found: &'a [StatementAnalysis],
) -> impl Iterator<Item = Item<'a>> {
    calls.iter().zip(found).map(|(call, found)| Item {
        shape: &found.shape,
        params: &call.params,
    })
}

/// A witness of a call, with its values.
pub(super) struct WitnessItem<'a> {
    /// The index of the call.
    call: usize,
    witness: &'a PreparedWitness,
    params: Vec<Value>,
}

impl<'a> WitnessItem<'a> {
    /// Returns the items of all calls, in order.
    pub(super) fn all(calls: &[Call], found: &'a [StatementAnalysis]) -> Vec<Self> {
        let calls = calls.iter().zip(found).enumerate();
        let all = calls.flat_map(|(index, (call, found))| {
            let witnesses = found.analysis.witnesses().iter();
            witnesses.filter_map(move |witness| {
                Some(WitnessItem {
                    call: index,
                    witness,
                    params: witness.params(&call.params)?,
                })
            })
        });
        all.collect()
    }

    /// True if the server has refused or ended a witness. What it refuses is not asked any more.
    pub(super) fn has_failed(
        failed: &FailedBatch,
        witnesses: &[Self],
        found: &[StatementAnalysis],
    ) -> bool {
        let place = failed.index.checked_sub(found.len());
        let witness = place.and_then(|place| witnesses.get(place));
        let Some(witness) = witness.filter(|_| failed.is_of_statement()) else {
            return false;
        };
        if !failed.is_cancelled() {
            found[witness.call].analysis.forget_witnesses();
        }
        true
    }

    pub(super) fn item(&self) -> Item<'_> {
        Item {
            shape: &self.witness.shape,
            params: &self.params,
        }
    }
}

/// Returns the dependencies of each call, by its rows and those that its witnesses have found.
pub(super) fn deps_of(
    calls: &[Call],
    found: &[StatementAnalysis],
    results: &[StatementRows],
    witnesses: &[WitnessItem<'_>],
    tables: impl IntoIterator<Item = StatementRows>,
) -> Vec<Deps> {
    let rows = results.iter();
    let mut values: Vec<Found<'_>> = rows.map(|rows| Found::of_rows(rows)).collect();
    for (witness, rows) in witnesses.iter().zip(tables) {
        values[witness.call].add(witness.witness, &calls[witness.call].params, &rows);
    }
    let calls = calls.iter().zip(found).zip(&values);
    let deps = calls.map(|((call, found), values)| found.analysis.deps(&call.params, values));
    deps.collect()
}

/// Returns the question behind the calls about the files of their tables.
pub(super) fn question(connection: &PooledConnection, found: &[StatementAnalysis]) -> FileQuery {
    let statements = found.iter().map(|found| &*found.analysis);
    connection.files.question(statements)
}

/// The position of what was read, which only a primary has. The connection was one to a primary
/// when it was opened, so something stands between that leads to another server now, such as a
/// pooler; what a standby gives may be of any age, and is never returned.
fn of_primary(position: Option<u64>) -> Result<u64, ReadFailure> {
    position.ok_or_else(|| ReadFailure::Lost(STANDBY.to_owned()))
}

/// Why nothing that was read in this snapshot may be kept.
fn uncovered(files: FileComparison, covered: bool) -> Option<&'static str> {
    match files {
        FileComparison::Gone => Some("a table of it is another by now"),
        _ if !covered => Some("the feed does not cover this snapshot yet"),
        _ => None,
    }
}

fn sort(failed: FailedBatch, calls: &[Call], place: &str) -> ReadFailure {
    let call = calls.get(failed.index);
    let sql: Arc<str> = call.map_or("a read".into(), |call| call.query.sql_arc().clone());
    let names = call
        .and_then(|call| call.query.prepared::<Statement>().ok())
        .map_or(&[][..], |statement| &statement.sql.names);
    let sorted = |trouble: &DatabaseError| failure::sort(trouble, &sql, names, place);
    match failed.wrong {
        BatchError::Failed(RunError::TooLarge) => {
            ReadFailure::Abandoned(Error::TooLarge { limit: MAX_RESULT })
        }
        BatchError::Failed(RunError::Unreadable(column)) => {
            ReadFailure::Failed(unreadable(column, sql))
        }
        BatchError::Failed(RunError::Database(trouble)) if trouble.is_lost() => {
            ReadFailure::Lost(trouble.sentence())
        }
        BatchError::Failed(RunError::Database(trouble)) if !trouble.is_outdated() => {
            ReadFailure::Failed(sorted(&trouble))
        }
        BatchError::Failed(RunError::Database(trouble)) | BatchError::Unparsed(trouble) => {
            ReadFailure::Outdated(sorted(&trouble))
        }
        BatchError::Changed => ReadFailure::Outdated(changed(&sql)),
        // It may have changed the session.
        BatchError::NoQuery => ReadFailure::Abandoned(Error::usage(format!(
            "this is not a query, so it is not read: {sql}"
        ))),
    }
}

/// The server has sent a value that is not of the type that it had named.
pub(super) fn unreadable(column: usize, sql: Arc<str>) -> Error {
    Error::Sql {
        message: format!("the value of column {} cannot be read", column + 1),
        sql,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_of_a_standby_nor_kept_without_a_feed() {
        match of_primary(None) {
            Err(ReadFailure::Lost(why)) => assert!(why.contains("standby"), "{why}"),
            _ => panic!("it was given"),
        }
        assert!(matches!(of_primary(Some(1)), Ok(1)));
        assert!(uncovered(FileComparison::Same, false).is_some());
        assert!(uncovered(FileComparison::Gone, true).is_some());
        assert_eq!(uncovered(FileComparison::Same, true), None);
    }
}
