//! An SQLite database: hands work to threads. Some read, one writes.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use base_clock::Boottime;
use millpond_store::Sink;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::passed_positions::PassedPositions;
use super::statement::Statement;
use super::ticks::Ticks;
use crate::feed::{DatabaseFeed, Delivery, Snapshot};
use crate::queue::{Queue, QueueRefusal};
use crate::sqlite::admission::Admission;
use crate::sqlite::analysis::Analysis;
use crate::sqlite::connection::Catalogs;
use crate::sqlite::interest::Interest;
use crate::sqlite::reader::{ReadJob, ReaderSlot, prepare, run_reader};
use crate::sqlite::triggers::requirements::{repair_sqlite, sqlite_requirements};
use crate::sqlite::writer::{WriteJob, Writer};
use crate::{
    Call, Error, FeedKind, Health, Migration, Position, ReadResult, Requirement, SqlError,
    WriteResult, WriteStep,
};

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file; it is created if there is none.
    pub path: PathBuf,
    /// The number of reader threads, each with a connection.
    pub readers: usize,
    /// The number of reads that may wait for a thread, and of writes that may wait. One more is
    /// [`Error::Overloaded`].
    pub queue: usize,
    /// The time between two polls for commits of other programs.
    pub poll: Duration,
    /// How long a write waits for another program's transaction.
    pub busy_timeout: Duration,
    /// How long one statement may run.
    pub statement_timeout: Duration,
    /// With [`FeedKind::Triggers`] the commits of other programs end the results that show their
    /// rows, by triggers that a [requirement](crate::Database::requirements) adds; otherwise all
    /// results.
    pub feed: FeedKind,
}

impl SqliteOptions {
    /// The defaults: 4 readers, a queue of 1024, a poll every 20 ms, 5 s for other programs and for
    /// statements.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            readers: 4,
            queue: 1_024,
            poll: Duration::from_millis(20),
            busy_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
            feed: FeedKind::default(),
        }
    }
}

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
    slots: Vec<ReaderSlot>,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    count: u64,
    last: Option<Arc<str>>,
}

impl SqliteShared {
    pub(crate) fn count_failure(&self, message: &str) {
        let mut failures = self.failures.lock();
        failures.count += 1;
        failures.last = Some(message.into());
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
            crate::error::sentence(error)
        ))
    }
}

/// An open SQLite database. Cheap to clone. Its methods are those of [`crate::Database`].
///
/// Reads run on threads of their own and writes on one.
#[derive(Clone)]
pub(crate) struct Sqlite {
    inner: Arc<SqliteInner>,
}

struct SqliteInner {
    shared: Arc<SqliteShared>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Drop for SqliteInner {
    fn drop(&mut self) {
        self.shared.reads.close();
        self.shared.writes.close();
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.inner.shared.options.path)
            .finish_non_exhaustive()
    }
}

impl Sqlite {
    pub(crate) fn open(options: SqliteOptions) -> Result<Self, Error> {
        let readers = options.readers.max(1);
        let shared = Arc::new(SqliteShared {
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
            failures: Mutex::default(),
            options,
        });
        let writer = Writer::open(&shared)?;
        let database = Self {
            inner: Arc::new(SqliteInner {
                shared: Arc::clone(&shared),
                threads: Mutex::default(),
            }),
        };
        database.spawn("millpond-db-writer".to_owned(), || writer.run())?;
        for index in 0..readers {
            let shared = Arc::clone(&shared);
            database.spawn(format!("millpond-db-reader-{index}"), move || {
                run_reader(&shared, &shared.slots[index]);
            })?;
        }
        Ok(database)
    }

    fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let handle = thread::Builder::new()
            .name(name)
            .spawn(work)
            .map_err(|error| Error::unavailable(format!("no thread: {error}")))?;
        self.inner.threads.lock().push(handle);
        Ok(())
    }

    pub(crate) fn migrate(&self, migrations: &[Migration]) -> Result<Vec<String>, Error> {
        let (reply, answer) = std::sync::mpsc::channel();
        self.push_write(WriteJob::Migrate {
            migrations: migrations.to_vec(),
            reply,
        })?;
        answer.recv().map_err(|_| stopping_error())?
    }

    /// Does work on the writer thread, and waits for it.
    pub(crate) fn on_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = std::sync::mpsc::channel();
        let task = move |writer: &mut Writer| {
            // The caller has gone.
            let _ = reply.send(work(writer));
        };
        self.push_write(WriteJob::Task(Box::new(task)))?;
        let lost = || Error::unavailable("the writer thread failed unexpectedly, or is stopping");
        answer.recv().map_err(|_| lost())?
    }

    pub(crate) fn requirements(&self) -> Result<Vec<Requirement>, Error> {
        let options = &self.inner.shared.options;
        sqlite_requirements(&options.path, options.feed)
    }

    pub(crate) fn repair(&self, requirement: &Requirement) -> Result<(), Error> {
        repair_sqlite(&self.inner.shared.options.path, requirement)
    }

    pub(crate) fn start(&self, sink: Arc<dyn Sink<DatabaseFeed>>) {
        self.inner.shared.delivery.start(sink);
        // If the queue is full or closed, the writer is awake already.
        let _ = self.inner.shared.writes.push(WriteJob::Poll);
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement, SqlError> {
        let shared = &self.inner.shared;
        let analysis = prepare(shared, &shared.slots[shared.slots.len() - 1], sql)?;
        shared.register_interest(&analysis);
        Ok(Statement::new(analysis))
    }

    pub(crate) async fn read(&self, calls: Vec<Call>) -> Result<ReadResult, Error> {
        let (reply, answer) = oneshot::channel();
        self.inner
            .shared
            .reads
            .push(ReadJob { calls, reply })
            .map_err(Error::from)?;
        answer.await.map_err(|_| stopping_error())?
    }

    pub(crate) async fn write(&self, steps: Vec<WriteStep>) -> Result<WriteResult, Error> {
        let (reply, answer) = oneshot::channel();
        self.push_write(WriteJob::Write { steps, reply })?;
        answer.await.map_err(|_| stopping_error())?
    }

    pub(crate) fn has_passed(&self, position: &Position) -> bool {
        let passed = &self.inner.shared.passed;
        passed.has_passed(position, Boottime::now())
    }

    fn push_write(&self, job: WriteJob) -> Result<(), Error> {
        self.inner.shared.writes.push(job).map_err(Error::from)
    }

    pub(crate) fn health(&self) -> Health {
        let shared = &self.inner.shared;
        let failures = shared.failures.lock();
        Health {
            failures: failures.count,
            last_failure: failures.last.clone(),
            waiting_reads: shared.reads.len(),
            waiting_writes: shared.writes.len(),
            ..Health::default()
        }
    }

    pub(crate) fn stop(&self) {
        let shared = &self.inner.shared;
        let mut threads = std::mem::take(&mut *self.inner.threads.lock());
        shared.reads.close();
        // The writer is the first thread and ends last: only the writer can empty the log into the
        // file when the last connection closes.
        for thread in threads.drain(1.min(threads.len())..) {
            // A thread that panicked outside its guard has ended, as required.
            let _ = thread.join();
        }
        shared.close_readers();
        shared.writes.close();
        for writer in threads {
            let _ = writer.join();
        }
    }
}

impl From<QueueRefusal> for Error {
    fn from(refused: QueueRefusal) -> Self {
        match refused {
            QueueRefusal::Full => Self::Overloaded,
            QueueRefusal::Closed => stopping_error(),
        }
    }
}

fn stopping_error() -> Error {
    Error::unavailable("it is stopping")
}
