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

use super::passed::Passed;
use super::statement::Statement;
use super::ticks::Ticks;
use crate::feed::{DatabaseFeed, Delivery};
use crate::queue::{Queue, Refused};
use crate::sqlite::admission::Admission;
use crate::sqlite::analysis::Analysis;
use crate::sqlite::connection::Catalogs;
use crate::sqlite::interest::Interest;
use crate::sqlite::reader::{ReadJob, Slot, prepare, run_reader};
use crate::sqlite::writer::{WriteJob, Writer};
use crate::{Call, Error, Health, Migration, Position, Read, SqlError, Step, Written};

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file; it is made if there is none.
    pub path: PathBuf,
    /// Threads that read, each with a connection.
    pub readers: usize,
    /// Reads that may wait for a thread, and writes that may; one more is [`Error::Overloaded`].
    pub queue: usize,
    /// Time between two looks for commits by other programs.
    pub poll: Duration,
    /// How long a write waits for another program's transaction.
    pub busy_timeout: Duration,
    /// How long one statement may run.
    pub statement_timeout: Duration,
}

impl Options {
    /// The defaults: 4 readers, a queue of 1024, a poll every 20 ms, 5 s for other programs and for statements.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            readers: 4,
            queue: 1_024,
            poll: Duration::from_millis(20),
            busy_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
        }
    }
}

/// What all threads of a database share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) ticks: Ticks,
    pub(crate) passed: Passed,
    pub(crate) delivery: Delivery,
    pub(crate) interest: Interest,
    registering: Mutex<()>,
    pub(crate) catalogs: Catalogs,
    pub(crate) reads: Queue<ReadJob>,
    pub(crate) writes: Queue<WriteJob>,
    pub(crate) admission: Admission,
    /// Counts the files that the path has led to.
    pub(crate) generation: AtomicU64,
    /// One connection for each reader thread, and one to prepare with.
    slots: Vec<Slot>,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    count: u64,
    last: Option<Arc<str>>,
}

impl Shared {
    pub(crate) fn count_failure(&self, message: &str) {
        let mut failures = self.failures.lock();
        failures.count += 1;
        failures.last = Some(message.into());
    }

    /// Registers the columns that an analysis selects by. Must come before its dependencies are given to anybody.
    ///
    /// One at a time, epoch included: whoever finds the column registered already must not go on before the epoch has
    /// begun, or it could store what it read before a commit whose values of that column were not named.
    pub(crate) fn take_interest(&self, analysis: &Analysis) {
        let _one_at_a_time = self.registering.lock();
        if self.interest.add(analysis.wanted()) {
            self.delivery
                .new_epoch("a query selects by a column that was not watched");
        }
    }

    /// Closes the readers' connections; each is opened again when it is needed. Reads that run are interrupted.
    ///
    /// A read that begins from here on does not use a connection from before, as it compares the generation first.
    pub(crate) fn close_readers(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        for slot in &self.slots {
            slot.close();
        }
    }

    pub(crate) fn cannot_open(&self, error: &rusqlite::Error) -> Error {
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
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Drop for Inner {
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
    pub(crate) fn open(options: Options) -> Result<Self, Error> {
        let readers = options.readers.max(1);
        let shared = Arc::new(Shared {
            ticks: Ticks::default(),
            passed: Passed::new(format!("{:016x}", crate::random::random())),
            delivery: Delivery::default(),
            interest: Interest::default(),
            registering: Mutex::default(),
            catalogs: Catalogs::default(),
            reads: Queue::new(options.queue.max(1)),
            writes: Queue::new(options.queue.max(1)),
            admission: Admission::default(),
            generation: AtomicU64::new(0),
            slots: (0..=readers).map(|_| Slot::default()).collect(),
            failures: Mutex::default(),
            options,
        });
        let writer = Writer::open(&shared)?;
        let database = Self {
            inner: Arc::new(Inner {
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
        answer.recv().map_err(|_| stopped())?
    }

    pub(crate) fn start(&self, sink: Arc<dyn Sink<DatabaseFeed>>) {
        self.inner.shared.delivery.start(sink);
        // If the queue is full or closed, the writer is awake anyway.
        let _ = self.inner.shared.writes.push(WriteJob::Poll);
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement, SqlError> {
        let shared = &self.inner.shared;
        let analysis = prepare(shared, &shared.slots[shared.slots.len() - 1], sql)?;
        shared.take_interest(&analysis);
        Ok(Statement::new(analysis))
    }

    pub(crate) async fn read(&self, calls: Vec<Call>) -> Result<Read, Error> {
        let (reply, answer) = oneshot::channel();
        self.inner
            .shared
            .reads
            .push(ReadJob { calls, reply })
            .map_err(Error::from)?;
        answer.await.map_err(|_| stopped())?
    }

    pub(crate) async fn write(&self, steps: Vec<Step>) -> Result<Written, Error> {
        let (reply, answer) = oneshot::channel();
        self.push_write(WriteJob::Write { steps, reply })?;
        answer.await.map_err(|_| stopped())?
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
            replica_reads: 0,
            waiting_reads: shared.reads.len(),
            waiting_writes: shared.writes.len(),
        }
    }

    pub(crate) fn stop(&self) {
        let shared = &self.inner.shared;
        let mut threads = std::mem::take(&mut *self.inner.threads.lock());
        shared.reads.close();
        // The writer is the first, and ends last: only it can empty the log into the file when the last connection closes.
        for thread in threads.drain(1.min(threads.len())..) {
            // A thread that panicked outside its guard has ended, which is what is asked for.
            let _ = thread.join();
        }
        shared.close_readers();
        shared.writes.close();
        for writer in threads {
            let _ = writer.join();
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full => Self::Overloaded,
            Refused::Closed => stopped(),
        }
    }
}

fn stopped() -> Error {
    Error::unavailable("it is stopping")
}
