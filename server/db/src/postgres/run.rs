//! Runs statements through the driver: one, or several in one round trip. Reads have a way of their
//! own ([`super::wire`]).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use futures_core::Stream as _;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row, RowStream};

use super::prepare::PreparedStatement;
use super::server_error::DatabaseError;
use super::shape::Shape;
use super::types::{Bound, Decoder};
use crate::value::{MAX_RESULT, size_of_row};
use crate::{Expect, Value};

/// Why a statement gave no rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RunError {
    /// Error of the server or of the connection.
    Database(DatabaseError),
    /// The result is larger than [`MAX_RESULT`]; the rest of it is still on its way.
    TooLarge,
    /// The column with this index has bytes that are not of its type.
    Unreadable(usize),
}

impl From<tokio_postgres::Error> for RunError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// One statement with its values.
pub(super) struct StatementRun<'a> {
    pub(super) ready: Rc<PreparedStatement>,
    pub(super) params: &'a [Value],
    pub(super) expect: Expect,
}

impl<'a> StatementRun<'a> {
    /// One of Millpond's own statements, without parameters.
    pub(super) fn own(ready: &Rc<PreparedStatement>) -> Self {
        Self {
            ready: Rc::clone(ready),
            params: &[],
            expect: Expect::Many,
        }
    }
}

type RunResult = Result<Vec<Vec<Value>>, RunError>;

/// Runs a statement to its end; keeps the rows that are expected.
pub(super) async fn run(client: &Client, run: StatementRun<'_>) -> RunResult {
    let bound = run.params.iter().map(Bound);
    let mut rows = pin!(client.query_raw(&run.ready.statement, bound).await?);
    let keep = run.expect.kept();
    let mut kept = Vec::new();
    let mut bytes = 0;
    while let Some(row) = next(&mut rows).await {
        let row = row?;
        if kept.len() >= keep {
            continue;
        }
        let values = values(&row, &run.ready.shape)?;
        bytes += size_of_row(&values);
        if bytes > MAX_RESULT {
            return Err(RunError::TooLarge);
        }
        kept.push(values);
    }
    Ok(kept)
}

async fn next(rows: &mut Pin<&mut RowStream>) -> Option<Result<Row, tokio_postgres::Error>> {
    poll_fn(|cx| rows.as_mut().poll_next(cx)).await
}

/// Runs all of them in one round trip, and gives what each gave, up to one whose result is not read
/// to its end.
///
/// The driver writes what has been asked for when this task waits, so all leave together if all are
/// asked first.
pub(super) async fn together(client: &Client, runs: Vec<StatementRun<'_>>) -> Vec<RunResult> {
    let mut running: Vec<_> = runs
        .into_iter()
        .map(|one| (Box::pin(run(client, one)), None))
        .collect();
    poll_fn(|cx| {
        let mut pending = false;
        for (one, outcome) in &mut running {
            if outcome.is_none() {
                match one.as_mut().poll(cx) {
                    Poll::Ready(done) => {
                        let unread = !matches!(done, Ok(_) | Err(RunError::Database(_)));
                        *outcome = Some(done);
                        if unread {
                            return Poll::Ready(());
                        }
                    }
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}

fn values(row: &Row, shape: &Shape) -> Result<Vec<Value>, RunError> {
    let columns = shape.decoders.iter().enumerate();
    columns
        .map(|(index, decoder)| value(row, index, decoder))
        .collect()
}

fn value(row: &Row, index: usize, decoder: &Decoder) -> Result<Value, RunError> {
    match row.try_get::<_, Raw>(index)?.0 {
        None => Ok(Value::Null),
        Some(bytes) => decoder.read(bytes).ok_or(RunError::Unreadable(index)),
    }
}

/// The bytes of a column of any type.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(
        _: &Type,
        bytes: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Some(bytes)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
