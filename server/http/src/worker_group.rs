//! The workers of one server: the count of connections, the shutdown, and the counters.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::Mailbox;

/// WorkerGroup by all workers of a server. Only the count of connections is written by several
/// threads; every worker has counters of its own, so that a request touches no cache line of
/// another core.
#[derive(Debug, Default)]
pub struct WorkerGroup {
    open: AtomicUsize,
    shutdown: AtomicBool,
    workers: Mutex<Vec<RegisteredWorker>>,
}

/// A worker, ended ones included.
#[derive(Debug)]
struct RegisteredWorker {
    counters: Arc<Counters>,
    mailbox: Arc<Mailbox>,
}

impl WorkerGroup {
    /// For one server.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Asks all workers to finish: no new connections, idle ones are closed, requests in flight are
    /// answered within [`Limits::drain_timeout`](crate::Limits::drain_timeout). Cannot be taken
    /// back. Not for signal handlers.
    pub fn shutdown(&self) {
        self.shutdown.store(true, Ordering::SeqCst);
        for worker in self.workers().iter() {
            worker.mailbox.ring();
        }
    }

    /// Whether [`WorkerGroup::shutdown`] was called.
    #[must_use]
    pub fn is_shutdown(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst)
    }

    /// Connections open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// The sums over all workers, ended ones included. Not one moment's state: workers go on
    /// meanwhile.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            open: self.open(),
            ..Stats::default()
        };
        for worker in self.workers().iter() {
            worker.counters.add_to(&mut stats);
        }
        stats
    }

    /// Counters for a worker, whose `mailbox` is rung at a shutdown that is asked for later.
    pub(crate) fn register(&self, mailbox: &Arc<Mailbox>) -> Arc<Counters> {
        let counters = Arc::<Counters>::default();
        self.workers().push(RegisteredWorker {
            counters: Arc::clone(&counters),
            mailbox: Arc::clone(mailbox),
        });
        counters
    }

    fn workers(&self) -> MutexGuard<'_, Vec<RegisteredWorker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more open connection, unless `limit` are open.
    pub(crate) fn admit(self: &Arc<Self>, limit: usize) -> Option<OpenConnection> {
        if self.open.fetch_add(1, Ordering::Relaxed) < limit {
            return Some(OpenConnection(Arc::clone(self)));
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

/// Counts an open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(Arc<WorkerGroup>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a server has done since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections open now.
    pub open: usize,
    /// Connections accepted, those over the limit included.
    pub accepted: u64,
    /// Connections answered with 503, or closed at once, over the limit.
    pub over_limit: u64,
    /// Failures of `accept`, such as too few file descriptors.
    pub accept_errors: u64,
    /// Requests given to the service.
    pub requests: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets, heads included.
    pub bytes_out: u64,
    /// Requests refused by the protocol layer, by status.
    pub refused: Vec<(u16, u64)>,
    /// Panics of the service, each answered with 500.
    pub panics: u64,
    /// Connections closed because they were idle.
    pub idle_timeouts: u64,
    /// Heads that took too long (answered with 408).
    pub head_timeouts: u64,
    /// Bodies that came too slowly (answered with 408).
    pub body_timeouts: u64,
    /// Heads that were ended because unfinished ones took too much memory (answered with 408).
    pub heads_ended: u64,
    /// Bodies that were ended because bodies took too much memory or disk (answered with 503).
    pub bodies_ended: u64,
    /// Bodies that arrived in a file.
    pub bodies_in_files: u64,
    /// Responses that were read too slowly (the connection was closed).
    pub write_timeouts: u64,
    /// Handshakes of TLS that were completed without a secret of an earlier connection.
    pub full_handshakes: u64,
    /// Handshakes of TLS that resumed an earlier connection.
    pub resumed_handshakes: u64,
    /// Connections that ended because TLS failed: nothing in common, a broken record, plain HTTP.
    pub tls_failures: u64,
    /// Waits for events that ended before the thread would have slept
    /// ([`Limits::spins`](crate::Limits::spins)).
    pub waits_awake: u64,
}

/// A counter with one writer: its worker. Plain loads and stores, no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

const REFUSED: [u16; 11] = [400, 408, 413, 414, 415, 417, 421, 431, 501, 503, 505];

/// The counters of one worker; aligned so that no other thread writes to their cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) accepted: Counter,
    pub(crate) over_limit: Counter,
    pub(crate) accept_errors: Counter,
    pub(crate) requests: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    pub(crate) panics: Counter,
    pub(crate) idle_timeouts: Counter,
    pub(crate) head_timeouts: Counter,
    pub(crate) body_timeouts: Counter,
    pub(crate) heads_ended: Counter,
    pub(crate) bodies_ended: Counter,
    pub(crate) bodies_in_files: Counter,
    pub(crate) write_timeouts: Counter,
    pub(crate) full_handshakes: Counter,
    pub(crate) resumed_handshakes: Counter,
    pub(crate) tls_failures: Counter,
    pub(crate) waits_awake: Counter,
    refused: [Counter; REFUSED.len()],
}

impl Counters {
    pub(crate) fn refused(&self, status: u16) {
        if let Some(at) = REFUSED.iter().position(|&known| known == status) {
            self.refused[at].add(1);
        }
    }

    fn add_to(&self, stats: &mut Stats) {
        stats.accepted += self.accepted.get();
        stats.over_limit += self.over_limit.get();
        stats.accept_errors += self.accept_errors.get();
        stats.requests += self.requests.get();
        stats.bytes_in += self.bytes_in.get();
        stats.bytes_out += self.bytes_out.get();
        stats.panics += self.panics.get();
        stats.idle_timeouts += self.idle_timeouts.get();
        stats.head_timeouts += self.head_timeouts.get();
        stats.body_timeouts += self.body_timeouts.get();
        stats.heads_ended += self.heads_ended.get();
        stats.bodies_ended += self.bodies_ended.get();
        stats.bodies_in_files += self.bodies_in_files.get();
        stats.write_timeouts += self.write_timeouts.get();
        stats.full_handshakes += self.full_handshakes.get();
        stats.resumed_handshakes += self.resumed_handshakes.get();
        stats.tls_failures += self.tls_failures.get();
        stats.waits_awake += self.waits_awake.get();
        stats.refused.resize(REFUSED.len(), (0, 0));
        for ((sum, status), counter) in stats.refused.iter_mut().zip(REFUSED).zip(&self.refused) {
            *sum = (status, sum.1 + counter.get());
        }
    }
}
