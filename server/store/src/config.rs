//! The store's limits.

use std::time::Duration;

/// The store's limits. Past each of them something simple happens, and is counted.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes that entries may take, their overhead included. Past it: eviction.
    pub memory: usize,
    /// The part of `memory`, in per cent, that [`Class::Negative`](crate::Class) entries may take: whoever asks for a
    /// million things that do not exist evicts nothing that does.
    pub negative_percent: usize,
    /// How old the feed may be while its word still counts. Past it: no hits.
    pub max_staleness: Duration,
    /// Committed transactions that are kept because a fill is running that may not have seen them. Past it: a new epoch, in
    /// which only the marks of those are kept that the feed has not said to be [visible](crate::Sink::visible).
    pub logged_changes: usize,
    /// Tags in those transactions. Past it: a new epoch.
    pub logged_tags: usize,
    /// Fills that may run or be queued. Past it: [`Joined::Refused`](crate::Joined).
    pub flights: usize,
    /// Requests that may wait for fills. Past it: [`Joined::Refused`](crate::Joined).
    pub waiters: usize,
    /// Keys of hot entries that wait to be made again after a change has ended them. Past it: the hottest stay. 0: none is noticed.
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
