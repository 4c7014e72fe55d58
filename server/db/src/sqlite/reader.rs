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
use super::connection::{Opened, Purpose, open};
use super::run::run;
use crate::query::Prepared;
use crate::queue::Next;
use crate::sqlite::analysis::{Analysis, analyse};
use crate::sqlite::database::Shared;
use crate::{Call, Error, Expect, Query, Read};

/// A read that waits for a connection.
pub(crate) struct ReadJob {
    pub(crate) calls: Vec<Call>,
    pub(crate) reply: oneshot::Sender<Result<Read, Error>>,
}

/// A connection for reading, and the file that it has open.
pub(crate) struct Reader {
    opened: Opened,
    generation: u64,
}

/// Where a reader's connection is kept, so that the writer can close it when the file is replaced.
#[derive(Default)]
pub(crate) struct Slot {
    reader: Mutex<Option<Reader>>,
    /// Interrupts what the reader is running.
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Reader>> {
        self.reader.lock()
    }

    /// Closes the connection. A read that is running is interrupted, for whoever closes it is waited for by everybody.
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
pub(crate) fn run_reader(shared: &Shared, slot: &Slot) {
    while let Next::Job(ReadJob { calls, reply }) = shared.reads.pop(None) {
        // Whoever asked has gone.
        if reply.is_closed() {
            continue;
        }
        let result =
            catch_unwind(AssertUnwindSafe(|| read(shared, slot, &calls))).unwrap_or_else(|_| {
                // Whatever state the connection is in, another one is opened for the next job.
                *slot.lock() = None;
                Err(Error::unavailable("a read failed unexpectedly"))
            });
        // Gone meanwhile: nothing to do.
        let _ = reply.send(result);
    }
    *slot.lock() = None;
}

fn read(shared: &Shared, slot: &Slot, calls: &[Call]) -> Result<Read, Error> {
    let started = Boottime::now();
    // Before the snapshot: all that had passed by now is in it.
    let snapshot = shared.ticks.snapshot();
    let mut place = slot.lock();
    let reader = current(shared, slot, &mut place)?;
    let connection = &reader.opened.connection;
    execute(connection, "BEGIN")?;
    let done = read_in_transaction(shared, reader, calls);
    // Before the end of the transaction or after it makes no difference: the snapshot does not move.
    let position = shared.ticks.position();
    let ended = execute(connection, "COMMIT");
    if done.is_err() || ended.is_err() {
        let healthy = connection.is_autocommit() || execute(connection, "ROLLBACK").is_ok();
        if !healthy || matches!(done, Err(Error::Unavailable { .. })) {
            *place = None;
        }
    }
    let (results, deps) = done?;
    Ok(Read {
        results,
        deps,
        snapshot,
        position,
        uncovered: None,
        elapsed: Boottime::now().since(started),
    })
}

fn read_in_transaction(
    shared: &Shared,
    reader: &Reader,
    calls: &[Call],
) -> Result<(Vec<crate::Rows>, Vec<crate::Deps>), Error> {
    let Opened {
        connection,
        deadline,
        ..
    } = &reader.opened;
    let catalog = shared
        .catalogs
        .of(connection, reader.generation)
        .map_err(|error| Error::from_sqlite(&error, "PRAGMA schema_version"))?;
    let mut results = Vec::with_capacity(calls.len());
    let mut deps = Vec::with_capacity(calls.len());
    for Call { query, params } in calls {
        let analysis = analysis_of(shared, reader, &catalog, query)?;
        if !analysis.readonly {
            return Err(Error::usage(format!(
                "a read cannot change anything, as this does: {}",
                query.sql()
            )));
        }
        clockwatch::reset();
        let mut rows = deadline.within(shared.options.statement_timeout, || {
            run(connection, query.sql(), params, Expect::Many)
        })?;
        rows.columns = Arc::clone(&analysis.columns);
        deps.push(analysis.deps(params, clockwatch::was_read()));
        results.push(rows);
    }
    Ok((results, deps))
}

/// What `query` is in the schema of the reader's snapshot.
fn analysis_of(
    shared: &Shared,
    reader: &Reader,
    catalog: &Catalog,
    query: &Query,
) -> Result<Arc<Analysis>, Error> {
    let Opened {
        connection,
        recorder,
        ..
    } = &reader.opened;
    let Prepared::Sqlite(statement) = query.prepared() else {
        return Err(Error::usage(format!(
            "a query of another database: {}",
            query.sql()
        )));
    };
    let known = statement.analysis();
    if known.key == catalog.key {
        return Ok(known);
    }
    let analysis =
        analyse(connection, recorder, catalog, query.sql()).map_err(|error| Error::Sql {
            message: error.to_string(),
            sql: Arc::clone(query.sql_arc()),
        })?;
    let analysis = Arc::new(analysis);
    shared.take_interest(&analysis);
    statement.set_analysis(Arc::clone(&analysis));
    Ok(analysis)
}

/// The slot's connection, opened again if the writer has changed to another file.
pub(crate) fn current<'a>(
    shared: &Shared,
    slot: &Slot,
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
            let opened = opened.map_err(|error| shared.cannot_open(&error))?;
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
    shared: &Shared,
    slot: &Slot,
    sql: &str,
) -> Result<Analysis, crate::SqlError> {
    let refuse = |message: String| crate::SqlError {
        message,
        offset: None,
        hint: None,
    };
    let mut place = slot.lock();
    let reader = current(shared, slot, &mut place).map_err(|error| refuse(error.to_string()))?;
    let Opened {
        connection,
        recorder,
        ..
    } = &reader.opened;
    execute(connection, "BEGIN").map_err(|error| refuse(error.to_string()))?;
    let catalog = shared
        .catalogs
        .of(connection, reader.generation)
        .map_err(|error| refuse(error.to_string()));
    let analysis = catalog.and_then(|catalog| analyse(connection, recorder, &catalog, sql));
    if execute(connection, "COMMIT").is_err() {
        *place = None;
    }
    analysis
}

fn execute(connection: &Connection, sql: &'static str) -> Result<(), Error> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.raw_execute())
        .map(drop)
        .map_err(|error| Error::from_sqlite(&error, sql))
}
