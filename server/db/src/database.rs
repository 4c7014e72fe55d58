//! A database as the rest of the program sees it, whichever it is.

use std::sync::Arc;

use millpond_store::Sink;

use crate::feed::DatabaseFeed;
use crate::postgres::Postgres;
use crate::query::Prepared;
use crate::sqlite::Sqlite;
use crate::{
    Call, Error, Migration, Options, Position, PostgresOptions, Query, Read, Rehearsal,
    Requirement, SqlError, Step, Written,
};

/// A database: reads in snapshots, writes in transactions, and a feed of what changes. Cheap to clone.
///
/// The futures wait on any executor.
#[derive(Clone, Debug)]
pub struct Database {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// What has gone wrong in the background so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Looks for changes that failed, and panics that were caught. While they fail no heartbeat goes out.
    pub failures: u64,
    /// The last of them, for the owner's log.
    pub last_failure: Option<Arc<str>>,
    /// Reads that replicas have answered.
    pub replica_reads: u64,
    /// Reads that wait for a connection.
    pub waiting_reads: usize,
    /// Writes that wait for their turn, or for their change to come through the feed.
    pub waiting_writes: usize,
}

impl Database {
    /// Opens an SQLite database in WAL mode with foreign keys enforced and full synchronisation, and starts its threads.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be opened or made, or is not a database.
    pub fn open(options: Options) -> Result<Self, Error> {
        Sqlite::open(options).map(|sqlite| Self {
            engine: Engine::Sqlite(sqlite),
        })
    }

    /// Connects to a PostgreSQL database, and starts the threads with its connections.
    ///
    /// # Errors
    /// [`Error::Usage`] if the URL or the certificates to trust are not right; [`Error::Unavailable`] if the server cannot be reached
    /// or is too old.
    pub fn connect(options: PostgresOptions) -> Result<Self, Error> {
        Postgres::open(options).map(|postgres| Self {
            engine: Engine::Postgres(postgres),
        })
    }

