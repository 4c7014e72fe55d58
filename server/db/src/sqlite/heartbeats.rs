//! Heartbeats in the middle of a transaction of ours (coherence.md, rule 17).
//!
//! The connection holds the write lock, so no other program can commit, and our own commit is still
//! to come. If the file at the path is the open one, nothing is missing: the event that is open
//! passes, and another one begins, which is the commit's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base_clock::Boottime;
use parking_lot::Mutex;

use super::file::FileIdentity;
use crate::Error;
use crate::sqlite::shared::SqliteShared;

/// Sends heartbeats while a transaction runs: between the rows of a file, and whenever SQLite's
/// progress handler is called in the middle of a statement.
#[derive(Clone, Default)]
pub(crate) struct Heartbeats(Arc<HeartbeatState>);

#[derive(Default)]
struct HeartbeatState {
    /// When the next one is due, in nanoseconds; 0 while no transaction runs.
    due: AtomicU64,
    event: Mutex<Option<OpenEvent>>,
}

/// The event of the transaction that runs.
struct OpenEvent {
    shared: Arc<SqliteShared>,
    file: FileIdentity,
    tick: u64,
}

impl Heartbeats {
    /// A transaction has begun, and has the write lock; `tick` is that of its event, before which
    /// no commit is missing.
    pub(crate) fn begin(&self, shared: &Arc<SqliteShared>, file: FileIdentity, tick: u64) {
        self.due_after(shared);
        *self.0.event.lock() = Some(OpenEvent {
            shared: Arc::clone(shared),
            file,
            tick,
        });
    }

    /// The transaction is about to end. Gives the tick of the event that is open now.
    pub(crate) fn end(&self) -> Option<u64> {
        self.0.due.store(0, Ordering::Relaxed);
        self.0.event.lock().take().map(|event| event.tick)
    }

    /// Sends a heartbeat if it is time.
    pub(crate) fn send_if_due(&self) -> Result<(), Error> {
        let due = self.0.due.load(Ordering::Relaxed);
        let sent = Boottime::now();
        if due == 0 || sent.as_nanos() < due {
            return Ok(());
        }
        let mut event = self.0.event.lock();
        let Some(event) = event.as_mut() else {
            return Ok(());
        };
        if FileIdentity::of(&event.shared.options.path) != Some(event.file) {
            return Err(Error::unavailable(
                "the database file was replaced during the transaction",
            ));
        }
        event.shared.pass(event.tick, sent);
        event.tick = event.shared.ticks.begin();
        self.due_after(&event.shared);
        Ok(())
    }

    /// Sends a heartbeat if it is time, in the middle of a statement. True if the statement must be
    /// interrupted, which ends the transaction.
    pub(crate) fn must_interrupt(&self) -> bool {
        // A panic must not unwind into SQLite, nor may the transaction go on.
        let sent = catch_unwind(AssertUnwindSafe(|| self.send_if_due()));
        !matches!(sent, Ok(Ok(())))
    }

    fn due_after(&self, shared: &SqliteShared) {
        let due = Boottime::now().plus(shared.options.poll).as_nanos();
        self.0.due.store(due.max(1), Ordering::Relaxed);
    }
}
