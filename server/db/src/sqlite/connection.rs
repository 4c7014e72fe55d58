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
use super::file::FileIdentity;
use super::heartbeats::Heartbeats;
use super::recorder::Recorder;

/// Instructions of SQLite's virtual machine between two checks of the clock: about 10 µs.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// The largest size of a value or a row in bytes; SQLite refuses larger ones.
const MAX_VALUE: i32 = crate::value::MAX_RESULT as i32;

/// Prepared statements that a connection caches.
const STATEMENTS: usize = 512;

/// The time at which the running statement is interrupted.
#[derive(Clone, Default)]
pub(crate) struct Deadline(Arc<AtomicU64>);

impl Deadline {
    const NEVER: u64 = 0;

    fn install(connection: &mut Connection, heartbeats: &Heartbeats) -> rusqlite::Result<Self> {
        let deadline = Self::default();
        let at = Arc::clone(&deadline.0);
        let heartbeats = heartbeats.clone();
        connection.progress_handler(
            STEPS_BETWEEN_LOOKS,
            Some(move || {
                let at = at.load(Ordering::Relaxed);
                heartbeats.must_interrupt() || at != Self::NEVER && Boottime::now().as_nanos() > at
            }),
        )?;
        Ok(deadline)
    }

    /// Runs `f`, whose statements must end within `after` from now.
    pub(crate) fn within<T>(&self, after: Duration, f: impl FnOnce() -> T) -> T {
        self.0
            .store(Boottime::now().plus(after).as_nanos(), Ordering::Relaxed);
        let result = f();
        self.0.store(Self::NEVER, Ordering::Relaxed);
        result
    }
}

/// A connection with its authorizer, its deadline, and its heartbeats, which only a writer sends.
pub(crate) struct OpenConnection {
    pub(crate) connection: Connection,
    pub(crate) recorder: Recorder,
    pub(crate) deadline: Deadline,
    pub(crate) heartbeats: Heartbeats,
}

/// Purpose of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write {
        /// Create the file if there is none.
        create: bool,
        /// The file that must be at the path; `None` accepts any file.
        expected: Option<FileIdentity>,
    },
}

/// Opens the database at `path`.
pub(crate) fn open(
    path: &Path,
    purpose: Purpose,
    busy_timeout: Duration,
) -> rusqlite::Result<OpenConnection> {
    let access = match purpose {
        Purpose::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Purpose::Write { create: false, .. } => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Purpose::Write { create: true, .. } => {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        }
    };
    // Only one thread at a time uses a connection, so SQLite need not lock it.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match clockwatch::register() {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    if let Purpose::Write { expected, .. } = purpose
        && expected.is_some()
        && expected != FileIdentity::of(path)
    {
        // Checked before the first statement: until then the file is open, and its log is not.
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
    let heartbeats = Heartbeats::default();
    let deadline = Deadline::install(&mut connection, &heartbeats)?;
    Ok(OpenConnection {
        connection,
        recorder,
        deadline,
        heartbeats,
    })
}

fn cannot_open(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some(why.to_owned()),
    )
}

/// The integer that a pragma returns.
pub(crate) fn pragma(connection: &Connection, sql: &'static str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}

/// The version of the schema. Starts a read transaction if a transaction is open that has not read
/// yet.
pub(crate) fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    pragma(connection, "PRAGMA schema_version")
}

/// The newest catalog, shared by all connections.
#[derive(Default)]
pub(crate) struct Catalogs(parking_lot::Mutex<Option<Arc<Catalog>>>);

impl Catalogs {
    /// The catalog of the schema that `connection` sees in its transaction.
    ///
    /// Afterwards the connection has that schema in memory, too. Counterexample: `sqlite3_prepare`
    /// uses the schema that the connection has in memory, and only running a statement detects that
    /// the file has another one. A view that was replaced in between would be analysed in its old
    /// form.
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
