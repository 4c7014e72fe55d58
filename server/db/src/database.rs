//! The interface of a database, the same for SQLite and PostgreSQL.

use std::sync::Arc;

use millpond_store::Sink;

use crate::feed::DatabaseFeed;
use crate::file_target::{FileTarget, apply_files};
use crate::postgres::Postgres;
use crate::sql::Dialect;
use crate::sqlite::Sqlite;
use crate::{
    AppliedFile, Call, Error, FileChange, FileOutcome, GoneFile, Health, Migration, Position,
    PostgresOptions, Query, ReadResult, ReadTerms, Rehearsal, Requirement, SqlError, SqliteOptions,
    TableColumn, Value, WriteResult, WriteStep,
};

/// A database: reads in snapshots, writes in transactions, and a feed of what changes. Cheap to
/// clone.
///
/// The futures work on any executor.
#[derive(Clone, Debug)]
pub struct Database {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Database {
    /// Opens an SQLite database in WAL mode with foreign keys enforced and full synchronisation,
    /// and starts its threads.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be opened or made, or is not a database.
    pub fn open(options: SqliteOptions) -> Result<Self, Error> {
        Sqlite::open(options).map(|sqlite| Self {
            engine: Engine::Sqlite(sqlite),
        })
    }

    /// Connects to a PostgreSQL database, and starts the threads with its connections.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URL or the certificates to trust are not right;
    /// [`Error::Unavailable`] if the server cannot be reached or is too old.
    pub fn connect(options: PostgresOptions) -> Result<Self, Error> {
        Postgres::open(options).map(|postgres| Self {
            engine: Engine::Postgres(postgres),
        })
    }

