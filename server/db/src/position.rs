//! A place in a database's history that every node can tell.
//!
//! A visitor who has written through one node may be sent to another, whose feed may be behind. So the answer to a write
//! carries the position that holds it, and the next node is asked whether its own feed has come so far (COHERENCE, rule 19).

use std::sync::Arc;

/// How far a feed must have come to have brought something. Positions of one source can be compared, others cannot. Besides, the answer
/// to a write has a number, which helps where the place is not known, or is one of another history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    source: Arc<str>,
    at: u64,
    node: Arc<str>,
    number: u64,
}

impl Position {
    /// The place `at` in the history of `source`, which is empty if nobody knows where the write is.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, at: u64) -> Self {
        Self {
            source: source.into(),
            at,
            node: Arc::default(),
            number: 0,
        }
    }

    /// The same, as `node` has told it in its answer of this `number`. Numbers of a node ascend; one is given out once the write was
    /// acknowledged by the database.
    #[must_use]
    pub fn told_by(self, node: impl Into<Arc<str>>, number: u64) -> Self {
        Self {
            node: node.into(),
            number,
            ..self
        }
    }

    /// Whose history it is: of PostgreSQL the system identifier and the timeline (and whether its places are transactions), of SQLite the process that has written. Empty if that is not known.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The place in it: of PostgreSQL a position in the log, or a transaction id where triggers tell; of SQLite a tick.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The node that has told it; empty for SQLite, where the place says as much.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The number of that node's answer.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}
