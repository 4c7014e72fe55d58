//! A database whose rows are on stored pages: SQLite or PostgreSQL.

mod bind;
mod error;
mod outage;
mod query;
mod reads;
mod requirements;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use millpond_db::{
    Bind, Call, Database, Expect, FeedKind, Migration, PostgresOptions, ReadResult, ResultRows,
    SqliteOptions, WriteResult, WriteStep, block_on,
};

use crate::store::{Store, StoreSettings};
pub use bind::IntoSql;
pub use error::QueryError;
use outage::OutageLog;
pub use query::{BoundQuery, SqlQuery};
pub(crate) use reads::PageReads;
pub use rows::{FromSql, SqlRow, SqlRows};

/// An SQLite file or a PostgreSQL database. Its [store](SqlDatabase::store) keeps pages until a row
/// changes that they show, by this program, by the database's shell, or by any other program. Cheap
/// to clone; clones are one database.
///
/// What a page depends on follows from its queries, by the same rules as in `millpond serve`.
///
/// ```
/// use millpond::{Failure, Page, Request, Routes, SqlDatabase, blocking, stored};
///
/// # let dir = tempfile::tempdir()?;
/// # let url = format!("sqlite:{}", dir.path().join("book.db").display());
/// let database = SqlDatabase::open(&url)?; // "sqlite:book.db", "postgres://localhost/book"
/// database.migrate([("0001", "create table address (id integer primary key, name text)")])?;
/// let by_id = database.prepare("select name from address where id = :id")?;
/// let rename = database.prepare("update address set name = :name where id = :id")?;
///
/// let mut routes = Routes::new();
/// let page = move |page: &mut Page, id: i64| {
///     let rows = page.query(by_id.with("id", id))?;
///     let row = rows.first().ok_or_else(Failure::not_found)?;
///     Ok::<String, Failure>(row.get("name")?)
/// };
/// routes.get("/addresses/{id}", stored(database.store(), page));
/// let writer = database.clone();
/// routes.put("/addresses/{id}", blocking(move |request: &Request, id: i64| {
///     writer.write([rename.with("id", id).with("name", request.text()?)])?;
///     Ok::<(), Failure>(())
/// }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SqlDatabase {
    inner: Arc<SqlInner>,
}

struct SqlInner {
    database: Database,
    store: Store,
    outages: OutageLog,
}

impl SqlInner {
    /// Reads. Blocks.
    fn read(&self, calls: Vec<Call>) -> Result<ReadResult, QueryError> {
        let read = block_on(self.database.read(calls));
        self.outages.note(read.as_ref().err());
        Ok(read?)
    }

    /// Writes. Blocks.
    fn write(&self, steps: Vec<WriteStep>) -> Result<WriteResult, QueryError> {
        let written = block_on(self.database.write(steps));
        self.outages.note(written.as_ref().err());
        Ok(written?)
    }
}

impl Drop for SqlInner {
    fn drop(&mut self) {
        self.database.stop();
    }
}

/// Settings of a [`SqlDatabase`].
#[derive(Clone, Debug)]
pub struct SqlSettings {
    /// Connections: of SQLite those that read, of PostgreSQL all that pages and writes use. Default
    /// 4, or 8.
    pub connections: Option<usize>,
    /// Reads that may wait for a connection; one more is a 503. Default 1,024.
    pub queue: usize,
    /// How long a statement may run. Default 5 s.
    pub statement_timeout: Duration,
    /// If the database cannot be heard for longer, pages are not given from memory. Default 1 s.
    /// While all is well, a change by another program shows within a tenth of a second.
    pub max_staleness: Duration,
    /// How the changes of other programs are heard of: of PostgreSQL by logical replication or by
    /// triggers, of SQLite by triggers, without which such a change ends all pages.
    /// [`repair`](SqlDatabase::repair) makes the triggers. See `database.feed` in the reference of
    /// the configuration.
    pub feed: FeedKind,
    /// Settings of the store of pages. Its `max_staleness` is for other sources than the database.
    pub store: StoreSettings,
}

impl Default for SqlSettings {
    fn default() -> Self {
        Self {
            connections: None,
            queue: 1_024,
            statement_timeout: Duration::from_secs(5),
            max_staleness: Duration::from_secs(1),
            feed: FeedKind::default(),
            store: StoreSettings::default(),
        }
    }
}

impl SqlDatabase {
    /// Opens the database of a URL such as `sqlite:book.db` or `postgres://user@host/book`, with
    /// the default settings. An SQLite file is made if there is none.
    ///
    /// # Errors
    /// A URL of neither kind; a file that is no database; a server that cannot be reached.
    pub fn open(url: &str) -> Result<Self, QueryError> {
        Self::open_with(url, &SqlSettings::default())
    }

