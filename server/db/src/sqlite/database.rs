//! An SQLite database: hands work to threads. Some read, one writes.

use std::fmt;
use std::sync::Arc;
use std::thread;

use base_clock::Boottime;
use millpond_store::Sink;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::options::SqliteOptions;
use super::reader::{ReadJob, prepare, run_reader};
use super::shared::SqliteShared;
use super::statement::Statement;
use super::triggers::requirements::{repair_sqlite, sqlite_requirements};
use super::writer::{WriteJob, Writer};
use crate::feed::DatabaseFeed;
use crate::queue::QueueRefusal;
use crate::{
    Call, Error, Health, Migration, Position, ReadResult, ReadTerms, Requirement, SqlError,
    WriteResult, WriteStep,
};

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
        let shared = Arc::new(SqliteShared::new(options));
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
        answer.recv().map_err(|_| Error::stopping())?
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

    pub(crate) async fn read(
        &self,
        calls: Vec<Call>,
        terms: ReadTerms,
    ) -> Result<ReadResult, Error> {
        let (reply, answer) = oneshot::channel();
        let job = ReadJob {
            calls,
            held: terms.held,
            reply,
        };
        self.inner.shared.reads.push(job).map_err(Error::from)?;
        answer.await.map_err(|_| Error::stopping())?
    }

    pub(crate) async fn write(&self, steps: Vec<WriteStep>) -> Result<WriteResult, Error> {
        let (reply, answer) = oneshot::channel();
        self.push_write(WriteJob::Write { steps, reply })?;
        answer.await.map_err(|_| Error::stopping())?
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
        let (failures, last_failure) = shared.failures.known();
        Health {
            failures,
            last_failure,
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
            QueueRefusal::Closed => Self::stopping(),
        }
    }
}
