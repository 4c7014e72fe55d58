//! Writes: one transaction, and the wait for its change in the feed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::connect::PooledConnection;
use super::context::DatabaseContext;
use super::failure;
use super::pending_writes::{Arrival, PREFIX};
use super::pool::Pool;
use super::prepare::PrepareError;
use super::read::{check_values, unreadable};
use super::run::{RunError, StatementRun, run, together};
use super::statement::Statement;
use crate::value::MAX_RESULT;
use crate::{Error, Expect, FeedKind, Position, Query, ResultRows, Value, WriteStep, bind};

/// Time that our own deadline leaves to the server's.
const GRACE: Duration = Duration::from_millis(500);
/// How often a transaction is run that others get in the way of.
const ATTEMPTS: u32 = 3;

/// A commit's token, and the receiver that is notified when the feed delivers the change.
pub(super) type Awaited = Option<(u64, Arrival)>;

/// Why a transaction came to nothing, and what becomes of its connection.
enum WriteFailure {
    /// Rolled back; the connection is good.
    Failed(Error),
    /// Rolled back, since another transaction was in the way.
    Conflict(Error),
    /// A statement was prepared for another schema than there is now; rolled back.
    Outdated(Error),
    /// Something still runs on the connection.
    Abandoned(Error),
    /// The connection was gone before the commit was asked for: nothing has been changed.
    Lost(String),
    /// The connection was lost while the commit ran.
    Unknown(String),
}

/// Runs the steps in one transaction on a connection of the pool.
pub(super) async fn write(
    pool: &Pool,
    steps: &[WriteStep],
) -> Result<(Vec<ResultRows>, Awaited), Error> {
    let mut connection = pool.get().await?;
    let mut conflicts = 0;
    let mut renewed = false;
    loop {
        let outcome = attempt(&pool.shared, &mut connection, steps).await;
        match outcome {
            Ok(done) => {
                pool.put(connection);
                return Ok(done);
            }
            Err(WriteFailure::Failed(error)) => {
                // A server that takes no writes may be a standby by now: the next connection finds
                // the primary.
                if !matches!(error, Error::Unavailable { .. }) {
                    pool.put(connection);
                }
                return Err(error);
            }
            Err(WriteFailure::Conflict(error)) => {
                conflicts += 1;
                if conflicts == ATTEMPTS {
                    pool.put(connection);
                    return Err(error);
                }
            }
            Err(WriteFailure::Outdated(error)) => {
                connection.forget_all();
                if std::mem::replace(&mut renewed, true) {
                    pool.put(connection);
                    return Err(error);
                }
            }
            Err(WriteFailure::Abandoned(error)) => {
                if matches!(error, Error::Timeout { .. }) {
                    pool.mark_suspect();
                }
                connection.abandon(&pool.shared);
                return Err(error);
            }
            Err(WriteFailure::Lost(reason)) => {
                if std::mem::replace(&mut renewed, true) {
                    return Err(lost(pool, &reason));
                }
                connection = pool.open().await?;
            }
            Err(WriteFailure::Unknown(reason)) => {
                connection.abort();
                // It may be committed, and its visitor's next page must have it then.
                pool.shared.link.committed_unawaited();
                return Err(Error::OutcomeUnknown {
                    message: format!(
                        "{}: {reason}; it is not known whether the write was committed",
                        pool.shared.place
                    ),
                });
            }
        }
    }
}

fn lost(pool: &Pool, reason: &str) -> Error {
    Error::unavailable(format!("{}: {reason}", pool.shared.place))
}

/// After the commit: waits until the feed has brought the change, so that the next read finds it on
/// every path. Gives a position that the feed of another node must have passed to have brought it
/// too.
pub(super) async fn await_feed(shared: &DatabaseContext, awaited: Awaited) -> Position {
    let position = brought(shared, awaited).await;
    let position = position.unwrap_or_else(|| Position::new("", 0));
    shared.link.passed.with_write_number(position, &shared.node)
}

