//! Reads: all queries of a read in one snapshot and one round trip.
//!
//! Several are a transaction. One alone carries the snapshot in two more columns: without BEGIN, COMMIT and a query for the
//! snapshot the server answers about twice as many. If it gives no row to carry it, it is asked once more as a transaction.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use millpond_store::clock::Boottime;
use tokio::time::timeout;

use super::analysis::Analysis;
use super::connect::Connection;
use super::pool::Pool;
use super::prepare::{Ready, Unprepared};
use super::run::{Failure, MAX_RESULT, Run, run_alone, together};
use super::statement::Statement;
use super::types::fits;
use super::{Shared, failure};
use crate::feed::Transactions;
use crate::query::Prepared;
use crate::{Call, Deps, Error, Expect, Query, Read, Rows, Snapshot, Value};

/// What our own deadline leaves to the server's, which is kinder: it keeps the connection.
const GRACE: Duration = Duration::from_millis(500);

/// Why a read came to nothing, and what becomes of its connection.
enum Outcome {
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
}

/// Runs the calls on a connection of the pool.
pub(super) async fn read(pool: &Pool, calls: &[Call]) -> Result<Read, Error> {
    let started = Boottime::now();
    let mut connection = pool.get().await?;
    let (began, limit) = (Boottime::now(), limit(&pool.shared, calls.len()));
    // A second attempt has what the first has left: a connection whose packets are lost holds nobody longer than that.
    let left = || limit.saturating_sub(Boottime::now().since(began));
    let mut retried = false;
    loop {
        let done = timeout(left(), attempt(pool, &mut connection, calls, started)).await;
        match done.unwrap_or(Err(Outcome::Silent)) {
            Ok(read) => {
                pool.put(connection);
                return Ok(read);
            }
            Err(Outcome::Failed(error)) => {
                pool.put(connection);
                return Err(error);
            }
            Err(Outcome::Abandoned(error)) => {
                connection.abandon(&pool.shared);
                return Err(error);
            }
            Err(Outcome::Silent) => {
                pool.distrust();
                connection.abandon(&pool.shared);
                return Err(Error::Timeout);
            }
            // A read changes nothing, so it may be done again: the connection may have died long ago.
            Err(Outcome::Lost(_)) if !retried => {
                let opened = timeout(left(), pool.open()).await;
                connection = opened.map_err(|_| Error::Timeout)??;
            }
            Err(Outcome::Lost(reason)) => {
                let place = &pool.shared.place;
                return Err(Error::unavailable(format!("{place}: {reason}")));
            }
            Err(Outcome::Outdated(error)) => {
                connection.forget_all();
                if retried {
                    pool.put(connection);
                    return Err(error);
                }
            }
        }
        retried = true;
    }
}

/// How long the attempts at a read may take together.
fn limit(shared: &Shared, calls: usize) -> Duration {
    let statements = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
    shared.options.statement_timeout.saturating_mul(statements) + GRACE
}

/// What PostgreSQL keeps of a query.
pub(super) fn statement(query: &Query) -> Result<&Statement, Error> {
    match query.prepared() {
        Prepared::Postgres(statement) => Ok(statement),
        Prepared::Sqlite(_) => Err(Error::usage(format!(
            "a query of another database: {}",
            query.sql()
        ))),
    }
}

