//! One statement of the owner: its text for PostgreSQL, and what it depends on in the present
//! catalog.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use tokio::time::timeout;

use super::analysis::{Analysis, analyse};
use super::connect::PooledConnection;
use super::context::DatabaseContext;
use super::failure::chain;
use super::pool::Pool;
use super::prepare::{PrepareError, PreparedStatement, prepare as prepare_on};
use super::shape::Shape;
use super::sql::Rewritten;
use crate::query::{PreparedQuery, QueryAnalysis};
use crate::{Error, SqlError};

/// Knowledge of a statement that PostgreSQL has accepted.
pub(crate) struct Statement {
    pub(super) sql: Rewritten,
    /// The text once more, as the connections' key.
    text: Arc<str>,
    /// The tables of the owner's `-- depends:` line, if there is one.
    depends: Option<Vec<String>>,
    found: Mutex<StatementAnalysis>,
}

/// Analysis of a statement, for one value of [`super::link::FeedLink::schema`].
#[derive(Clone)]
pub(super) struct StatementAnalysis {
    pub(super) schema: u64,
    pub(super) analysis: Arc<Analysis>,
    /// How it is read.
    pub(super) shape: Arc<Shape>,
}

impl PreparedQuery for Statement {
    fn analysis(&self) -> Arc<dyn QueryAnalysis> {
        self.analysis()
    }
}

impl Statement {
    pub(crate) fn analysis(&self) -> Arc<Analysis> {
        Arc::clone(&self.found.lock().analysis)
    }

    /// Prepares it for a write on a connection, unless it is prepared there already.
    pub(super) async fn ready(
        &self,
        connection: &mut PooledConnection,
    ) -> Result<Rc<PreparedStatement>, PrepareError> {
        if let Some(ready) = connection.known(&self.text) {
            return Ok(ready);
        }
        let ready = Rc::new(prepare_on(&connection.client, &self.sql).await?);
        connection.remember(Arc::clone(&self.text), Rc::clone(&ready));
        Ok(ready)
    }

    /// Returns the analysis for the catalog of the number `schema`, if that is the last one.
    pub(super) fn at(&self, schema: u64) -> Option<StatementAnalysis> {
        let found = self.found.lock();
        (found.schema == schema).then(|| found.clone())
    }

    /// Returns the analysis in the present catalog; made anew if the catalog has changed.
    pub(super) async fn current(
        &self,
        shared: &DatabaseContext,
        connection: &mut PooledConnection,
    ) -> Result<StatementAnalysis, PrepareError> {
        let schema = shared.link.schema();
        // Another connection may have found out what the statement is now; this one may still have
        // it as it was. Counterexample: Two columns swap their names: where results are cast, the
        // server runs on what was prepared.
        connection.keep_up_with(schema);
        let known = self.found.lock().clone();
        if known.schema == schema {
            return Ok(known);
        }
        let depends = self.depends.as_deref();
        let found = find_out(shared, connection, &self.sql, &self.text, depends).await?;
        *self.found.lock() = found.clone();
        Ok(found)
    }

    /// Returns the analysis with the present columns: the server says that they have changed, and
    /// without a feed there is no other notification.
    pub(super) async fn renewed(
        &self,
        shared: &DatabaseContext,
        connection: &mut PooledConnection,
    ) -> Result<StatementAnalysis, PrepareError> {
        let mut found = self.current(shared, connection).await?;
        let ready = prepare_on(&connection.client, &self.sql).await?;
        found.shape = ready.shape;
        let mut known = self.found.lock();
        if known.schema == found.schema {
            // As where it is found out anew. Counterexample: *A view's two columns change places,
            // the server says so before the feed does, and a replica that has not replayed it gives
            // the one under the name of the other.*
            shared.link.replay.hold();
            *known = found.clone();
        }
        Ok(found)
    }
}

/// Classifies an error that may have been the end of the connection.
fn unprepared(error: SqlError, connection: &PooledConnection) -> PrepareError {
    if connection.is_dead() {
        PrepareError::Lost(error.to_string())
    } else {
        PrepareError::Refused(error)
    }
}

/// Statements of our own that it takes to prepare one, at most: each has the time of one.
const STATEMENTS: u32 = 8;

