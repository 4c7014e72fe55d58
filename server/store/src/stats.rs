//! Counters of the store.

/// Counters since the start and gauges of the moment. The caller counts hits, because the caller
/// can do so without writing to memory that workers share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Stored entries.
    pub entries: usize,
    /// Bytes that the entries take.
    pub bytes: usize,
    /// Distinct tags on which a stored entry depends.
    pub tags: usize,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Why the present epoch began.
    pub epoch_reason: String,
    /// Changes applied.
    pub changes: u64,
    /// Entries marked one by one by changes.
    pub invalidated: u64,
    /// Fills that were stored.
    pub stored: u64,
    /// Fills that were not stored because of a change that was not visible to them.
    pub fenced: u64,
    /// Fills not stored, because only a stranger had asked and there was no room.
    pub unproven: u64,
    /// Fills that ended in a later epoch than they had begun in.
    pub outlived: u64,
    /// Entries that were evicted.
    pub evicted: u64,
    /// Requests that waited for the fill of another request.
    pub waited: u64,
    /// Requests turned away because too many fills ran or too many requests waited.
    pub refused: u64,
    /// Fills running or queued at the moment.
    pub flights: usize,
    /// Requests waiting at the moment.
    pub waiting: usize,
    /// Changes held in the log at the moment, and the tags in them.
    pub logged: usize,
    /// Tags in the logged changes.
    pub logged_tags: usize,
    /// Keys that wait to be made ahead at the moment.
    pub ahead: usize,
    /// Entries that sweeps have examined.
    pub swept: u64,
    /// Keys that left the queue for hotter ones, or waited too long.
    pub ahead_dropped: u64,
    /// Values that were stored before a request asked for them.
    pub made_ahead: u64,
    /// Values among them that ended before a request asked for them.
    pub made_unused: u64,
}
