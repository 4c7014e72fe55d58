//! The threads that read, each with a connection of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base_clock::Boottime;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, InterruptHandle};
use tokio::sync::oneshot;

use super::catalog::Catalog;
use super::clockwatch;
use super::connection::{OpenConnection, Purpose, open};
use super::documents;
use super::run::run;
use super::shared::SqliteShared;
use super::statement::Statement;
use crate::queue::QueueItem;
use crate::sqlite::analysis::{Analysis, analyse};
use crate::{Call, Error, Expect, HeldByRead, Query, ReadResult, SqlError, Value};

/// A read that waits for a connection.
pub(crate) struct ReadJob {
    pub(crate) calls: Vec<Call>,
    /// Dropped when the read is over.
    pub(crate) held: Option<HeldByRead>,
    pub(crate) reply: oneshot::Sender<Result<ReadResult, Error>>,
}

/// A connection for reading, and the file that it has open.
pub(crate) struct Reader {
    opened: OpenConnection,
    generation: u64,
}

/// Holds a reader's connection, so that the writer can close it when the file is replaced.
#[derive(Default)]
pub(crate) struct ReaderSlot {
    reader: Mutex<Option<Reader>>,
    /// Interrupts the running statement of the reader.
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl ReaderSlot {
    fn lock(&self) -> MutexGuard<'_, Option<Reader>> {
        self.reader.lock()
    }

    /// Closes the connection. A running read is interrupted, because every caller waits for the
    /// thread that closes the connection.
    pub(crate) fn close(&self) {
        const PATIENCE: Duration = Duration::from_millis(5);
        loop {
            if let Some(mut reader) = self.reader.try_lock_for(PATIENCE) {
                *reader = None;
                return;
            }
            if let Some(interrupt) = &*self.interrupt.lock() {
                interrupt.interrupt();
            }
        }
    }
}

/// Reads until the queue is closed.
pub(crate) fn run_reader(shared: &SqliteShared, slot: &ReaderSlot) {
    while let QueueItem::Job(ReadJob { calls, held, reply }) = shared.reads.pop(None) {
        // The caller has dropped its future.
        if reply.is_closed() {
            continue;
        }
        let result =
            catch_unwind(AssertUnwindSafe(|| read(shared, slot, &calls))).unwrap_or_else(|_| {
                // The connection may be in any state; the next job opens another one.
                *slot.lock() = None;
                Err(Error::unavailable("a read failed unexpectedly"))
            });
        drop(held);
        // The send fails if the caller has dropped its future, and nothing remains to be done.
        let _ = reply.send(result);
    }
    *slot.lock() = None;
}

fn read(shared: &SqliteShared, slot: &ReaderSlot, calls: &[Call]) -> Result<ReadResult, Error> {
    let started = Boottime::now();
    // Before the snapshot of the database: every event that has passed by now is in it.
    let snapshot = shared.ticks.snapshot();
    let mut slot_guard = slot.lock();
    let reader = open_reader(shared, slot, &mut slot_guard)?;
    let connection = &reader.opened.connection;
    execute(connection, "BEGIN")?;
    let outcome = read_in_transaction(shared, reader, calls);
    // The order relative to COMMIT makes no difference: the snapshot does not move.
    let position = shared.ticks.position();
    let ended = execute(connection, "COMMIT");
    if outcome.is_err() || ended.is_err() {
        let healthy = connection.is_autocommit() || execute(connection, "ROLLBACK").is_ok();
        if !healthy || matches!(outcome, Err(Error::Unavailable { .. })) {
            *slot_guard = None;
        }
    }
    let (results, deps) = outcome?;
    Ok(ReadResult {
        results,
        deps,
        snapshot,
        position,
        uncovered: None,
        elapsed: Boottime::now().since(started),
    })
}