/// One value for each parameter, each of its type.
pub(super) fn check_values(query: &Query, ready: &Ready, values: &[Value]) -> Result<(), Error> {
    let kinds = ready.statement.params();
    let names = &statement(query)?.sql.names;
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

/// Why a query of a read or a step of a write could not be prepared.
pub(super) fn refusal(error: Unprepared, query: &Query) -> Result<Error, String> {
    match error {
        Unprepared::Lost(reason) => Err(reason),
        Unprepared::Refused(error) => Ok(Error::Sql {
            message: error.to_string(),
            sql: Arc::clone(query.sql_arc()),
        }),
    }
}

async fn attempt(
    pool: &Pool,
    connection: &mut Connection,
    calls: &[Call],
    started: Boottime,
) -> Result<Read, Outcome> {
    let mut analyses = Vec::with_capacity(calls.len());
    let mut runs = Vec::with_capacity(calls.len() + 3);
    for call in calls {
        let (analysis, run) = look_up(&pool.shared, connection, call).await?;
        analyses.push(analysis);
        runs.push(run);
    }
    let columns: Vec<_> = runs
        .iter()
        .map(|run| Arc::clone(&run.ready.columns))
        .collect();
    let cast: Vec<_> = calls
        .iter()
        .zip(&runs)
        .filter(|(_, run)| run.ready.is_cast)
        .map(|(call, run)| (call, Rc::clone(&run.ready)))
        .collect();
    let mut found = None;
    if let ([call], [run]) = (calls, &runs[..]) {
        found = alone(&pool.shared, connection, call, run).await?;
    }
    let (seen, results) = match found {
        Some((seen, rows)) => (seen, vec![rows]),
        None => pipelined(&pool.shared, connection, calls, runs).await?,
    };
    let (transactions, position) = seen;
    let objection = objection(position, pool.shared.link.may_keep(&transactions));
    if objection.is_some() {
        still_current(connection, cast).await?;
    }
    let deps = calls.iter().zip(&analyses).map(|(call, analysis)| {
        let mut deps: Deps = analysis.deps(&call.params);
        deps.uncacheable = deps.uncacheable.or_else(|| objection.map(Arc::from));
        deps
    });
    Ok(Read {
        deps: deps.collect(),
        results: columns
            .into_iter()
            .zip(results)
            .map(|(columns, rows)| Rows { columns, rows })
            .collect(),
        snapshot: Snapshot::Transactions(Arc::new(transactions)),
        // Without a position nothing is combined with it.
        position: position.unwrap_or(u64::MAX),
        elapsed: Boottime::now().since(started),
    })
}

/// Without a feed nobody tells that the schema has changed, so statements whose casts hide it from the server are looked at
/// after each read.
async fn still_current(
    connection: &Connection,
    cast: Vec<(&Call, Rc<Ready>)>,
) -> Result<(), Outcome> {
    for (Call { query, .. }, ready) in cast {
        let sql = &statement(query).map_err(Outcome::Failed)?.sql;
        let current = ready.is_current(&connection.client, sql).await;
        if !current.map_err(|error| unprepared(error, query))? {
            return Err(Outcome::Outdated(Error::Sql {
                message: "its columns have changed while it was read".to_owned(),
                sql: Arc::clone(query.sql_arc()),
            }));
        }
    }
    Ok(())
}

/// What a call is, and how it is run on this connection.
async fn look_up<'a>(
    shared: &Shared,
    connection: &mut Connection,
    call: &'a Call,
) -> Result<(Arc<Analysis>, Run<'a>), Outcome> {
    let Call { query, params } = call;
    let unprepared = |error| unprepared(error, query);
    let statement = statement(query).map_err(Outcome::Failed)?;
    let analysis = statement.current(shared, connection).await;
    let analysis = analysis.map_err(unprepared)?;
    if !analysis.readonly {
        return Err(Outcome::Failed(Error::usage(format!(
            "a read cannot change anything, as this does: {}",
            query.sql()
        ))));
    }
    let ready = statement.ready(connection).await.map_err(unprepared)?;
    check_values(query, &ready, params).map_err(Outcome::Failed)?;
    let run = Run {
        ready,
        params,
        expect: Expect::Many,
    };
    Ok((analysis, run))
}

fn unprepared(error: Unprepared, query: &Query) -> Outcome {
    match refusal(error, query) {
        Ok(error) => Outcome::Failed(error),
        Err(reason) => Outcome::Lost(reason),
    }
}

/// One call as one statement, which carries its snapshot; `None` if it cannot, or gives no row to carry it.
async fn alone(
    shared: &Shared,
    connection: &Connection,
    call: &Call,
    run: &Run<'_>,
) -> Result<Option<(Seen, Table)>, Outcome> {
    let client = &connection.client;
    let statement = statement(&call.query).map_err(Outcome::Failed)?;
    let form = run.ready.alone(client, &statement.sql).await;
    let Some(form) = form.map_err(|error| unprepared(error, &call.query))? else {
        return Ok(None);
    };
    let done = run_alone(client, form, run).await;
    let (seen, rows) = done.map_err(|failure| sort(failure, Some(call), &shared.place))?;
    let seen = seen.as_ref().and_then(|row| snapshot(row));
    Ok(seen.map(|seen| (seen, rows)))
}

