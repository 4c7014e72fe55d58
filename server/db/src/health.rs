//! The state of the background work.

use std::sync::Arc;

use base_clock::Boottime;
use parking_lot::Mutex;

/// Background failures and the length of the queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Polls for changes that failed, and panics that were caught. While polls fail, no heartbeat
    /// is sent.
    pub failures: u64,
    /// The last failure, for the owner's log.
    pub last_failure: Option<Arc<str>>,
    /// Since when PostgreSQL's feed is lost, or has not begun; none while there is one, and for
    /// SQLite.
    pub feed_lost: Option<Boottime>,
    /// When PostgreSQL's feed last began.
    pub feed_began: Option<Boottime>,
    /// Moves when PostgreSQL's catalog may have changed.
    pub schema: u64,
    /// Reads that replicas answered.
    pub replica_reads: u64,
    /// Reads that wait for a connection.
    pub waiting_reads: usize,
    /// Writes that wait for a connection, or for their change to arrive through the feed.
    pub waiting_writes: usize,
}

/// Failures in the background: how many there were, and the last.
#[derive(Default)]
pub(crate) struct Failures(Mutex<(u64, Option<Arc<str>>)>);

impl Failures {
    pub(crate) fn count(&self, message: &str) {
        let mut failures = self.0.lock();
        *failures = (failures.0 + 1, Some(message.into()));
    }

    pub(crate) fn known(&self) -> (u64, Option<Arc<str>>) {
        self.0.lock().clone()
    }
}
