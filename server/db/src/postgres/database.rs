//! An open database: hands work to the threads with connections, and starts the feed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use base_clock::Boottime;
use millpond_store::Sink;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::connection_thread::{self, ConnectionThread, Job};
use super::context::DatabaseContext;
use super::feed::{self, FeedHandle, FeedSettings, heartbeat_for};
use super::options::{ConnectionTarget, PostgresOptions};
use super::rehearsal::Rehearsal;
use super::session::PostgresSession;
use super::statement::Statement;
use super::tls::Tls;
use super::{file_rows, replica, sql};
use crate::feed::DatabaseFeed;
use crate::{
    Call, Error, FeedKind, Health, Migration, Position, ReadResult, ReadTerms, Requirement,
    SqlError, WriteResult, WriteStep,
};

/// After this silence server and feed give each other up, and the slot with them: a node that hangs
/// keeps no log.
const WAL_SENDER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a reader waits for the feed to bring what he has written through another node. As a
/// rule it is there in milliseconds; where it is not, one more read costs less than the wait.
const CATCHING_UP: Duration = Duration::from_millis(250);

/// An open PostgreSQL database. Cheap to clone. Its methods are those of [`crate::Database`].
#[derive(Clone)]
pub(crate) struct Postgres {
    inner: Arc<PostgresInner>,
}

struct PostgresInner {
    shared: Arc<DatabaseContext>,
    connection_threads: Vec<ConnectionThread>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    feed: Mutex<Option<FeedHandle>>,
    file_session: Mutex<Option<PostgresSession>>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("place", &self.inner.shared.place)
            .finish_non_exhaustive()
    }
}

/// How the replicas are reached that the owner has named.
fn replicas(primary: &DatabaseContext) -> Result<Vec<Arc<DatabaseContext>>, Error> {
    let hosts = &primary.options.replicas;
    if !hosts.is_empty() && primary.options.feed != FeedKind::Logical {
        return Err(Error::usage(
            "database.replicas needs feed = \"logical\": a feed by triggers knows no places in the log to hold a replica against",
        ));
    }
    let one = |host: &String| replica::shared(primary, host).map(Arc::new);
    hosts.iter().map(one).collect()
}

impl Postgres {
    /// Starts the threads, and connects once: what is wrong with the URL or the server is said now.
    pub(crate) fn open(options: PostgresOptions) -> Result<Self, Error> {
        let target = ConnectionTarget::parse(&options.url)?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let pool = options.pool.max(1);
        let count = options.workers.min(pool).min(cores).max(1);
        let queue = options.queue.div_ceil(count).max(1);
        let tls = Tls::new(&target.trust)?;
        let node = format!("{:016x}", crate::random::random());
        let mut shared = DatabaseContext::new(options, target, tls, Arc::default(), node);
        shared.replicas = replicas(&shared)?;
        let shared = Arc::new(shared);
        let mut connection_threads = Vec::with_capacity(count);
        let mut threads = Vec::with_capacity(count);
        for index in 0..count {
            let connections = pool / count + usize::from(index < pool % count);
            let (connection_thread, thread) =
                ConnectionThread::start(&shared, index, connections, queue)?;
            connection_threads.push(connection_thread);
            threads.push(thread);
        }
        let database = Self {
            inner: Arc::new(PostgresInner {
                shared,
                connection_threads,
                threads: Mutex::new(threads),
                feed: Mutex::default(),
                file_session: Mutex::default(),
            }),
        };
        database.ask(|reply| Job::Connect { reply })??;
        Ok(database)
    }

    /// The thread that the caller keeps to.
    fn connection_thread(&self) -> &ConnectionThread {
        let connection_threads = &self.inner.connection_threads;
        &connection_threads[connection_thread::own(connection_threads.len())]
    }

    fn push(&self, job: Job) -> Result<(), Error> {
        self.connection_thread().push(&self.inner.shared, job)
    }

    /// Waits for the answer without an event loop.
    fn ask<T>(&self, job: impl FnOnce(std::sync::mpsc::Sender<T>) -> Job) -> Result<T, Error> {
        let (reply, answer) = std::sync::mpsc::channel();
        self.push(job(reply))?;
        answer.recv().map_err(|_| self.unanswered())
    }

    /// No reply will come: the job was dropped.
    fn unanswered(&self) -> Error {
        let message = "what was asked of PostgreSQL failed unexpectedly";
        self.inner.shared.link.failures.count(message);
        Error::unavailable(message)
    }

    pub(crate) fn migrate(&self, migrations: &[Migration]) -> Result<Vec<String>, Error> {
        let migrations = migrations.to_vec();
        self.ask(|reply| Job::Migrate { migrations, reply })?
    }

    pub(crate) fn rehearse(&self, migrations: &[Migration]) -> Result<Rehearsal, Error> {
        let migrations = migrations.to_vec();
        self.ask(|reply| Job::Rehearse { migrations, reply })?
    }

    /// Does work in the session for files of rows, on the calling thread. The session is kept for
    /// the next call; one that was kept may have been lost, and then another is opened.
    pub(crate) fn with_file_session<T>(
        &self,
        mut work: impl FnMut(&mut PostgresSession) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut kept = self.inner.file_session.lock();
        if let Some(mut session) = kept.take() {
            let outcome = work(&mut session);
            if !matches!(outcome, Err(Error::Unavailable { .. })) {
                *kept = Some(session);
                return outcome;
            }
        }
        let mut session = file_rows::open(&self.inner.shared.options)?;
        let outcome = work(&mut session);
        if !matches!(outcome, Err(Error::Unavailable { .. })) {
            *kept = Some(session);
        }
        outcome
    }

