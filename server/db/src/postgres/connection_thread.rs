//! Threads with connections: each has its own event loop, its share of the pool, and a queue of
//! jobs.
//!
//! A caller's thread keeps to one of them, so that its requests find the same connections. A job is
//! taken up when a connection is free for it, and then runs to its end even if its caller has gone.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{JoinSet, LocalSet};

use super::connection_permits::{
    ConnectionPermit, ConnectionPermits, NextJob, PermitRequest, next,
};
use super::context::{DatabaseContext, QueueLengths};
use super::pool::Pool;
use super::rehearsal::{self, Rehearsal};
use super::replica::Replicas;
use super::sql::Rewritten;
use super::statement::Statement;
use super::{migrate, read, requirements, statement, write};
use crate::{
    Call, Error, Migration, ReadResult, ReadTerms, Requirement, SqlError, WriteResult, WriteStep,
};

/// Request to a thread.
pub(super) enum Job {
    Read {
        calls: Vec<Call>,
        terms: ReadTerms,
        reply: oneshot::Sender<Result<ReadResult, Error>>,
    },
    Write {
        steps: Vec<WriteStep>,
        reply: oneshot::Sender<Result<WriteResult, Error>>,
    },
    /// Connects, unless there is a connection.
    Connect {
        reply: std::sync::mpsc::Sender<Result<(), Error>>,
    },
    /// Its caller waits without an event loop, as for a migration.
    Prepare {
        sql: Rewritten,
        depends: Option<Vec<String>>,
        reply: std::sync::mpsc::Sender<Result<Statement, SqlError>>,
    },
    Migrate {
        migrations: Vec<Migration>,
        reply: std::sync::mpsc::Sender<Result<Vec<String>, Error>>,
    },
    Rehearse {
        migrations: Vec<Migration>,
        reply: std::sync::mpsc::Sender<Result<Rehearsal, Error>>,
    },
    /// Asks for the requirements that the server lacks so that results that are read from the
    /// tables may be kept.
    Requirements {
        tables: BTreeSet<u32>,
        reply: std::sync::mpsc::Sender<Result<Vec<Requirement>, Error>>,
    },
    Mend {
        requirement: Requirement,
        reply: std::sync::mpsc::Sender<Result<(), Error>>,
    },
}

impl Job {
    /// Returns the number of those that wait, of its kind.
    fn count<'a>(&self, waiting: &'a QueueLengths) -> &'a AtomicUsize {
        match self {
            Self::Read { .. }
            | Self::Prepare { .. }
            | Self::Connect { .. }
            | Self::Requirements { .. } => &waiting.reads,
            Self::Write { .. }
            | Self::Migrate { .. }
            | Self::Rehearse { .. }
            | Self::Mend { .. } => &waiting.writes,
        }
    }
}

/// Servers on which a thread's jobs are done.
struct Servers {
    pool: Pool,
    replicas: Replicas,
    turns: ConnectionPermits,
    /// True once the thread takes no more jobs.
    ending: watch::Sender<bool>,
}

/// The caller's side of one thread.
pub(super) struct ConnectionThread {
    jobs: mpsc::Sender<Job>,
    stop: Arc<Notify>,
    runtime: tokio::runtime::Handle,
    connections: usize,
    /// Jobs that have a connection, or are about to.
    running: Arc<AtomicUsize>,
}

impl ConnectionThread {
    /// Starts the thread with `connections` of the pool.
    pub(super) fn start(
        shared: &Arc<DatabaseContext>,
        index: usize,
        connections: usize,
        queue: usize,
    ) -> Result<(Self, thread::JoinHandle<()>), Error> {
        let no_thread = |error: std::io::Error| Error::unavailable(format!("no thread: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(no_thread)?;
        let (jobs, taken) = mpsc::channel(queue);
        let stop = Arc::new(Notify::new());
        let shared = Arc::clone(shared);
        let stopped = Arc::clone(&stop);
        let running = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&running);
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new()
            .name(format!("millpond-db-{index}"))
            .spawn(move || {
                let replicas = Replicas::new(&shared, connections);
                let (turns, wanted) = ConnectionPermits::new(connections, counted);
                let servers = Rc::new(Servers {
                    pool: Pool::new(shared),
                    replicas,
                    turns,
                    ending: watch::Sender::new(false),
                });
                let work = serve(servers, taken, wanted, stopped);
                LocalSet::new().block_on(&runtime, work);
            })
            .map_err(no_thread)?;
        let connection_thread = Self {
            jobs,
            stop,
            runtime: handle,
            connections,
            running,
        };
        Ok((connection_thread, thread))
    }

    /// True if a job would be taken up at once.
    pub(super) fn has_room(&self) -> bool {
        let is_empty = self.jobs.capacity() == self.jobs.max_capacity();
        is_empty && self.running.load(Ordering::Relaxed) < self.connections
    }

    /// Hands a job over, or says at once why not: a caller never waits here.
    pub(super) fn push(&self, shared: &DatabaseContext, job: Job) -> Result<(), Error> {
        let waiting = job.count(&shared.waiting);
        waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.try_send(job).map_err(|refused| {
            waiting.fetch_sub(1, Ordering::Relaxed);
            match refused {
                mpsc::error::TrySendError::Full(_) => Error::Overloaded,
                mpsc::error::TrySendError::Closed(_) => Error::stopping(),
            }
        })
    }

    /// Has the thread look after something small beside its jobs. Once it has ended, nothing
    /// becomes of it.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(work));
    }

