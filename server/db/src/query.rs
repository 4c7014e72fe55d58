//! Prepared statements, and what goes into and comes out of their execution.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use millpond_store::Tag;

use crate::advice::Advice;
use crate::feed::Snapshot;
use crate::postgres::statement::Statement as PostgresStatement;
use crate::sqlite::statement::Statement;
use crate::{Kind, Position, Rows, Value};

/// One statement that the database has accepted. Cheap to clone.
///
/// It stays good when the schema changes: what it depends on is found anew for the schema that each read sees.
#[derive(Clone)]
pub struct Query {
    inner: Arc<Inner>,
}

struct Inner {
    sql: Arc<str>,
    prepared: Prepared,
}

/// What each database keeps of a statement.
pub(crate) enum Prepared {
    Sqlite(Statement),
    Postgres(PostgresStatement),
}

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name without the `:` in front.
    pub name: String,
    /// What it is compared with or stored in, where that is one kind of value.
    pub kind: Option<Kind>,
}

impl Query {
    pub(crate) fn new(sql: &str, prepared: Prepared) -> Self {
        Self {
            inner: Arc::new(Inner {
                sql: sql.into(),
                prepared,
            }),
        }
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.inner.prepared
    }

    pub(crate) fn sql_arc(&self) -> &Arc<str> {
        &self.inner.sql
    }

    /// The statement as it was written.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.inner.sql
    }

    /// Its parameters, in the order in which [`Call::params`] and [`Step::bind`] give their values.
    #[must_use]
    pub fn params(&self) -> Arc<[Param]> {
        match self.prepared() {
            Prepared::Sqlite(statement) => Arc::clone(&statement.analysis().params),
            Prepared::Postgres(statement) => Arc::clone(&statement.analysis().params),
        }
    }

    /// The names of the columns that it gives.
    #[must_use]
    pub fn columns(&self) -> Arc<[Arc<str>]> {
        match self.prepared() {
            Prepared::Sqlite(statement) => Arc::clone(&statement.analysis().columns),
            Prepared::Postgres(statement) => Arc::clone(&statement.analysis().columns),
        }
    }

    /// Whether it changes nothing, so that [`crate::Database::read`] takes it.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        match self.prepared() {
            Prepared::Sqlite(statement) => statement.analysis().readonly,
            Prepared::Postgres(statement) => statement.analysis().readonly,
        }
    }

    /// The tables, views and virtual tables that it reads or writes.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        match self.prepared() {
            Prepared::Sqlite(statement) => statement.analysis().tables.clone(),
            Prepared::Postgres(statement) => statement.analysis().tables.clone(),
        }
    }

    /// The tables that its result depends on, each with what every change to that table touches: so a change can be told by names.
    #[must_use]
    pub fn sources(&self) -> Vec<(String, Tag)> {
        match self.prepared() {
            Prepared::Sqlite(statement) => statement.analysis().sources().collect(),
            Prepared::Postgres(statement) => statement.analysis().sources().collect(),
        }
    }

    /// One readable line for each thing that its result depends on.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        match self.prepared() {
            Prepared::Sqlite(statement) => statement.analysis().describe(),
            Prepared::Postgres(statement) => statement.analysis().describe(),
        }
    }
}

impl Query {
    /// What would make it depend on less, or have its results kept, and what that costs.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        match self.prepared() {
            Prepared::Sqlite(statement) => statement.analysis().advice(),
            Prepared::Postgres(statement) => statement.analysis().advice(),
        }
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Query").field(&self.inner.sql).finish()
    }
}

/// One query of a read.
#[derive(Clone, Debug)]
pub struct Call {
    /// The statement.
    pub query: Query,
    /// A value for each of [`Query::params`].
    pub params: Vec<Value>,
}

/// What a read gives.
#[derive(Clone, Debug)]
pub struct Read {
    /// For each call, its rows.
    pub results: Vec<Rows>,
    /// For each call, what its rows depend on.
    pub deps: Vec<Deps>,
    /// What all the calls saw.
    pub snapshot: Snapshot,
    /// Once the feed has passed this position, the results may be combined with others.
    pub position: u64,
    /// Why nothing of this may be kept, whatever the queries are, if so: the feed does not cover what was seen (COHERENCE, rule 7). A change may
    /// be missing that is never told, so a page that has it and one that has not would both be put together from kept results.
    pub uncovered: Option<&'static str>,
    /// How long the statements took, without the wait for a connection.
    pub elapsed: Duration,
}

/// What a result depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deps {
    /// A change that touches any of these may change the result.
    pub tags: Vec<Tag>,
    /// Why the query's result must not be kept, if so: nothing would tell of its end. The owner may waive that with an age of his own.
    pub uncacheable: Option<Arc<str>>,
}

/// One statement of a write.
#[derive(Clone, Debug)]
pub struct Step {
    /// The statement.
    pub query: Query,
    /// A value for each of [`Query::params`].
    pub bind: Vec<Bind>,
    /// How many rows it must give.
    pub expect: Expect,
}

/// Where a value of a step comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Bind {
    /// The caller.
    Value(Value),
    /// The first row of an earlier step.
    Column {
        /// The index of the step.
        step: usize,
        /// The name of the column.
        column: String,
    },
}

/// How many rows a step must give, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// At least one, of which the first is kept; without one, everything is rolled back.
    One,
    /// The first, if there is one.
    Optional,
    /// All.
    Many,
    /// None are kept.
    Exec,
}

/// What a write gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// For each step, its rows.
    pub results: Vec<Rows>,
    /// A place in the database's history that has the write before it, for the other nodes.
    pub position: Position,
}
