//! A place in a database's history that every node can tell.
//!
//! A visitor who has written through one node may be sent to another, whose feed may be behind. So the answer to a write
//! carries the position that holds it, and the next node is asked whether its own feed has come so far (COHERENCE, rule 19).

use std::sync::Arc;

/// How far a feed must have come to have brought something. Positions of one source can be compared, others cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    source: Arc<str>,
    at: u64,
}

impl Position {
    /// The place `at` in the history of `source`.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, at: u64) -> Self {
        Self {
            source: source.into(),
            at,
        }
    }

    /// One that no feed ever passes: nobody knows where the write is.
    #[must_use]
    pub fn unknown() -> Self {
        Self::new("", 0)
    }

    /// Whose history it is: of PostgreSQL the system identifier and the timeline, of SQLite the process that has written. Empty if that is not known.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The place in it: of PostgreSQL a position in the log, of SQLite a tick.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }
}
