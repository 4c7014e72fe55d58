//! Rows of a CSV file, of which each session has one.

use super::choice::Skew;
use millrace_stats::random::Random;

/// The rows, and how a session comes to its own.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<csv::ByteRecord>,
    pick: Option<Skew>,
}

impl Table {
    /// At least one row. `pick` is how a session comes to its row: `None` is in turn.
    pub(crate) fn new(rows: Vec<csv::ByteRecord>, pick: Option<Skew>) -> Self {
        Self { rows, pick }
    }

    /// The value in a column of the row of session `number`, whose random numbers for this table are `random`.
    pub(crate) fn value(&self, column: usize, number: u64, random: &mut Random) -> &[u8] {
        let count = self.rows.len() as u64;
        let row = match &self.pick {
            None => number % count,
            Some(spread) => spread.pick(count, random),
        };
        self.rows[row as usize].get(column).unwrap_or_default()
    }
}
