//! The store's limits.

use std::time::Duration;

/// The store's limits. What happens past a limit is simple, and is counted.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes that entries may take, their overhead included. Past it: eviction.
    pub memory: usize,
    /// The part of `memory`, in per cent, that [`Class::Negative`](crate::Class) entries may take.
    /// A client that asks for a million things that do not exist evicts no entry of a thing that
    /// exists.
    pub negative_percent: usize,
    /// The oldest heartbeat with which hits are given. Past it: no hits.
    pub max_staleness: Duration,
    /// Committed transactions that are kept because a running fill may not have seen them. Past it:
    /// a new epoch, in which only the marks of changes remain that the feed has not declared
    /// [visible](crate::Sink::visible).
    pub logged_changes: usize,
    /// Tags in those transactions. Past it: a new epoch.
    pub logged_tags: usize,
    /// Fills that may run or be queued. Past it: [`Joined::Refused`](crate::Joined).
    pub flights: usize,
    /// Requests that may wait for fills. Past it: [`Joined::Refused`](crate::Joined).
    pub waiters: usize,
    /// Keys of hot entries that wait to be made again after a change ended the entries. Past it:
    /// the hottest stay. 0: no key is queued.
    pub ahead: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            negative_percent: 5,
            max_staleness: Duration::from_secs(1),
            logged_changes: 4096,
            logged_tags: 1 << 18,
            flights: 4096,
            waiters: 65_536,
            ahead: 0,
        }
    }
}