    /// A feed that batches changes looks for them now.
    pub(crate) fn wake_feed(&self) {
        self.inner.shared.link.wake.call();
    }

    pub(crate) fn start(&self, sink: Arc<dyn Sink<DatabaseFeed>>) {
        let shared = &self.inner.shared;
        shared.link.awaited_from(Boottime::now());
        shared.link.delivery.start(sink);
        let settings = FeedSettings {
            config: shared.target.config.clone(),
            tls: Arc::clone(shared.tls.config()),
            node: shared.node.clone(),
            kind: shared.options.feed,
            publication: shared.options.publication.clone(),
            heartbeat: heartbeat_for(shared.options.max_staleness),
            wal_sender_timeout: WAL_SENDER_TIMEOUT,
        };
        match feed::start(settings, Arc::clone(&shared.link)) {
            Ok(handle) => *self.inner.feed.lock() = Some(handle),
            Err(error) => shared
                .link
                .failures
                .count(&format!("the feed does not start: {error}")),
        }
    }

    pub(crate) fn prepare(
        &self,
        sql: &str,
        depends: Option<&[String]>,
    ) -> Result<Statement, SqlError> {
        let sql = sql::rewrite(sql)?;
        let outcome = self.ask(|reply| Job::Prepare {
            sql,
            depends: depends.map(<[String]>::to_vec),
            reply,
        });
        outcome.map_err(SqlError::new).flatten()
    }

    pub(crate) async fn read(
        &self,
        calls: Vec<Call>,
        terms: ReadTerms,
    ) -> Result<ReadResult, Error> {
        let (reply, answer) = oneshot::channel();
        self.push(Job::Read {
            calls,
            terms,
            reply,
        })?;
        answer.await.map_err(|_| self.unanswered())?
    }

    pub(crate) async fn write(&self, steps: Vec<WriteStep>) -> Result<WriteResult, Error> {
        let (reply, answer) = oneshot::channel();
        self.push(Job::Write { steps, reply })?;
        answer.await.map_err(|_| self.unanswered())?
    }

    pub(crate) fn has_passed(&self, position: &Position) -> bool {
        let passed = &self.inner.shared.link.passed;
        passed.has_passed(position, Boottime::now())
    }

    /// Beside the jobs: it needs no connection, so it waits for none.
    pub(crate) async fn pass(&self, position: Position) -> bool {
        let shared = &self.inner.shared;
        let wait = CATCHING_UP.min(shared.options.statement_timeout);
        let link = &shared.link;
        let (reply, answer) = oneshot::channel();
        let may_come = link.passed.may_reach(&position);
        let passed = link.passed.until(position);
        if may_come {
            // A feed that batches changes sees that a caller waits.
            link.wake.call();
        }
        self.connection_thread().spawn(async move {
            let passed = timeout(wait, passed).await;
            // The caller has gone.
            let _ = reply.send(passed.unwrap_or(false));
        });
        answer.await.unwrap_or(false)
    }

    pub(crate) fn requirements<'a>(
        &self,
        statements: impl Iterator<Item = &'a Statement>,
    ) -> Result<Vec<Requirement>, Error> {
        let tables = statements
            .flat_map(|statement| statement.analysis().reads().collect::<Vec<u32>>())
            .collect();
        self.ask(|reply| Job::Requirements { tables, reply })?
    }

    /// True if positions are places in the log; they are transaction ids otherwise.
    pub(crate) fn has_log_positions(&self) -> bool {
        self.inner.shared.options.feed == FeedKind::Logical
    }

    pub(crate) fn repair(&self, requirement: &Requirement) -> Result<(), Error> {
        let requirement = requirement.clone();
        self.ask(|reply| Job::Mend { requirement, reply })??;
        // What was found out about statements named what was missing.
        let link = &self.inner.shared.link;
        link.schema_changed("something that was missing has been made");
        Ok(())
    }

    pub(crate) fn health(&self) -> Health {
        let shared = &self.inner.shared;
        let (failures, last_failure) = shared.link.failures.known();
        let (feed_lost, feed_began) = shared.link.feed_times();
        Health {
            failures,
            last_failure,
            feed_lost,
            feed_began,
            schema: shared.link.schema(),
            replica_reads: shared.link.replay.reads(),
            waiting_reads: shared.waiting.reads.load(Ordering::Relaxed),
            waiting_writes: shared.waiting.writes.load(Ordering::Relaxed)
                + shared.link.pending.len(),
        }
    }

    /// True if a read of this thread would find a connection free.
    pub(crate) fn has_room(&self) -> bool {
        self.connection_thread().has_room()
    }

    /// True if anything that is read now may be kept.
    pub(crate) fn has_feed(&self) -> bool {
        self.inner.shared.link.has_feed()
    }

    pub(crate) fn stop(&self) {
        drop(self.inner.file_session.lock().take());
        for connection_thread in &self.inner.connection_threads {
            connection_thread.stop();
        }
        for thread in std::mem::take(&mut *self.inner.threads.lock()) {
            // A thread that panicked has ended, which is what is asked for.
            let _ = thread.join();
        }
        // Last: the writes that were taken have waited for it.
        drop(self.inner.feed.lock().take());
    }
}
