//! A position in a database's history that every node can compare with its own feed.
//!
//! A visitor who wrote through one node may reach another node next, whose feed may be behind. So
//! the response to a write carries the position of the write, and the next node checks whether its
//! own feed has passed that position (coherence.md, rule 19).

use std::sync::Arc;

/// A position that a feed has to pass before it has delivered a write. Positions of one source can
/// be compared with each other, others cannot. The response to a write also has a number, for a
/// write whose position is unknown or belongs to another history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    source: Arc<str>,
    at: u64,
    node: Arc<str>,
    number: u64,
}

impl Position {
    /// The position `at` in the history of `source`. `source` is empty if the position of the write
    /// is unknown.
    #[must_use]
    pub fn new(source: impl Into<Arc<str>>, at: u64) -> Self {
        Self {
            source: source.into(),
            at,
            node: Arc::default(),
            number: 0,
        }
    }

    /// Adds the `number` of the response in which `node` sent the position. The numbers of a node
    /// ascend. A number is assigned after the database has acknowledged the write.
    #[must_use]
    pub fn with_write_number(self, node: impl Into<Arc<str>>, number: u64) -> Self {
        Self {
            node: node.into(),
            number,
            ..self
        }
    }

    /// The history that the position belongs to. For PostgreSQL the system identifier and the
    /// timeline (and whether positions are transaction ids), for SQLite the process that wrote.
    /// Empty if the position is unknown.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The position in that history. For PostgreSQL a position in the log, or a transaction id if
    /// triggers report changes; for SQLite a tick.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The node that sent the position; empty for SQLite, whose source already names the process.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The number of the response in which that node sent the position.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}
