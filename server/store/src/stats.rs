//! What the store has done, in numbers.

/// Counters since the start and gauges of the moment. Hits are counted by the caller, which can do it without
/// writing to memory that workers share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries and the bytes they take, overhead included.
    pub entries: usize,
    /// Bytes that the entries take.
    pub bytes: usize,
    /// Distinct tags that something stored depends on.
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
    /// Fills that a change not visible to them contradicted.
    pub fenced: u64,
    /// Fills that ended in another epoch than they had begun in.
    pub outlived: u64,
    /// Entries that had to make room.
    pub evicted: u64,
    /// Requests that waited for another's fill.
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
    /// Entries that were looked at, time and again, for hot ones that had ended without being touched.
    pub swept: u64,
    /// Keys that had to make room for hotter ones, or waited too long.
    pub ahead_dropped: u64,
    /// Fills that were stored before anybody had asked for them.
    pub made_ahead: u64,
    /// Those of them that were over before anybody had asked.
    pub made_in_vain: u64,
}
