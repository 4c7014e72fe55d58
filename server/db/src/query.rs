//! Prepared statements, their parameters and their results.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use millpond_store::Tag;

use crate::advice::Advice;
use crate::feed::Snapshot;
use crate::sql::{Dialect, place_of_name};
use crate::{Error, Position, ResultRows, SqlError, Value, ValueKind, WrittenSchema};

/// One statement that the database has accepted. Cheap to clone.
///
/// It stays valid when the schema changes: its dependencies are determined again for the schema
/// that each read sees.
#[derive(Clone)]
pub struct Query {
    inner: Arc<QueryInner>,
}

struct QueryInner {
    sql: Arc<str>,
    dialect: Dialect,
    prepared: Box<dyn PreparedQuery>,
}

/// Statement as a database has prepared it.
pub(crate) trait PreparedQuery: Any + Send + Sync {
    /// Returns what it is, for the schema that was seen last.
    fn analysis(&self) -> Arc<dyn QueryAnalysis>;
}

/// Analysis of a statement, for one state of the schema. Its methods are those of [`Query`].
pub(crate) trait QueryAnalysis {
    fn facts(&self) -> &QueryFacts;
    fn sources(&self) -> Vec<(String, Tag)>;
    fn describe(&self) -> Vec<String>;
    fn ends(&self) -> Vec<String>;
    fn advice(&self) -> Vec<Advice>;
}

/// Facts that both databases have of a statement.
#[derive(Debug, Default)]
pub(crate) struct QueryFacts {
    pub(crate) params: Arc<[Param]>,
    pub(crate) columns: Arc<[Arc<str>]>,
    /// The places of the columns whose texts are JSON documents.
    pub(crate) documents: Box<[usize]>,
    /// It changes nothing.
    pub(crate) readonly: bool,
    /// The tables and views that it names.
    pub(crate) tables: Vec<String>,
    /// Of a statement that writes.
    pub(crate) written: WrittenSchema,
    /// Nothing but the clock keeps its results from being kept.
    pub(crate) reads_clock_alone: bool,
}

/// A parameter of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name without the `:` in front.
    pub name: String,
    /// The kind of the columns that it is compared with or stored in, if there is exactly one kind.
    pub kind: Option<ValueKind>,
}

/// Returns the name of a parameter without its leading `:`, `@`, `$` or `?`.
pub(crate) fn strip_sigil(name: &str) -> &str {
    name.strip_prefix([':', '@', '$', '?']).unwrap_or(name)
}

impl Query {
    pub(crate) fn new(sql: &str, dialect: Dialect, prepared: impl PreparedQuery) -> Self {
        Self {
            inner: Arc::new(QueryInner {
                sql: sql.into(),
                dialect,
                prepared: Box::new(prepared),
            }),
        }
    }

    /// Returns what the database whose statements are of this type has made of it.
    ///
    /// # Errors
    /// If it is a query of another database.
    pub(crate) fn prepared<P: PreparedQuery>(&self) -> Result<&P, Error> {
        let prepared: &dyn Any = &*self.inner.prepared;
        let other = || Error::usage(format!("a query of another database: {}", self.sql()));
        prepared.downcast_ref().ok_or_else(other)
    }

    /// Returns the error of a query that the database refuses.
    pub(crate) fn refused(&self, error: &SqlError) -> Error {
        Error::Sql {
            message: error.to_string(),
            sql: Arc::clone(&self.inner.sql),
        }
    }