fn read_in_transaction(
    shared: &SqliteShared,
    reader: &Reader,
    calls: &[Call],
) -> Result<(Vec<crate::ResultRows>, Vec<crate::Deps>), Error> {
    let (connection, deadline) = (&reader.opened.connection, &reader.opened.deadline);
    let catalog = shared
        .catalogs
        .of(connection, reader.generation)
        .map_err(|error| Error::from_sqlite(&error, "PRAGMA schema_version"))?;
    let mut results = Vec::with_capacity(calls.len());
    let mut deps = Vec::with_capacity(calls.len());
    for Call { query, params } in calls {
        let analysis = analysis_of(shared, reader, &catalog, query)?;
        query.check_reads(&analysis.facts)?;
        clockwatch::reset();
        let mut rows = deadline.within(shared.options.statement_timeout, || {
            run(connection, query.sql(), params, Expect::Many)
        })?;
        rows.columns = Arc::clone(&analysis.facts.columns);
        let clock_was_read = clockwatch::was_read();
        let mut witness = |sql: &str, params: &[Value]| {
            let found = deadline.within(shared.options.statement_timeout, || {
                run(connection, sql, params, Expect::Many)
            });
            let rows = found.ok()?.rows.into_iter();
            rows.map(|row| row.into_iter().next()).collect()
        };
        deps.push(analysis.deps(params, &rows.rows, clock_was_read, &mut witness));
        // Afterwards, as dependencies are of what the database holds.
        documents::read(&mut rows, &analysis.facts.documents)?;
        results.push(rows);
    }
    Ok((results, deps))
}

/// The analysis of `query` for the schema of the reader's snapshot.
fn analysis_of(
    shared: &SqliteShared,
    reader: &Reader,
    catalog: &Catalog,
    query: &Query,
) -> Result<Arc<Analysis>, Error> {
    let (connection, recorder) = (&reader.opened.connection, &reader.opened.recorder);
    let statement: &Statement = query.prepared()?;
    let known = statement.analysis();
    if known.key == catalog.key {
        return Ok(known);
    }
    let analysis = analyse(connection, recorder, catalog, query.sql());
    let analysis = Arc::new(analysis.map_err(|error| query.refused(&error))?);
    shared.register_interest(&analysis);
    statement.set_analysis(Arc::clone(&analysis));
    Ok(analysis)
}

/// The connection of the slot, opened again if the writer has changed to another file.
pub(crate) fn open_reader<'a>(
    shared: &SqliteShared,
    slot: &ReaderSlot,
    reader: &'a mut MutexGuard<'_, Option<Reader>>,
) -> Result<&'a Reader, Error> {
    let path = &shared.options.path;
    loop {
        let generation = shared.generation.load(Ordering::SeqCst);
        if reader
            .as_ref()
            .is_some_and(|reader| reader.generation != generation)
        {
            **reader = None;
        }
        if reader.is_some() {
            break;
        }
        let opened = shared.admission.open(path, || {
            open(path, Purpose::Read, shared.options.busy_timeout)
        });
        if let Some(opened) = opened {
            let opened = opened.map_err(|error| shared.open_error(&error))?;
            *slot.interrupt.lock() = Some(opened.connection.get_interrupt_handle());
            **reader = Some(Reader { opened, generation });
        } else if !MutexGuard::unlocked(reader, || shared.admission.wait(path)) {
            return Err(Error::unavailable(format!(
                "{} was replaced or removed, and what is there now has not been opened for writing yet",
                path.display()
            )));
        }
    }
    reader
        .as_ref()
        .ok_or_else(|| Error::unavailable("no connection"))
}

/// Prepares `sql` for [`crate::Database::prepare`].
pub(crate) fn prepare(
    shared: &SqliteShared,
    slot: &ReaderSlot,
    sql: &str,
) -> Result<Analysis, SqlError> {
    let mut slot_guard = slot.lock();
    let reader = open_reader(shared, slot, &mut slot_guard).map_err(SqlError::new)?;
    let (connection, recorder) = (&reader.opened.connection, &reader.opened.recorder);
    execute(connection, "BEGIN").map_err(SqlError::new)?;
    let catalog = shared.catalogs.of(connection, reader.generation);
    let catalog = catalog.map_err(SqlError::new);
    let analysis = catalog.and_then(|catalog| analyse(connection, recorder, &catalog, sql));
    if execute(connection, "COMMIT").is_err() {
        *slot_guard = None;
    }
    analysis
}

fn execute(connection: &Connection, sql: &'static str) -> Result<(), Error> {
    super::session::execute(connection, sql).map_err(|error| Error::from_sqlite(&error, sql))
}
