//! Runs statements through the driver: one, or several in one round trip. Reads have a way of their own ([`super::wire`]).

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use futures_core::Stream as _;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row, RowStream};

use super::prepare::Ready;
use super::said::Trouble;
use super::shape::Shape;
use super::types::{Bound, Decoder};
use crate::{Expect, Value};

/// Bytes that one result may have.
pub(super) const MAX_RESULT: usize = 64 << 20;

/// What a row costs besides its text and blobs.
pub(super) const PER_VALUE: usize = size_of::<Value>();

/// Why a statement gave no rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// What the server or the connection says.
    Database(Trouble),
    /// The result is larger than [`MAX_RESULT`]; the rest of it is still on its way.
    TooLarge,
    /// The column with this index has bytes that are not of its type.
    Unreadable(usize),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

/// One statement with its values.
pub(super) struct Run<'a> {
    pub(super) ready: Rc<Ready>,
    pub(super) params: &'a [Value],
    pub(super) expect: Expect,
}

impl<'a> Run<'a> {
    /// One of Millpond's own statements, without parameters.
    pub(super) fn own(ready: &Rc<Ready>) -> Self {
        Self {
            ready: Rc::clone(ready),
            params: &[],
            expect: Expect::Many,
        }
    }
}

type Outcome = Result<Vec<Vec<Value>>, Failure>;

/// Runs a statement to its end; keeps the rows that are expected.
pub(super) async fn run(client: &Client, run: Run<'_>) -> Outcome {
    let Run {
        ready,
        params,
        expect,
    } = run;
    let bound = params.iter().map(Bound);
    let mut rows = pin!(client.query_raw(&ready.statement, bound).await?);
    let keep = match expect {
        Expect::One | Expect::Optional => 1,
        Expect::Many => usize::MAX,
        Expect::Exec => 0,
    };
    let mut kept = Vec::new();
    let mut bytes = 0;
    while let Some(row) = next(&mut rows).await {
        let row = row?;
        if kept.len() >= keep {
            continue;
        }
        let values = values(&row, &ready.shape)?;
        bytes += values
            .iter()
            .map(|value| PER_VALUE + value.heap_size())
            .sum::<usize>();
        if bytes > MAX_RESULT {
            return Err(Failure::TooLarge);
        }
        kept.push(values);
    }
    Ok(kept)
}

async fn next(rows: &mut Pin<&mut RowStream>) -> Option<Result<Row, tokio_postgres::Error>> {
    poll_fn(|cx| rows.as_mut().poll_next(cx)).await
}

/// Runs all of them in one round trip, and gives what each gave, up to one whose result is not read to its end.
///
/// The driver writes what has been asked for when this task waits, so all leave together if all are asked first.
pub(super) async fn together(client: &Client, runs: Vec<Run<'_>>) -> Vec<Outcome> {
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
                        let unread = !matches!(done, Ok(_) | Err(Failure::Database(_)));
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

fn values(row: &Row, shape: &Shape) -> Result<Vec<Value>, Failure> {
    let columns = shape.decoders.iter().enumerate();
    columns
        .map(|(index, decoder)| value(row, index, decoder))
        .collect()
}

fn value(row: &Row, index: usize, decoder: &Decoder) -> Result<Value, Failure> {
    match row.try_get::<_, Raw>(index)?.0 {
        None => Ok(Value::Null),
        Some(bytes) => decoder.read(bytes).ok_or(Failure::Unreadable(index)),
    }
}

/// The bytes of a column, whatever its type.
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
