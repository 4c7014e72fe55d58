//! How an SQLite database is opened.

use std::path::PathBuf;
use std::time::Duration;

use crate::FeedKind;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file; it is created if there is none.
    pub path: PathBuf,
    /// The number of reader threads, each with a connection.
    pub readers: usize,
    /// The number of reads that may wait for a thread, and of writes that may wait. One more is
    /// [`crate::Error::Overloaded`].
    pub queue: usize,
    /// The time between two polls for commits of other programs.
    pub poll: Duration,
    /// How long a write waits for another program's transaction.
    pub busy_timeout: Duration,
    /// How long one statement may run.
    pub statement_timeout: Duration,
    /// With [`FeedKind::Triggers`] the commits of other programs end the results that show their
    /// rows, by triggers that a [requirement](crate::Database::requirements) adds; otherwise all
    /// results.
    pub feed: FeedKind,
}

impl SqliteOptions {
    /// The defaults: 4 readers, a queue of 1024, a poll every 20 ms, 5 s for other programs and for
    /// statements.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            readers: 4,
            queue: 1_024,
            poll: Duration::from_millis(20),
            busy_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
            feed: FeedKind::default(),
        }
    }
}