/// Prepares `sql` for [`crate::Database::prepare`].
pub(super) async fn prepare(
    pool: &Pool,
    sql: Rewritten,
    depends: Option<Vec<String>>,
) -> Result<Statement, SqlError> {
    let shared = &pool.shared;
    let limit = shared.options.statement_timeout.saturating_mul(STATEMENTS);
    let done = timeout(limit, prepare_in_time(pool, sql, depends)).await;
    let late = || format!("{} does not answer within {limit:?}", shared.place);
    done.map_err(|_| SqlError::new(late())).flatten()
}

async fn prepare_in_time(
    pool: &Pool,
    sql: Rewritten,
    depends: Option<Vec<String>>,
) -> Result<Statement, SqlError> {
    let text: Arc<str> = sql.text.as_str().into();
    let mut connection = pool.get().await.map_err(SqlError::new)?;
    if pool.shared.rehearsing.load(Ordering::SeqCst) {
        return rehearsed(pool, connection, sql, text, depends).await;
    }
    let tables = depends.as_deref();
    let mut found = find_out(&pool.shared, &mut connection, &sql, &text, tables).await;
    if let Err(PrepareError::Lost(_)) = found {
        connection = pool.open().await.map_err(SqlError::new)?;
        found = find_out(&pool.shared, &mut connection, &sql, &text, tables).await;
    }
    let found = match found {
        Ok(found) => Ok(found),
        Err(PrepareError::Refused(error)) => Err(error),
        Err(PrepareError::Prevented(trouble)) => Err(SqlError::new(trouble.sentence())),
        Err(PrepareError::Lost(reason)) => {
            let reason = format!("{}: {reason}", pool.shared.place);
            return Err(SqlError::new(Error::unavailable(reason)));
        }
    };
    pool.put(connection);
    Ok(Statement {
        sql,
        text,
        depends,
        found: Mutex::new(found?),
    })
}

/// Prepares `sql` in the transaction of a rehearsal, which a statement that is refused must not
/// end.
async fn rehearsed(
    pool: &Pool,
    mut connection: PooledConnection,
    sql: Rewritten,
    text: Arc<str>,
    depends: Option<Vec<String>>,
) -> Result<Statement, SqlError> {
    let mark = connection.client.batch_execute("savepoint millpond").await;
    mark.map_err(|error| SqlError::new(chain(&error)))?;
    let tables = depends.as_deref();
    let found = find_out(&pool.shared, &mut connection, &sql, &text, tables).await;
    let back = "rollback to savepoint millpond";
    let back = connection.client.batch_execute(back).await;
    pool.put(connection);
    match (found, back) {
        (Ok(found), Ok(())) => Ok(Statement {
            sql,
            text,
            depends,
            found: Mutex::new(found),
        }),
        (Err(PrepareError::Refused(error)), _) => Err(error),
        (Err(PrepareError::Prevented(trouble)), _) => Err(SqlError::new(trouble.sentence())),
        (Err(PrepareError::Lost(reason)), _) => Err(SqlError::new(reason)),
        (Ok(_), Err(error)) => Err(SqlError::new(chain(&error))),
    }
}

/// Prepares the statement, asks the database and the catalog what it is, and registers the rows
/// that it selects and the columns that it reads.
async fn find_out(
    shared: &DatabaseContext,
    connection: &mut PooledConnection,
    sql: &Rewritten,
    text: &Arc<str>,
    depends: Option<&[String]>,
) -> Result<StatementAnalysis, PrepareError> {
    // Before the catalog is looked at: what changes meanwhile moves it again.
    let schema = shared.link.schema();
    connection.keep_up_with(schema);
    let catalog = shared.catalog(schema, &connection.client).await;
    let catalog = catalog.map_err(|error| unprepared(error, connection))?;
    let (ready, is_known) = match connection.known(text) {
        Some(ready) => (ready, true),
        None => (Rc::new(prepare_on(&connection.client, sql).await?), false),
    };
    let mut analysis = analyse(
        &connection.client,
        &catalog,
        &sql.text,
        &sql.names,
        depends,
        &ready.described,
    )
    .await
    .map_err(|error| unprepared(error, connection))?;
    analysis.limit_reads(|family, reads| shared.link.interest.takes(family, reads));
    shared.link.take_interest(analysis.wanted());
    // What it was found to be may be newer than what a replica shows.
    shared.link.replay.hold();
    let shape = Arc::clone(&ready.shape);
    // The driver runs writes only.
    if !is_known && !analysis.facts.readonly {
        connection.remember(Arc::clone(text), ready);
    }
    Ok(StatementAnalysis {
        schema,
        analysis: Arc::new(analysis),
        shape,
    })
}