    /// Opens the database of a URL with other settings.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_with(url: &str, settings: &SqlSettings) -> Result<Self, QueryError> {
        let database = match url.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Database::open(sqlite(path, settings))?,
            Some(("postgres" | "postgresql", _)) => Database::connect(postgres(url, settings))?,
            // The text may have a password in it.
            _ => {
                let kinds = "a database is sqlite:PATH or postgres://USER@HOST/NAME";
                return Err(QueryError::usage(kinds));
            }
        };
        let store = Store::of(&settings.store, true);
        database.start(store.sink(settings.max_staleness));
        let outages = OutageLog::default();
        let inner = Arc::new(SqlInner {
            database,
            store,
            outages,
        });
        let database = Self { inner };
        database.check_at_start(settings.feed);
        Ok(database)
    }

    /// The store for pages that show its rows. [`Store::changed`] works as in any other store, for
    /// what is not in the database.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Runs the scripts that were not run in this database before, in their order, each in a
    /// transaction: names and statements. Returns the names of those that were run.
    ///
    /// # Errors
    /// A statement that the database refuses, with its place; a script that was changed after it
    /// was run.
    pub fn migrate<N: Into<String>, S: Into<String>>(
        &self,
        scripts: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Vec<String>, QueryError> {
        let scripts = scripts.into_iter().map(|(name, sql)| Migration {
            name: name.into(),
            sql: sql.into(),
        });
        let scripts: Vec<_> = scripts.collect();
        Ok(self.inner.database.migrate(&scripts)?)
    }

    /// Prepares one statement, with parameters such as `:id`. To be done once, when the program
    /// starts: a mistake in a statement is found here.
    ///
    /// # Errors
    /// What the database says of the statement.
    pub fn prepare(&self, sql: &str) -> Result<SqlQuery, QueryError> {
        let prepared = self.inner.database.prepare(sql);
        let prepared = prepared.map_err(|error| QueryError::refused(&error, sql))?;
        Ok(SqlQuery::new(self.clone(), prepared))
    }

    /// Reads, all in one snapshot. Blocks. A page of the store uses [`Page::query`](crate::Page),
    /// which notes what the page depends on.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn read<const N: usize>(
        &self,
        queries: [BoundQuery; N],
    ) -> Result<[SqlRows; N], QueryError> {
        let calls = queries.into_iter().map(|query| query.call(self));
        let calls = calls.collect::<Result<_, _>>()?;
        Ok(rows::last(self.inner.read(calls)?.results))
    }

    /// Writes, all in one transaction, and returns the rows that the statements return. Blocks.
    /// When it has returned, no page is given any more that shows what was before.
    /// [`write_all`](Self::write_all) takes any number of statements.
    ///
    /// On PostgreSQL the transaction is READ COMMITTED: each statement sees what others have
    /// committed before it began. One that a deadlock ends is run again, up to three times in all.
    /// On SQLite transactions that write run one after the other, so none sees a change of another
    /// midway.
    ///
    /// # Errors
    /// See [`QueryError`]; nothing is changed then, unless the message says that this is not known.
    pub fn write<const N: usize>(
        &self,
        queries: [BoundQuery; N],
    ) -> Result<[SqlRows; N], QueryError> {
        Ok(rows::last(self.write_steps(queries)?))
    }

    /// Writes any number of statements in one transaction, such as an insert for each option of a
    /// poll, and returns the rows of each, in their order. Without a statement nothing is done.
    ///
    /// ```
    /// use millpond::SqlDatabase;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let url = format!("sqlite:{}", dir.path().join("book.db").display());
    /// let database = SqlDatabase::open(&url)?;
    /// database.migrate([("0001", "create table option (id integer primary key, name text)")])?;
    /// let insert = database.prepare("insert into option (name) values (:name) returning id")?;
    ///
    /// let names = ["tea", "coffee", "water"];
    /// let rows = database.write_all(names.iter().map(|name| insert.with("name", name)))?;
    /// assert_eq!(rows.len(), 3);
    /// assert_eq!(rows[2].first().map(|row| row.get::<i64>("id")).transpose()?, Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn write_all(
        &self,
        queries: impl IntoIterator<Item = BoundQuery>,
    ) -> Result<Vec<SqlRows>, QueryError> {
        let results = self.write_steps(queries)?;
        Ok(results.into_iter().map(SqlRows::from).collect())
    }

    fn write_steps(
        &self,
        queries: impl IntoIterator<Item = BoundQuery>,
    ) -> Result<Vec<ResultRows>, QueryError> {
        let step = |query: BoundQuery| {
            let call = query.call(self)?;
            Ok::<_, QueryError>(WriteStep {
                query: call.query,
                bind: call.params.into_iter().map(Bind::Value).collect(),
                expect: Expect::Many,
            })
        };
        let steps = queries.into_iter().map(step);
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.inner.write(steps)?.results)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

fn sqlite(path: &str, settings: &SqlSettings) -> SqliteOptions {
    let options = SqliteOptions::new(path);
    SqliteOptions {
        readers: settings.connections.unwrap_or(options.readers),
        queue: settings.queue,
        statement_timeout: settings.statement_timeout,
        feed: settings.feed,
        ..options
    }
}

fn postgres(url: &str, settings: &SqlSettings) -> PostgresOptions {
    let options = PostgresOptions::new(url);
    PostgresOptions {
        pool: settings.connections.unwrap_or(options.pool),
        queue: settings.queue,
        statement_timeout: settings.statement_timeout,
        max_staleness: settings.max_staleness,
        feed: settings.feed,
        ..options
    }
}

impl std::fmt::Debug for SqlDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlDatabase")
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}
