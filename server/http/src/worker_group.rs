//! The workers of one server: the count of connections, the shutdown, and the counters.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client_counts::ClientTable;
use crate::event::Mailbox;
use crate::request_counts::{RequestCounts, SharedSeries, merged};

/// The state that all workers of a server share. Only the counts of connections and of clients are
/// written by several threads; every worker has counters of its own, so that few requests touch a
/// cache line of another core.
#[derive(Debug, Default)]
pub struct WorkerGroup {
    open: AtomicUsize,
    shutdown: AtomicBool,
    pub(crate) clients: ClientTable,
    workers: Mutex<Vec<RegisteredWorker>>,
}

/// A worker, ended ones included.
#[derive(Debug)]
struct RegisteredWorker {
    counters: Arc<Counters>,
    series: Arc<SharedSeries>,
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

    /// True if [`WorkerGroup::shutdown`] was called.
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
            stats.series += worker.series.len();
            stats.requests_merged += worker.series.merged_requests();
        }
        stats
    }

    /// Returns the requests that were answered or given up since the start, by series, merged over
    /// all workers. An answer is counted at the end of the turn in which its last byte was handed
    /// to the socket.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestCounts> {
        let workers = self.workers();
        merged(workers.iter().map(|worker| &*worker.series))
    }

    /// Counters and series for a worker, whose `mailbox` is rung at a shutdown that is asked for
    /// later.
    pub(crate) fn register(&self, mailbox: &Arc<Mailbox>) -> (Arc<Counters>, Arc<SharedSeries>) {
        let (counters, series) = (Arc::<Counters>::default(), Arc::<SharedSeries>::default());
        self.workers().push(RegisteredWorker {
            counters: Arc::clone(&counters),
            series: Arc::clone(&series),
            mailbox: Arc::clone(mailbox),
        });
        (counters, series)
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

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    /// None if the connection is over the limit, and is only answered with 503.
    _open: Option<OpenConnection>,
    count: Rc<Cell<usize>>,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

impl ConnectionPermit {
    /// Counts a connection in `count` too.
    pub(crate) fn new(open: Option<OpenConnection>, count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self {
            _open: open,
            count: Rc::clone(count),
        }
    }
}

/// A counter with one writer: its worker. Plain loads and stores, no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

const REFUSED: [u16; 11] = [400, 408, 413, 414, 415, 417, 421, 431, 501, 503, 505];

/// A counter: its name, its name as a metric, what it counts, and its value.
type CounterFigure = (&'static str, &'static str, &'static str, u64);

/// Defines the counters, each named once: a worker's, the sums, and their names.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident = $metric:literal,)+) => {
        /// Counts of a server since it started.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            /// Connections open now.
            pub open: usize,
            /// Requests refused by the protocol layer, by status.
            pub refused: Vec<(u16, u64)>,
            /// Series in which requests are counted, of all workers.
            pub series: usize,
            /// Requests for which there was no room in a series of their own.
            pub requests_merged: u64,
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Stats {
            /// Returns the counters, each with its name, its name as a metric, and what it counts.
            pub fn counters(&self) -> impl Iterator<Item = CounterFigure> {
                [$((
                    stringify!($name),
                    concat!("millpond_", $metric, "_total"),
                    concat!($($doc),+),
                    self.$name,
                ),)+].into_iter()
            }
        }

        /// The counters of one worker; aligned so that no other thread writes to their cache lines.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
            refused: [Counter; REFUSED.len()],
        }

        impl Counters {
            fn add_counts_to(&self, stats: &mut Stats) {
                $(stats.$name += self.$name.get();)+
            }
        }
    };
}

counters! {
    /// Connections accepted, those over the limit included.
    accepted = "connections_accepted",
    /// Connections answered with 503, or closed at once, over the limit.
    over_limit = "connections_over_limit",
    /// Connections over the limit of their client, which `over_limit` counts too.
    over_client_connections = "connections_over_client_limit",
    /// Requests over the rate of their client (answered with 429).
    over_client_requests = "requests_over_client_limit",
    /// Writes over the rate of their client (answered with 429).
    over_client_writes = "writes_over_client_limit",
    /// Pauses of connections whose client has moved more bytes than it may.
    client_pauses = "connection_pauses",
    /// Connections of proxies that began without a header of the PROXY protocol (closed).
    proxy_headers_missing = "proxy_headers_missing",
    /// Failures of `accept`, such as too few file descriptors.
    accept_errors = "accept_errors",
    /// Requests given to the service.
    requests = "requests_given",
    /// Bytes read from sockets.
    bytes_in = "received_bytes",
    /// Bytes written to sockets, heads included.
    bytes_out = "sent_bytes",
    /// Panics of the service, each answered with 500.
    panics = "panics",
    /// Connections closed because they were idle.
    idle_timeouts = "connections_idle_timeouts",
    /// Heads that took too long (answered with 408).
    head_timeouts = "head_timeouts",
    /// Bodies that came too slowly (answered with 408).
    body_timeouts = "body_timeouts",
    /// Heads of HTTP/1 that were not complete when the connection ended.
    heads_abandoned = "heads_abandoned",
    /// Heads that were ended because unfinished ones took too much memory (answered with 408).
    heads_ended = "heads_ended",
    /// Bodies that were ended because bodies took too much memory or disk (answered with 503).
    bodies_ended = "bodies_ended",
    /// Bodies that arrived in a file.
    bodies_in_files = "bodies_in_files",
    /// Responses that were read too slowly (the connection was closed).
    write_timeouts = "write_timeouts",
    /// Handshakes of TLS that were completed without a secret of an earlier connection.
    full_handshakes = "tls_full_handshakes",
    /// Handshakes of TLS that resumed an earlier connection.
    resumed_handshakes = "tls_resumed_handshakes",
    /// Connections that ended because TLS failed: nothing in common, a broken record, plain HTTP.
    tls_failures = "tls_failures",
    /// Waits for events that ended before the thread would have slept.
    waits_awake = "worker_waits_awake",
}

impl Counters {
    pub(crate) fn refused(&self, status: u16) {
        if let Some(at) = REFUSED.iter().position(|&known| known == status) {
            self.refused[at].add(1);
        }
    }

    fn add_to(&self, stats: &mut Stats) {
        self.add_counts_to(stats);
        stats.refused.resize(REFUSED.len(), (0, 0));
        for ((sum, status), counter) in stats.refused.iter_mut().zip(REFUSED).zip(&self.refused) {
            *sum = (status, sum.1 + counter.get());
        }
    }
}
