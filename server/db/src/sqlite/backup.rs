//! A copy of a whole database, page by page, while other programs write to it.
//!
//! One read transaction is held over all pages. Without it, SQLite's backup begins again after each
//! commit of another program, and never ends beside one that does not pause. In WAL mode no
//! writer waits for the transaction; the log grows by what is written meanwhile.
//!
//! `VACUUM INTO` was not taken. It builds each table and index anew, which takes 1.6 times as long
//! (260 MB with two indexes), cannot be asked to stop between steps, and gives another file than
//! the one that was served: SQLite promises the rowids only of tables with an integer key.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::failure::sentence;
use crate::Error;

/// How long another program's lock is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pages that are copied before `stop` is looked at again: 4 MiB of usual pages.
const PAGES: i32 = 1024;
/// Instructions of the check of the copy before `stop` is looked at again.
const STEPS: i32 = 100_000;

/// Copies the database `from` in one state, with all that was committed before, into the file `to`,
/// and checks the copy. `to` is one file, without a log beside it. Nothing is written to `from`.
/// `stop` ends the work early.
///
/// # Errors
/// `from` cannot be read or is damaged, `to` cannot be written, or `stop` was set.
pub fn back_up(from: &Path, to: &Path, stop: &Arc<AtomicBool>) -> Result<(), Error> {
    let source = open(from)?;
    let copied = copy_pages(&source, to, stop).and_then(|copy| first_fault(copy, stop));
    match copied.map_err(|error| Error::unavailable(sentence(&error)))? {
        None => Ok(()),
        Some(fault) => Err(Error::unavailable(format!(
            "it is damaged ({fault}), so an earlier backup is better than one of now"
        ))),
    }
}

/// Opens the database `from` for reading.
pub(super) fn open(from: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(from, flags).and_then(|source| {
        source.busy_timeout(PATIENCE)?;
        Ok(source)
    });
    opened.map_err(|error| Error::unavailable(sentence(&error)))
}

/// Copies all pages of `source` in one state into the file `to`, which it opens.
pub(super) fn copy_pages(
    source: &Connection,
    to: &Path,
    stop: &AtomicBool,
) -> rusqlite::Result<Connection> {
    let state = source.unchecked_transaction()?;
    // The transaction begins with the first read.
    state.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let mut copy = Connection::open(to)?;
    let backup = Backup::new(&state, &mut copy)?;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(failure(rusqlite::ffi::SQLITE_INTERRUPT));
        }
        match backup.step(PAGES)? {
            StepResult::Done => break,
            StepResult::More => {}
            _ => return Err(failure(rusqlite::ffi::SQLITE_BUSY)),
        }
    }
    drop(backup);
    // A file in WAL mode cannot be opened where nothing can be written beside it.
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    Ok(copy)
}

/// Returns the first fault that SQLite finds in the copy.
fn first_fault(mut copy: Connection, stop: &Arc<AtomicBool>) -> rusqlite::Result<Option<String>> {
    let stop = Arc::clone(stop);
    copy.progress_handler(STEPS, Some(move || stop.load(Ordering::Relaxed)))?;
    let fault: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok((fault != "ok").then_some(fault))
}

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_copy_has_one_state_while_another_program_writes_without_a_pause() {
        let dir = lab_testkit::fast_dir();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("b.db"));
        let writer = Connection::open(&from).unwrap();
        // Rows of two tables always sum up to the same; and many steps of pages.
        writer
            .execute_batch(
                "pragma journal_mode = wal; create table one (n); create table two (n); \
                 insert into one values (7); insert into two values (-7); create table filler (b); \
                 with recursive k (i) as (select 1 union all select i + 1 from k where i < 24) \
                 insert into filler select randomblob(1048576) from k;",
            )
            .unwrap();
        let stop = Arc::<AtomicBool>::default();
        let (has_begun, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (begun, ended) = (&has_begun, &has_ended);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    writer
                        .execute_batch(
                            "begin; update one set n = n + 1; update two set n = n - 1; commit",
                        )
                        .unwrap();
                    begun.store(true, Ordering::Relaxed);
                }
            });
            while !has_begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let copied = back_up(&from, &to, &stop);
            has_ended.store(true, Ordering::Relaxed);
            copied.unwrap();
        });
        let copy = Connection::open(&to).unwrap();
        let sums: (i64, i64) = copy
            .query_row(
                "select (select n from one), (select n from two)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert!(sums.0 > 7 && sums.0 + sums.1 == 0, "{sums:?}");
        assert!(!dir.path().join("b.db-wal").exists());
    }

    #[test]
    fn a_damaged_database_and_one_that_is_stopped_are_errors() {
        let dir = lab_testkit::fast_dir();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("b.db"));
        let source = Connection::open(&from).unwrap();
        source
            .execute_batch("create table t (a text); create index i on t (a); insert into t values ('here is a row');")
            .unwrap();
        drop(source);
        let stopped = Arc::new(AtomicBool::new(true));
        assert!(back_up(&from, &to, &stopped).is_err());
        let mut bytes = fs::read(&from).unwrap();
        // The row of the table is on the second page, its key in the index on the third.
        let row = bytes[4096..8192]
            .windows(4)
            .position(|part| part == b"here");
        bytes[4096 + row.unwrap()] = b'H';
        fs::write(&from, bytes).unwrap();
        let error = back_up(&from, &to, &Arc::default()).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
        assert!(back_up(&dir.path().join("none.db"), &to, &Arc::default()).is_err());
    }
}