/// None if the feed has not brought it, so the position is unknown.
async fn brought(shared: &DatabaseContext, awaited: Awaited) -> Option<Position> {
    let link = &shared.link;
    let Some((token, arrival)) = awaited else {
        link.committed_unawaited();
        return None;
    };
    match timeout(shared.options.statement_timeout, arrival).await {
        // Not the place of this very change, but of all that was applied: of two writes that are
        // answered at once, the later answer has the higher position, whichever was committed
        // first, and a browser keeps the later one.
        Ok(Ok(position)) => Some(link.passed.since(position)),
        // The feed was lost.
        Ok(Err(_)) => {
            link.committed_unawaited();
            None
        }
        Err(_) => {
            link.pending.forget(token);
            link.new_epoch("a write's change has not come through the feed");
            None
        }
    }
}

async fn attempt(
    shared: &DatabaseContext,
    connection: &mut PooledConnection,
    steps: &[WriteStep],
) -> Result<(Vec<ResultRows>, Awaited), WriteFailure> {
    let begin = StatementRun::own(&connection.own.begin_write);
    own(
        within(shared, run(&connection.client, begin)).await?,
        shared,
    )?;
    let mut results: Vec<ResultRows> = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        match one(shared, connection, index, step, &results).await {
            Ok(rows) => results.push(rows),
            Err(outcome) => return Err(rolled_back(shared, connection, outcome).await),
        }
    }
    let awaited = commit(shared, connection).await?;
    Ok((results, awaited))
}

/// One step, with the values that earlier ones gave.
async fn one(
    shared: &DatabaseContext,
    connection: &mut PooledConnection,
    index: usize,
    step: &WriteStep,
    results: &[ResultRows],
) -> Result<ResultRows, WriteFailure> {
    let (query, expect) = (&step.query, step.expect);
    let values = bind::values(&step.bind, results).map_err(WriteFailure::Failed)?;
    let statement: &Statement = query.prepared().map_err(WriteFailure::Failed)?;
    connection.keep_up_with(shared.link.schema());
    let ready = match within(shared, statement.ready(connection)).await? {
        Ok(ready) => ready,
        Err(error) => return Err(unprepared(error, query, shared)),
    };
    check_values(query, &ready.shape.params, &values).map_err(WriteFailure::Failed)?;
    let columns = Arc::clone(&ready.shape.columns);
    let one = StatementRun {
        ready,
        params: &values,
        expect,
    };
    let names = &statement.sql.names;
    let done = within(shared, run(&connection.client, one)).await?;
    let rows = done.map_err(|failure| sort(failure, query.sql_arc(), names, shared))?;
    if expect == Expect::One && rows.is_empty() {
        return Err(WriteFailure::Failed(Error::NoRow { step: index }));
    }
    Ok(ResultRows { columns, rows })
}

/// Why a step could not be prepared.
fn unprepared(error: PrepareError, query: &Query, shared: &DatabaseContext) -> WriteFailure {
    match error {
        PrepareError::Refused(error) => WriteFailure::Failed(query.refused(&error)),
        PrepareError::Prevented(trouble) => {
            sort(RunError::Database(trouble), query.sql_arc(), &[], shared)
        }
        PrepareError::Lost(reason) => WriteFailure::Lost(reason),
    }
}

/// Commits, and gives what to wait for.
async fn commit(
    shared: &DatabaseContext,
    connection: &PooledConnection,
) -> Result<Awaited, WriteFailure> {
    match shared.options.feed {
        FeedKind::Logical => commit_with_token(shared, connection).await,
        FeedKind::Triggers => commit_with_id(shared, connection).await,
    }
}

