//! What all threads of a scenario share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::coherence::log::Log;
use crate::coherence::quiet_period::QuietPeriod;
use crate::coherence::rounds::LOOK;
use crate::coherence::scenario::LeastReads;
use crate::coherence::span::Span;
use base_clock::Boottime;

/// A server under attack, as its visitors see it.
pub(crate) trait Target: Send + Sync {
    /// Returns the address at which the node listens now; a node that was killed comes back
    /// elsewhere.
    fn address(&self) -> SocketAddr;
    /// Its `max_staleness`.
    fn bound(&self) -> Duration;
}

/// Counts while the scenario lasts; the whole is in the report at its end.
#[derive(Debug, Default)]
pub(crate) struct LiveCounts {
    pub(crate) reads: AtomicU64,
    pub(crate) hits: AtomicU64,
    /// Late and mixed pages, and late streams.
    pub(crate) wrong: AtomicU64,
    pub(crate) faults: AtomicU64,
    /// As [`Report::quiet_period`](crate::coherence::report::Report::quiet_period) counts them.
    pub(crate) quiet_reads: AtomicU64,
    pub(crate) quiet_hits: AtomicU64,
    pub(crate) quiet_late: AtomicU64,
}

impl LiveCounts {
    /// Counts a page.
    pub(crate) fn page(&self, is_hit: bool, is_wrong: bool) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.hits.fetch_add(u64::from(is_hit), Ordering::Relaxed);
        self.wrong.fetch_add(u64::from(is_wrong), Ordering::Relaxed);
    }

    /// Counts a look at a stream.
    pub(crate) fn looked(&self, is_late: bool) {
        self.wrong.fetch_add(u64::from(is_late), Ordering::Relaxed);
    }

    /// Counts a page of a quiet period.
    pub(crate) fn quiet_page(&self, is_hit: bool, is_late: bool) {
        self.quiet_reads.fetch_add(1, Ordering::Relaxed);
        self.quiet_hits
            .fetch_add(u64::from(is_hit), Ordering::Relaxed);
        self.quiet_late
            .fetch_add(u64::from(is_late), Ordering::Relaxed);
    }

    /// True if at least as many pages have been read as `least` says.
    pub(crate) fn has_read(&self, least: &LeastReads) -> bool {
        [
            (&self.reads, least.all),
            (&self.hits, least.hits),
            (&self.quiet_reads, least.quiet),
            (&self.quiet_hits, least.quiet_hits),
        ]
        .into_iter()
        .all(|(count, least)| count.load(Ordering::Relaxed) >= least)
    }

    /// Counts a fault.
    pub(crate) fn fault_injected(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }
}

/// The nodes, the log, and how long it lasts.
pub(crate) struct Context {
    pub(crate) nodes: Vec<Box<dyn Target>>,
    pub(crate) log: Log,
    pub(crate) span: Span,
    pub(crate) tally: LiveCounts,
    pub(crate) quiet_period: QuietPeriod,
    /// Forms move albums and artists. A form that fails must then have ended with its node.
    pub(crate) forms_move: bool,
}

impl Context {
    /// With the schema as [`create`](crate::coherence::schema::create) has made it a moment ago.
    pub(crate) fn new(nodes: Vec<Box<dyn Target>>) -> Self {
        Self {
            nodes,
            log: Log::new(),
            span: Span::default(),
            tally: LiveCounts::default(),
            quiet_period: QuietPeriod::default(),
            forms_move: false,
        }
    }

    /// Waits until `is_enough`, at most for `patience`.
    pub(crate) fn wait_until(&self, patience: Duration, mut is_enough: impl FnMut() -> bool) {
        let began = Boottime::now();
        while !is_enough() && Boottime::now().since(began) < patience {
            self.span.pass(LOOK);
        }
    }

    /// The bound of those nodes that may be the least behind.
    pub(crate) fn shortest_bound(&self) -> Duration {
        let bounds = self.nodes.iter().map(|node| node.bound());
        bounds.min().unwrap_or_default()
    }
}
