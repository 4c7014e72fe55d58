//! Rows of a CSV file; each session has one.

use super::choice::Skew;
use millrace_stats::random::Random;

/// The rows, and how a session gets its row.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<csv::ByteRecord>,
    pick: Option<Skew>,
}

impl Table {
    /// At least one row. `pick` chooses the row of a session; `None` takes rows in turn.
    pub(crate) fn new(rows: Vec<csv::ByteRecord>, pick: Option<Skew>) -> Self {
        Self { rows, pick }
    }

    /// The value of a column in the row of session `number`. `random` has this table's random
    /// numbers for the session.
    pub(crate) fn value(&self, column: usize, number: u64, random: &mut Random) -> &[u8] {
        let count = self.rows.len() as u64;
        let row = match &self.pick {
            None => number % count,
            Some(spread) => spread.pick(count, random),
        };
        self.rows[row as usize].get(column).unwrap_or_default()
    }
}
