//! The state that all threads of an SQLite database share.

use std::sync::atomic::{AtomicU64, Ordering};

use base_clock::Boottime;
use parking_lot::Mutex;

use super::admission::Admission;
use super::analysis::Analysis;
use super::connection::Catalogs;
use super::failure::sentence;
use super::interest::Interest;
use super::options::SqliteOptions;
use super::passed_positions::PassedPositions;
use super::reader::{ReadJob, ReaderSlot};
use super::ticks::Ticks;
use super::writer::WriteJob;
use crate::Error;
use crate::feed::{Delivery, Snapshot};
use crate::health::Failures;
use crate::queue::Queue;

/// The state that all threads of a database share.
pub(crate) struct SqliteShared {
    pub(crate) options: SqliteOptions,
    pub(crate) ticks: Ticks,
    pub(crate) passed: PassedPositions,
    pub(crate) delivery: Delivery,
    pub(crate) interest: Interest,
    registering: Mutex<()>,
    pub(crate) catalogs: Catalogs,
    pub(crate) reads: Queue<ReadJob>,
    pub(crate) writes: Queue<WriteJob>,
    pub(crate) admission: Admission,
    /// The number of files that the path has led to.
    pub(crate) generation: AtomicU64,
    /// One connection for each reader thread, and one to prepare with.
    pub(super) slots: Vec<ReaderSlot>,
    pub(super) failures: Failures,
}

impl SqliteShared {
    pub(super) fn new(options: SqliteOptions) -> Self {
        let readers = options.readers.max(1);
        Self {
            ticks: Ticks::default(),
            passed: PassedPositions::new(format!("{:016x}", crate::random::random())),
            delivery: Delivery::default(),
            interest: Interest::default(),
            registering: Mutex::default(),
            catalogs: Catalogs::default(),
            reads: Queue::new(options.queue.max(1)),
            writes: Queue::new(options.queue.max(1)),
            admission: Admission::default(),
            generation: AtomicU64::new(0),
            slots: (0..=readers).map(|_| ReaderSlot::default()).collect(),
            failures: Failures::default(),
            options,
        }
    }

    /// Registers the columns that an analysis selects by. Must be called before its dependencies
    /// are used.
    ///
    /// One thread at a time, including the new epoch. A thread that finds the column already
    /// registered must not continue before the epoch has begun. Otherwise it could store what it
    /// read before a commit whose values of that column were not reported.
    pub(crate) fn register_interest(&self, analysis: &Analysis) {
        let _one_at_a_time = self.registering.lock();
        if self.interest.add(analysis.wanted()) {
            self.delivery
                .new_epoch("a query selects by a column that was not watched");
        }
    }

    /// An event has passed; `sent` is a moment before which no commit is missing.
    pub(crate) fn pass(&self, tick: u64, sent: Boottime) {
        self.ticks.pass(tick);
        self.delivery.passed(&Snapshot::Applied(tick), tick, sent);
        self.passed.poll_succeeded(sent);
    }

    /// Closes the readers' connections; each is opened again when it is needed. Running reads are
    /// interrupted.
    ///
    /// A read that begins later does not use an old connection, as it compares the generation
    /// first.
    pub(crate) fn close_readers(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        for slot in &self.slots {
            slot.close();
        }
    }

    pub(crate) fn open_error(&self, error: &rusqlite::Error) -> Error {
        Error::unavailable(format!(
            "cannot open {}: {}",
            self.options.path.display(),
            sentence(error)
        ))
    }
}