    /// Applies the migrations that were not applied before, in the given order, each in a
    /// transaction; returns their names.
    ///
    /// # Errors
    /// [`Error::Migration`] with the place in the script; [`Error::MigrationChanged`] if one that
    /// was applied has been edited.
    pub fn migrate(&self, migrations: &[Migration]) -> Result<Vec<String>, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.migrate(migrations),
            Engine::Postgres(postgres) => postgres.migrate(migrations),
        }
    }

    /// Runs the migrations that were not applied before in a transaction that is never committed,
    /// and prepares later statements in that transaction. It serves a check of a PostgreSQL
    /// database that was opened with one connection and one worker. Stopping the database ends the
    /// transaction. For a check of an SQLite database use [`crate::copy_schema`].
    ///
    /// # Errors
    /// Those of [`migrate`](Self::migrate).
    pub fn rehearse(&self, migrations: &[Migration]) -> Result<Rehearsal, Error> {
        match &self.engine {
            Engine::Sqlite(_) => Err(Error::usage("an SQLite database is checked on a copy")),
            Engine::Postgres(postgres) => postgres.rehearse(migrations),
        }
    }

    /// Starts the feed: from now on `sink` is notified of every change, and gets heartbeats.
    pub fn start(&self, sink: Arc<dyn Sink<DatabaseFeed>>) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.start(sink),
            Engine::Postgres(postgres) => postgres.start(sink),
        }
    }

    /// Prepares one statement.
    ///
    /// # Errors
    /// The database refuses the statement; the text is not exactly one statement; the statement is
    /// of a kind that a query must not be, such as a PRAGMA.
    pub fn prepare(&self, sql: &str) -> Result<Query, SqlError> {
        self.prepare_depending(sql, None)
    }

    /// Prepares a statement whose owner declares which tables its functions read (`-- depends:`).
    /// SQLite has no functions that read tables, so the declaration has no effect there.
    ///
    /// # Errors
    /// Each error of [`prepare`](Self::prepare); a declared table does not exist.
    pub fn prepare_depending(
        &self,
        sql: &str,
        depends: Option<&[String]>,
    ) -> Result<Query, SqlError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(Query::new(sql, self.dialect(), sqlite.prepare(sql)?)),
            Engine::Postgres(postgres) => {
                let prepared = postgres.prepare(sql, depends)?;
                Ok(Query::new(sql, self.dialect(), prepared))
            }
        }
    }

    /// Returns the kind of SQL of the database.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// True for PostgreSQL, whose SQL differs from that of SQLite.
    #[must_use]
    pub const fn is_postgres(&self) -> bool {
        matches!(self.engine, Engine::Postgres(_))
    }

    /// Runs the calls, all in one snapshot.
    ///
    /// If the future is dropped before a thread takes the read, the read does not run; otherwise
    /// its result is dropped.
    ///
    /// # Errors
    /// [`Error::Overloaded`] at once if the queue is full; [`Error::Timeout`]; [`Error::Sql`] if
    /// the schema has changed so that a statement no longer makes sense.
    pub async fn read(&self, calls: Vec<Call>) -> Result<ReadResult, Error> {
        self.read_with(calls, ReadTerms::default()).await
    }

    /// Runs the calls, all in one snapshot, on other terms than those of [`read`](Self::read).
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub async fn read_with(&self, calls: Vec<Call>, terms: ReadTerms) -> Result<ReadResult, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(calls, terms).await,
            Engine::Postgres(postgres) => postgres.read(calls, terms).await,
        }
    }

    /// Runs the steps in one transaction, and returns once the change is applied to the sink.
    ///
    /// If the future is dropped before the transaction begins, nothing is done; otherwise the
    /// transaction runs to its end.
    ///
    /// # Errors
    /// [`Error::Constraint`], [`Error::NoRow`], [`Error::Parameter`], [`Error::Timeout`],
    /// [`Error::Overloaded`]. After any error nothing is changed, unless the message says that the
    /// outcome is unknown.
    pub async fn write(&self, steps: Vec<WriteStep>) -> Result<WriteResult, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(steps).await,
            Engine::Postgres(postgres) => postgres.write(steps).await,
        }
    }

    /// The columns of a table, without generated ones; none if there is no such table.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database does not respond.
    pub fn table_columns(&self, table: &str) -> Result<Vec<TableColumn>, Error> {
        let table = table.to_owned();
        self.with_files(move |target| target.columns(&table))
    }

    /// The files of rows that were [applied](Self::apply_files).
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database does not respond.
    pub fn applied_files(&self) -> Result<Vec<AppliedFile>, Error> {
        self.with_files(|target| target.records(None))
    }

    /// Returns the [applied files](Self::applied_files) that have one of these names.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database does not respond.
    pub fn applied_of(&self, names: Vec<String>) -> Result<Vec<AppliedFile>, Error> {
        self.with_files(move |target| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            target.records(Some(&names))
        })
    }

    /// Makes the rows of files those of their tables, all in one transaction that changes only rows
    /// that differ; gives what became of each. A row with the key of one of a `gone` file takes its
    /// place, with what refers to it and the columns that no file fills; other rows of such files
    /// stay. Blocks until it is over; on SQLite other writes wait meanwhile.
    ///
    /// # Errors
    /// Those of a write, and those of the sources of the rows. Nothing is changed then, of none of
    /// the files; only of a single one the error says which row is to blame.
    pub fn apply_files(
        &self,
        mut changes: Vec<FileChange>,
        gone: Arc<[GoneFile]>,
    ) -> Result<Vec<FileOutcome>, Error> {
        let outcomes = self.with_files(move |target| apply_files(target, &mut changes, &gone));
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.wake_feed();
        }
        outcomes
    }

    /// For each key of a table of files, the file whose row has it. `columns` are those of the key,
    /// in the order of its values.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database does not respond.
    pub fn key_owners(
        &self,
        table: &str,
        columns: &[TableColumn],
        keys: Vec<Vec<Value>>,
    ) -> Result<Vec<Option<String>>, Error> {
        let (table, columns) = (table.to_owned(), columns.to_vec());
        self.with_files(move |target| target.key_owners(&table, &columns, &keys))
    }

    /// Does work on files of rows, in a transaction of the writer or in the session for files.
    fn with_files<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn FileTarget) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                sqlite.on_writer(move |writer| writer.run_transaction(|session, _| work(session)))
            }
            Engine::Postgres(postgres) => postgres.with_file_session(|session| work(session)),
        }
    }

    /// True if the feed has delivered everything that was committed before `position`. If the feed
    /// cannot compare the position (one of another server), the time of the first call is noted,
    /// and the position is passed once a heartbeat arrives that was sent later. Costs a lock that
    /// is seldom taken for writing, and in that case another lock.
    #[must_use]
    pub fn has_passed(&self, position: &Position) -> bool {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.has_passed(position),
            Engine::Postgres(postgres) => postgres.has_passed(position),
        }
    }

    /// Waits briefly until the feed [has passed](Self::has_passed) `position`. False if it did not,
    /// or cannot be expected to. A [`read`](Self::read) that begins afterwards sees what was
    /// committed there in both cases.
    pub async fn pass(&self, position: Position) -> bool {
        match &self.engine {
            // A read costs less than waiting for a poll.
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.pass(position).await,
        }
    }

    /// Lists the requirements that the database lacks for results of these queries to be kept, the
    /// most basic first. For SQLite only with [`FeedKind::Triggers`](crate::FeedKind), or for the
    /// remains of such a feed.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the database does not respond.
    pub fn requirements(&self, queries: &[Query]) -> Result<Vec<Requirement>, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.requirements(),
            Engine::Postgres(postgres) => {
                postgres.requirements(queries.iter().filter_map(|query| query.prepared().ok()))
            }
        }
    }

    /// Runs the statement of a requirement that [may be fixed](Requirement::may_fix) by it.
    ///
    /// # Errors
    /// [`Error::Usage`] with PostgreSQL's message, or if a program must not fix the requirement.
    pub fn repair(&self, requirement: &Requirement) -> Result<(), Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.repair(requirement),
            Engine::Postgres(postgres) => postgres.repair(requirement),
        }
    }

    /// A position of the feed in the notation of the database.
    #[must_use]
    pub fn show_position(&self, position: u64) -> String {
        match &self.engine {
            // A `pg_lsn`.
            Engine::Postgres(postgres) if postgres.has_log_positions() => {
                format!("{:X}/{:X}", position >> 32, position & 0xffff_ffff)
            }
            // A tick, or a transaction id.
            Engine::Sqlite(_) | Engine::Postgres(_) => position.to_string(),
        }
    }

    /// The state of the background work.
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.health(),
            Engine::Postgres(postgres) => postgres.health(),
        }
    }

    /// True if a read from this thread would not delay any other read: for work without a waiting
    /// client.
    #[must_use]
    pub fn has_room(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.health().waiting_reads == 0,
            Engine::Postgres(postgres) => postgres.has_room(),
        }
    }

    /// True if results that are read now may be kept. False while PostgreSQL's feed is lost.
    #[must_use]
    pub fn has_feed(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(postgres) => postgres.has_feed(),
        }
    }

    /// Refuses further work, finishes the queued work, and waits for the threads to end: at most
    /// about [`SqliteOptions::statement_timeout`] for each waiting statement.
    pub fn stop(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.stop(),
            Engine::Postgres(postgres) => postgres.stop(),
        }
    }
}