    /// Applies the migrations that were not applied before, in the order given, each in a transaction; gives their names.
    ///
    /// # Errors
    /// [`Error::Migration`] with the place in the script; [`Error::MigrationChanged`] if one that was applied has been edited.
    pub fn migrate(&self, migrations: &[Migration]) -> Result<Vec<String>, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.migrate(migrations),
            Engine::Postgres(postgres) => postgres.migrate(migrations),
        }
    }

    /// Runs the migrations that were not applied before in a transaction that is never committed, and prepares statements in it
    /// from now on: for a check of a PostgreSQL database, opened with one connection and one worker. It is over when the
    /// database is stopped. A check of an SQLite database has [`crate::copy_schema`].
    ///
    /// # Errors
    /// Those of [`migrate`](Self::migrate).
    pub fn rehearse(&self, migrations: &[Migration]) -> Result<Rehearsal, Error> {
        match &self.engine {
            Engine::Sqlite(_) => Err(Error::usage("an SQLite database is checked on a copy")),
            Engine::Postgres(postgres) => postgres.rehearse(migrations),
        }
    }

    /// Starts the feed: from now on `sink` is told of every change, and gets heartbeats.
    pub fn start(&self, sink: Arc<dyn Sink<DatabaseFeed>>) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.start(sink),
            Engine::Postgres(postgres) => postgres.start(sink),
        }
    }

    /// Prepares one statement.
    ///
    /// # Errors
    /// If the database refuses it; if it is not exactly one statement; if it is not one that a query may be, such as a PRAGMA.
    pub fn prepare(&self, sql: &str) -> Result<Query, SqlError> {
        self.prepare_depending(sql, None)
    }

    /// The same for a statement whose owner says which tables the functions in it read (`-- depends:`). SQLite has no functions that
    /// read tables, so there it makes no difference.
    ///
    /// # Errors
    /// Those of [`prepare`](Self::prepare); a table that is not there.
    pub fn prepare_depending(
        &self,
        sql: &str,
        depends: Option<&[String]>,
    ) -> Result<Query, SqlError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite
                .prepare(sql)
                .map(|prepared| Query::new(sql, Prepared::Sqlite(prepared))),
            Engine::Postgres(postgres) => postgres
                .prepare(sql, depends)
                .map(|prepared| Query::new(sql, Prepared::Postgres(prepared))),
        }
    }

    /// Runs the calls, all in one snapshot.
    ///
    /// If the future is dropped before the work is taken up, it is not done; otherwise its result is dropped.
    ///
    /// # Errors
    /// [`Error::Overloaded`] at once if the queue is full; [`Error::Timeout`]; [`Error::Sql`] if the schema has changed
    /// so that a statement no longer makes sense.
    pub async fn read(&self, calls: Vec<Call>) -> Result<Read, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(calls).await,
            Engine::Postgres(postgres) => postgres.read(calls, false).await,
        }
    }

    /// The same for what many may be given: of PostgreSQL, a replica may answer where it shows all that the feed has brought
    /// ([`PostgresOptions::replicas`]). Not for who waits for a [position](Self::pass) that the feed has not passed.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub async fn read_spread(&self, calls: Vec<Call>) -> Result<Read, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.read(calls).await,
            Engine::Postgres(postgres) => postgres.read(calls, true).await,
        }
    }

    /// Runs the steps in one transaction, and answers when the change has been applied to the sink.
    ///
    /// If the future is dropped before its turn comes, nothing is done; otherwise the transaction runs to its end.
    ///
    /// # Errors
    /// After any, nothing has been changed, unless the message says that this is not known. [`Error::Constraint`], [`Error::NoRow`],
    /// [`Error::Parameter`], [`Error::Timeout`], [`Error::Overloaded`].
    pub async fn write(&self, steps: Vec<Step>) -> Result<Written, Error> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(steps).await,
            Engine::Postgres(postgres) => postgres.write(steps).await,
        }
    }

    /// Whether everything that the sink is told to keep has what was committed before `position`. Where its place says nothing, as
    /// that of another server, it is noted when this was asked first: then it is so once a heartbeat is back that was sent later.
    /// Costs a lock that is seldom taken for writing, and in that case another.
    #[must_use]
    pub fn has_passed(&self, position: &Position) -> bool {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.has_passed(position),
            Engine::Postgres(postgres) => postgres.has_passed(position),
        }
    }

    /// Waits a moment until the feed [has passed](Self::has_passed) `position`: false if it has not, or cannot be expected to.
    /// A [`read`](Self::read) that begins after that sees what was committed there in any case.
    pub async fn pass(&self, position: Position) -> bool {
        match &self.engine {
            // A read costs less than the wait for a look.
            Engine::Sqlite(_) => false,
            Engine::Postgres(postgres) => postgres.pass(position).await,
        }
    }

    /// What the database lacks so that results of these queries may be kept, the most basic first. SQLite lacks nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it cannot be asked.
    pub fn requirements(&self, queries: &[Query]) -> Result<Vec<Requirement>, Error> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(Vec::new()),
            Engine::Postgres(postgres) => {
                let statements = queries.iter().filter_map(|query| match query.prepared() {
                    Prepared::Postgres(statement) => Some(statement),
                    Prepared::Sqlite(_) => None,
                });
                postgres.requirements(statements)
            }
        }
    }

    /// Runs the statement of a requirement that [may be mended](Requirement::may_fix) so.
    ///
    /// # Errors
    /// [`Error::Usage`] with PostgreSQL's sentence, or if it is not for a program to mend.
    pub fn mend(&self, requirement: &Requirement) -> Result<(), Error> {
        match &self.engine {
            Engine::Sqlite(_) => Err(Error::usage("SQLite lacks nothing")),
            Engine::Postgres(postgres) => postgres.mend(requirement),
        }
    }

    /// A position of the feed as the database itself writes it.
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

    /// How it goes in the background.
    #[must_use]
    pub fn health(&self) -> Health {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.health(),
            Engine::Postgres(postgres) => postgres.health(),
        }
    }

    /// Whether a read that this thread asks for now waits for nobody else's: for work that nobody waits for.
    #[must_use]
    pub fn has_room(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.health().waiting_reads == 0,
            Engine::Postgres(postgres) => postgres.has_room(),
        }
    }

    /// Whether anything that is read now may be kept; not while PostgreSQL's feed is lost.
    #[must_use]
    pub fn has_feed(&self) -> bool {
        match &self.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(postgres) => postgres.has_feed(),
        }
    }

    /// Takes no more work, finishes what was taken, and waits for the threads to end: at most about
    /// [`Options::statement_timeout`] for each statement that waits.
    pub fn stop(&self) {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.stop(),
            Engine::Postgres(postgres) => postgres.stop(),
        }
    }
}
