//! Opening connections, each with its authorizer and its deadline.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base_clock::Boottime;
use rusqlite::{Connection, OpenFlags};

use rusqlite::limits::Limit;

use super::catalog::{Catalog, SchemaKey};
use super::clockwatch;
use super::file::Identity;
use super::recorder::Recorder;

/// Instructions of SQLite's virtual machine between two looks at the clock: some 10 µs.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// Bytes of one value or one row; SQLite refuses to make larger ones.
const MAX_VALUE: i32 = super::run::MAX_RESULT as i32;

/// Prepared statements that a connection keeps.
const STATEMENTS: usize = 512;

/// When the running statement is to be interrupted.
#[derive(Clone, Default)]
pub(crate) struct Deadline(Arc<AtomicU64>);

impl Deadline {
    const NEVER: u64 = 0;

    fn install(connection: &mut Connection) -> rusqlite::Result<Self> {
        let deadline = Self::default();
        let at = Arc::clone(&deadline.0);
        connection.progress_handler(
            STEPS_BETWEEN_LOOKS,
            Some(move || {
                let at = at.load(Ordering::Relaxed);
                at != Self::NEVER && Boottime::now().as_nanos() > at
            }),
        )?;
        Ok(deadline)
    }

    /// Runs `f`, in which each statement may take until `after` from now.
    pub(crate) fn within<T>(&self, after: Duration, f: impl FnOnce() -> T) -> T {
        self.0
            .store(Boottime::now().plus(after).as_nanos(), Ordering::Relaxed);
        let result = f();
        self.0.store(Self::NEVER, Ordering::Relaxed);
        result
    }
}

/// A connection with what belongs to it.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) recorder: Recorder,
    pub(crate) deadline: Deadline,
}

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write {
        /// Make the file if there is none.
        create: bool,
        /// The file that must be found; any if none.
        expected: Option<Identity>,
    },
}

/// Opens the database at `path`.
pub(crate) fn open(
    path: &Path,
    purpose: Purpose,
    busy_timeout: Duration,
) -> rusqlite::Result<Opened> {
    let access = match purpose {
        Purpose::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Purpose::Write { create: false, .. } => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Purpose::Write { create: true, .. } => {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        }
    };
    // Each connection is used by one thread at a time, so SQLite need not lock it.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match clockwatch::register() {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    if let Purpose::Write { expected, .. } = purpose
        && expected.is_some()
        && expected != Identity::of(path)
    {
        // Before the first statement: until then the file is open, and its log is not.
        return Err(cannot_open("the database file keeps being replaced"));
    }
    connection.busy_timeout(busy_timeout)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    match purpose {
        Purpose::Read => connection.execute_batch("PRAGMA query_only = ON")?,
        Purpose::Write { .. } => {
            let mode: String =
                connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
            if !mode.eq_ignore_ascii_case("wal") {
                return Err(cannot_open(&format!(
                    "the database cannot be put into WAL mode (it is in mode {mode})"
                )));
            }
            connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
        }
    }
    let recorder = Recorder::install(&mut connection)?;
    let deadline = Deadline::install(&mut connection)?;
    Ok(Opened {
        connection,
        recorder,
        deadline,
    })
}

fn cannot_open(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(why.to_owned()),
    )
}

/// One of the integers that a pragma gives.
pub(crate) fn pragma(connection: &Connection, sql: &'static str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}

/// The version of the schema; starts a read transaction if a transaction is open that has none yet.
pub(crate) fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    pragma(connection, "PRAGMA schema_version")
}

/// The newest catalog, shared by all connections.
#[derive(Default)]
pub(crate) struct Catalogs(parking_lot::Mutex<Option<Arc<Catalog>>>);

impl Catalogs {
    /// The catalog of the schema that `connection` sees in its transaction.
    ///
    /// Afterwards the connection itself knows that schema, too. ✗ `sqlite3_prepare` goes by the schema that the
    /// connection has in memory, and only running a statement finds that the file has another: a view that was replaced
    /// meanwhile would be analysed as it was.
    pub(crate) fn of(
        &self,
        connection: &Connection,
        generation: u64,
    ) -> rusqlite::Result<Arc<Catalog>> {
        connection
            .prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?
            .raw_query()
            .next()?;
        let key = SchemaKey {
            generation,
            version: schema_version(connection)?,
        };
        if let Some(catalog) = self.0.lock().as_ref().filter(|catalog| catalog.key == key) {
            return Ok(Arc::clone(catalog));
        }
        let catalog = Arc::new(Catalog::load(connection, key)?);
        *self.0.lock() = Some(Arc::clone(&catalog));
        Ok(catalog)
    }
}