    /// Takes no more jobs; those that were taken are done, but for questions about the database.
    pub(super) fn stop(&self) {
        self.stop.notify_one();
    }
}

/// Returns the lane of `lanes` that the calling thread keeps to: each thread takes the next one at
/// its first call.
pub(super) fn own(lanes: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    OWN.with(|own| {
        let number = own.get().unwrap_or_else(|| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            own.set(Some(number));
            number
        });
        number % lanes
    })
}

/// The life of a thread: a turn for each connection, a task for each job.
async fn serve(
    servers: Rc<Servers>,
    mut jobs: mpsc::Receiver<Job>,
    mut wanted: mpsc::UnboundedReceiver<PermitRequest>,
    stop: Arc<Notify>,
) {
    let mut running = JoinSet::new();
    let ending = servers.ending.clone();
    loop {
        let Some(permit) = servers.turns.permit().await else {
            break;
        };
        let job = match next(&mut wanted, &stop, &mut jobs).await {
            NextJob::Give(again) => {
                // A caller that has gone drops it.
                let _ = again.send(permit);
                continue;
            }
            NextJob::Begin(job) => job,
            NextJob::End => break,
        };
        let waiting = &servers.pool.shared.waiting;
        job.count(waiting).fetch_sub(1, Ordering::Relaxed);
        // A job that panicked has dropped its reply, and its waiter reports the failure.
        while running.try_join_next().is_some() {}
        let turn = servers.turns.taken(permit);
        let servers = Rc::clone(&servers);
        running.spawn_local(async move { work(&servers, job, turn).await });
    }
    drop(wanted);
    ending.send_replace(true);
    while running.join_next().await.is_some() {}
    servers.pool.close().await;
    servers.replicas.close().await;
}

/// Reads where that may be done, and answers. Counterexample: *With its turn at the primary held
/// meanwhile: a replica that is slow keeps writes and sign-ins waiting for a primary that has
/// nothing to do.*
async fn read_somewhere(
    servers: &Servers,
    calls: &[Call],
    is_spread: bool,
    mut turn: ConnectionPermit,
    reply: oneshot::Sender<Result<ReadResult, Error>>,
) {
    let replica_read = if is_spread {
        servers.replicas.replica_read(calls)
    } else {
        None
    };
    if let Some(replica_read) = replica_read {
        drop(turn);
        if let Some(read) = replica_read.run(calls).await {
            let _ = reply.send(Ok(read));
            return;
        }
        let Some(another) = servers.turns.another().await else {
            let _ = reply.send(Err(Error::stopping()));
            return;
        };
        // Who has left meanwhile gets nothing of the primary's time.
        if reply.is_closed() {
            return;
        }
        turn = another;
    }
    let read = read::read(&servers.pool, calls).await;
    drop(turn);
    let _ = reply.send(read);
}

/// Does one job. If the caller has gone, the reply is dropped.
async fn work(servers: &Servers, job: Job, turn: ConnectionPermit) {
    let Servers { pool, replicas, .. } = servers;
    match job {
        Job::Read {
            calls,
            terms: ReadTerms { is_spread, held },
            reply,
        } => {
            if !reply.is_closed() {
                read_somewhere(servers, &calls, is_spread, turn, reply).await;
            }
            drop(held);
        }
        Job::Write { steps, reply } => {
            if !reply.is_closed() {
                let done = write::write(pool, &steps).await;
                // The next may have the connection while this one waits for the feed.
                drop(turn);
                let done = match done {
                    Ok((results, arrival)) => Ok(WriteResult {
                        results,
                        position: write::await_feed(&pool.shared, arrival).await,
                    }),
                    Err(error) => Err(error),
                };
                let _ = reply.send(done);
            }
        }
        Job::Connect { reply } => {
            let _ = reply.send(pool.get().await.map(|connection| pool.put(connection)));
        }
        Job::Prepare {
            sql,
            depends,
            reply,
        } => {
            let _ = reply.send(statement::prepare(pool, sql, depends).await);
        }
        Job::Migrate { migrations, reply } => {
            let _ = reply.send(migrate::migrate(&pool.shared, &migrations).await);
        }
        Job::Rehearse { migrations, reply } => {
            let _ = reply.send(rehearsal::rehearse(pool, &migrations).await);
        }
        Job::Requirements { tables, reply } => {
            let mut ending = servers.ending.subscribe();
            // A server that does not answer must not hold up the end.
            let answer = tokio::select! {
                answer = requirements::ask(pool, replicas, &tables) => answer,
                _ = ending.wait_for(|is_ending| *is_ending) => Err(Error::stopping()),
            };
            let _ = reply.send(answer);
        }
        Job::Mend { requirement, reply } => {
            let _ = reply.send(requirements::repair(pool, &requirement).await);
        }
    }
}