/// All calls in one transaction.
async fn pipelined(
    shared: &Shared,
    connection: &Connection,
    calls: &[Call],
    runs: Vec<Run<'_>>,
) -> Result<(Seen, Vec<Table>), Outcome> {
    let own = &connection.own;
    let mut all = Vec::with_capacity(runs.len() + 3);
    all.push(Run::own(&own.begin_read));
    all.push(Run::own(&own.snapshot));
    all.extend(runs);
    all.push(Run::own(&own.commit));
    let outcomes = together(&connection.client, all).await;
    let (seen, results) = sorted(outcomes, calls, &shared.place)?;
    let seen = seen.ok_or_else(|| {
        let place = &shared.place;
        Outcome::Failed(Error::unavailable(format!("{place} gives no snapshot")))
    })?;
    Ok((seen, results))
}

/// Why nothing that was read in this snapshot may be kept.
fn objection(position: Option<u64>, covered: bool) -> Option<&'static str> {
    match position {
        // The feed is the primary's: a standby lists other transactions (COHERENCE, rule 18).
        None => Some("the server is a standby"),
        Some(_) if !covered => Some("the feed does not cover this snapshot yet"),
        Some(_) => None,
    }
}

/// The snapshot, and the position that covers what it saw.
type Seen = (Transactions, Option<u64>);
/// The rows of one call.
type Table = Vec<Vec<Value>>;

/// The snapshot and the rows of each call; or what went wrong first.
fn sorted(
    outcomes: Vec<Result<Table, Failure>>,
    calls: &[Call],
    place: &str,
) -> Result<(Option<Seen>, Vec<Table>), Outcome> {
    let mut seen = None;
    let mut results = Vec::with_capacity(calls.len());
    for (index, outcome) in outcomes.into_iter().enumerate() {
        let call = index.checked_sub(2).and_then(|index| calls.get(index));
        match outcome {
            Ok(rows) if call.is_some() => results.push(rows),
            Ok(rows) if index == 1 => seen = rows.first().and_then(|row| snapshot(row)),
            Ok(_) => {}
            Err(failure) => return Err(sort(failure, call, place)),
        }
    }
    Ok((seen, results))
}

fn sort(failure: Failure, call: Option<&Call>, place: &str) -> Outcome {
    let sql: Arc<str> = call.map_or("a read".into(), |call| call.query.sql_arc().clone());
    match failure {
        Failure::TooLarge => Outcome::Abandoned(Error::TooLarge { limit: MAX_RESULT }),
        Failure::Unreadable(column) => Outcome::Abandoned(unreadable(column, sql)),
        Failure::Database(error) => {
            if failure::is_lost(&error) {
                return Outcome::Lost(failure::chain(&error));
            }
            let names = call
                .and_then(|call| statement(&call.query).ok())
                .map_or(&[][..], |statement| &statement.sql.names);
            let sorted = failure::sort(&error, &sql, names, place);
            if failure::is_outdated(&error) {
                Outcome::Outdated(sorted)
            } else {
                Outcome::Failed(sorted)
            }
        }
    }
}

/// The server has sent a value that is not of the type that it had named.
pub(super) fn unreadable(column: usize, sql: Arc<str>) -> Error {
    Error::Sql {
        message: format!("the value of column {} cannot be read", column + 1),
        sql,
    }
}

/// Reads the two columns [`super::prepare::SNAPSHOT`] and [`super::prepare::POSITION`].
fn snapshot(row: &[Value]) -> Option<Seen> {
    match row {
        [Value::Text(transactions), position] => {
            let position = match position {
                Value::Text(position) => Some(lsn(position)?),
                _ => None,
            };
            Some((Transactions::parse(transactions)?, position))
        }
        _ => None,
    }
}

/// A position in the log, `16/B374D848`.
fn lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |digits| u32::from_str_radix(digits, 16).ok().map(u64::from);
    Some(part(high)? << 32 | part(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read() {
        assert_eq!(lsn("16/B374D848"), Some(0x16_b374_d848));
        assert_eq!(lsn("0/0"), Some(0));
        for wrong in ["", "1", "1/", "x/0", "1/123456789"] {
            assert_eq!(lsn(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_is_kept_of_a_standby_nor_without_a_feed() {
        assert!(objection(None, true).is_some());
        assert!(objection(Some(1), false).is_some());
        assert_eq!(objection(Some(1), true), None);
    }
}