    /// Checks that a read may run it: `facts` are those that the read sees.
    pub(crate) fn check_reads(&self, facts: &QueryFacts) -> Result<(), Error> {
        match facts.readonly {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "a read cannot change anything, as this does: {}",
                self.sql()
            ))),
        }
    }

    fn analysis(&self) -> Arc<dyn QueryAnalysis> {
        self.inner.prepared.analysis()
    }

    pub(crate) fn sql_arc(&self) -> &Arc<str> {
        &self.inner.sql
    }

    /// The text of the statement.
    #[must_use]
    pub fn sql(&self) -> &str {
        &self.inner.sql
    }

    /// True if the text names a column, a table or a function.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        place_of_name(self.sql(), self.inner.dialect, name).is_some()
    }

    /// The parameters, in the order in which [`Call::params`] and [`WriteStep::bind`] give their
    /// values.
    #[must_use]
    pub fn params(&self) -> Arc<[Param]> {
        Arc::clone(&self.analysis().facts().params)
    }

    /// The names of the result columns.
    #[must_use]
    pub fn columns(&self) -> Arc<[Arc<str>]> {
        Arc::clone(&self.analysis().facts().columns)
    }

    /// The names of the columns that are JSON documents on SQLite, by the statement's text. None on
    /// PostgreSQL, where the type of a column says so.
    #[must_use]
    pub fn documents(&self) -> Vec<Arc<str>> {
        let analysis = self.analysis();
        let facts = analysis.facts();
        let places = facts.documents.iter();
        let named = places.filter_map(|place| facts.columns.get(*place).cloned());
        named.collect()
    }

    /// True if the statement changes nothing, so that [`crate::Database::read`] accepts it.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        self.analysis().facts().readonly
    }

    /// Returns the schema of the tables that the statement writes.
    #[must_use]
    pub fn written_schema(&self) -> WrittenSchema {
        self.analysis().facts().written.clone()
    }

    /// The tables, views and virtual tables that the statement reads or writes.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.analysis().facts().tables.clone()
    }

    /// The tables that the result depends on, each with the tag that every change to that table
    /// touches. With them a change can be reported by table names.
    #[must_use]
    pub fn sources(&self) -> Vec<(String, Tag)> {
        self.analysis().sources()
    }

    /// One readable line for each dependency of the result.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        self.analysis().describe()
    }

    /// Lists the changes that end a result, in few words for the owner: `any note`, `note with id =
    /// :id`, or `author by note.author_id`, which is the author of a note that is named too.
    #[must_use]
    pub fn ends(&self) -> Vec<String> {
        self.analysis().ends()
    }

    /// True if a result is right until the clock shows another time, as far as the text tells: no
    /// other reason keeps it from being kept.
    #[must_use]
    pub fn may_end_by_clock(&self) -> bool {
        self.analysis().facts().reads_clock_alone
    }

    /// Lists changes that would reduce the dependencies or make the results cacheable, each with
    /// its cost.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        self.analysis().advice()
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

/// A thing that is kept as long as a read runs, also when its caller has gone.
pub type HeldByRead = Arc<dyn Any + Send + Sync>;

/// Terms of a read.
#[derive(Clone, Debug, Default)]
pub struct ReadTerms {
    /// True if several visitors may share the results: with PostgreSQL, a replica may answer if it
    /// shows everything that the feed has delivered
    /// ([`PostgresOptions::replicas`](crate::PostgresOptions::replicas)). Not for a visitor who
    /// waits for a [position](crate::Database::pass) that the feed has not passed.
    pub is_spread: bool,
    /// Dropped when the read is over.
    pub held: Option<HeldByRead>,
}

/// The result of a read.
#[derive(Clone, Debug)]
pub struct ReadResult {
    /// For each call, its rows.
    pub results: Vec<ResultRows>,
    /// For each call, the dependencies of its rows.
    pub deps: Vec<Deps>,
    /// The snapshot that all the calls saw.
    pub snapshot: Snapshot,
    /// Once the feed has passed this position, the results may be combined with other results.
    pub position: u64,
    /// Why no result of this read may be kept, for any query: the feed does not cover what the read
    /// saw (coherence.md, rule 7). A change may be missing that the feed never delivers, so a kept
    /// result with the change could be combined with one without it.
    pub uncovered: Option<&'static str>,
    /// The time that the statements took, without the wait for a connection.
    pub elapsed: Duration,
}

/// The dependencies of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deps {
    /// A change that touches any of these tags may change the result.
    pub tags: Vec<Tag>,
    /// Why the query's result must not be kept: the feed would not report its end. The owner may
    /// override this by setting an age.
    pub uncacheable: Option<Arc<str>>,
    /// True if the clock alone is why, so that the result is right until it shows another time.
    pub reads_clock_alone: bool,
}

/// One statement of a write.
#[derive(Clone, Debug)]
pub struct WriteStep {
    /// The statement.
    pub query: Query,
    /// A value for each of [`Query::params`].
    pub bind: Vec<Bind>,
    /// How many rows the statement must return.
    pub expect: Expect,
}

/// The source of a step's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Bind {
    /// A value from the caller.
    Value(Value),
    /// A column in the first row of an earlier step; null if the step has no row.
    Column {
        /// The index of the step.
        step: usize,
        /// The name of the column.
        column: String,
    },
}

/// How many rows a step must return, and how many of them are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// At least one row, of which the first is kept. Without a row, the transaction is rolled back.
    One,
    /// The first row, if there is one.
    Optional,
    /// All.
    Many,
    /// None are kept.
    Exec,
}

impl Expect {
    /// Returns how many rows are kept.
    pub(crate) const fn kept(self) -> usize {
        match self {
            Self::One | Self::Optional => 1,
            Self::Many => usize::MAX,
            Self::Exec => 0,
        }
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteResult {
    /// For each step, its rows.
    pub results: Vec<ResultRows>,
    /// The position of the write in the database's history, for the other nodes.
    pub position: Position,
}