/// Asks for the transaction's id and commits it, in one round trip. The feed is woken to look for
/// it.
async fn commit_with_id(
    shared: &DatabaseContext,
    connection: &PooledConnection,
) -> Result<Awaited, WriteFailure> {
    let own = &connection.own;
    let runs = vec![
        StatementRun::own(&own.token),
        StatementRun::own(&own.commit),
    ];
    let done = within(shared, together(&connection.client, runs)).await;
    let outcomes =
        done.map_err(|_| WriteFailure::Unknown("it does not answer in time".to_owned()))?;
    let (mut id, mut covered) = (None, None);
    for outcome in outcomes {
        let rows = outcome.map_err(|failed| uncommitted(failed, shared))?;
        if let Some([first, second]) = rows.first().map(Vec::as_slice) {
            (id, covered) = (number(first), number(second));
        }
    }
    let link = &shared.link;
    let Some(id) = id else {
        // Counterexample: *How far this node's feed is: a visitor comes with what he has written
        // through another, and would leave with less.*
        let source = link.passed.position().source().to_owned();
        let position = covered.map(|at| Position::new(source, at));
        return Ok(position.and_then(|position| link.pending.expect_nothing(position)));
    };
    let awaited = link.pending.expect_transaction(id);
    link.wake.call();
    Ok(awaited)
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

fn uncommitted(failed: RunError, shared: &DatabaseContext) -> WriteFailure {
    match sort(failed, &"commit".into(), &[], shared) {
        WriteFailure::Lost(reason) => WriteFailure::Unknown(reason),
        outcome => outcome,
    }
}

/// Leaves the token in the transaction and commits it, in one round trip.
async fn commit_with_token(
    shared: &DatabaseContext,
    connection: &PooledConnection,
) -> Result<Awaited, WriteFailure> {
    let awaited = shared.link.pending.expect();
    if awaited.is_some() {
        // A feed that batches changes stops batching while a caller waits for one.
        shared.link.wake.call();
    }
    let mut runs = Vec::with_capacity(2);
    let message = awaited.as_ref().map(|(token, _)| {
        [
            Value::from(PREFIX),
            Value::from(format!("{}:w:{token}", shared.node).as_str()),
        ]
    });
    if let Some(params) = &message {
        runs.push(StatementRun {
            ready: connection.own.token.clone(),
            params,
            expect: Expect::Exec,
        });
    }
    runs.push(StatementRun::own(&connection.own.commit));
    let done = within(shared, together(&connection.client, runs)).await;
    let failed = match done {
        Ok(outcomes) => outcomes.into_iter().find_map(Result::err),
        Err(_) => {
            forget(shared, awaited.as_ref());
            return Err(WriteFailure::Unknown(
                "it does not answer in time".to_owned(),
            ));
        }
    };
    let Some(failed) = failed else {
        return Ok(awaited);
    };
    forget(shared, awaited.as_ref());
    Err(uncommitted(failed, shared))
}

fn forget(shared: &DatabaseContext, awaited: Option<&(u64, Arrival)>) {
    if let Some((token, _)) = awaited {
        shared.link.pending.forget(*token);
    }
}

/// Ends the transaction that failed, if the connection still serves.
async fn rolled_back(
    shared: &DatabaseContext,
    connection: &PooledConnection,
    outcome: WriteFailure,
) -> WriteFailure {
    if matches!(
        outcome,
        WriteFailure::Lost(_) | WriteFailure::Abandoned(_) | WriteFailure::Unknown(_)
    ) {
        return outcome;
    }
    let rollback = run(
        &connection.client,
        StatementRun::own(&connection.own.rollback),
    );
    match (within(shared, rollback).await, outcome) {
        (Ok(Ok(_)), outcome) => outcome,
        // The transaction ends with the connection.
        (
            _,
            WriteFailure::Failed(error)
            | WriteFailure::Conflict(error)
            | WriteFailure::Outdated(error),
        ) => WriteFailure::Abandoned(error),
        (_, outcome) => outcome,
    }
}

/// Bounds one statement from our side.
async fn within<T>(
    shared: &DatabaseContext,
    work: impl Future<Output = T>,
) -> Result<T, WriteFailure> {
    let limit = shared.options.statement_timeout + GRACE;
    let done = timeout(limit, work).await;
    done.map_err(|_| WriteFailure::Abandoned(Error::Timeout { sql: None }))
}

/// The outcome of one of our own statements.
fn own<T>(done: Result<T, RunError>, shared: &DatabaseContext) -> Result<T, WriteFailure> {
    done.map_err(|failure| sort(failure, &"begin".into(), &[], shared))
}

fn sort(
    failure: RunError,
    sql: &Arc<str>,
    names: &[String],
    shared: &DatabaseContext,
) -> WriteFailure {
    match failure {
        RunError::TooLarge => WriteFailure::Abandoned(Error::TooLarge { limit: MAX_RESULT }),
        RunError::Unreadable(column) => {
            WriteFailure::Abandoned(unreadable(column, Arc::clone(sql)))
        }
        RunError::Database(trouble) => {
            if trouble.is_lost() {
                return WriteFailure::Lost(trouble.sentence());
            }
            let sorted = failure::sort(&trouble, sql, names, &shared.place);
            if trouble.is_conflict() {
                WriteFailure::Conflict(sorted)
            } else if trouble.is_outdated() {
                WriteFailure::Outdated(sorted)
            } else {
                WriteFailure::Failed(sorted)
            }
        }
    }
}
