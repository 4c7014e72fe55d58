//! Rows of a CSV file, of which each session has one.

use super::choice::Spread;
use crate::random::Random;

/// A table with named columns.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    rows: Vec<csv::ByteRecord>,
    pub(crate) pick: Option<Spread>,
}

impl Table {
    /// Rows of `columns` values each; at least one. `pick` is how a session comes to its row: `None` is in turn.
    pub(crate) fn new(
        columns: Vec<String>,
        rows: Vec<csv::ByteRecord>,
        pick: Option<Spread>,
    ) -> Self {
        Self {
            columns,
            rows,
            pick,
        }
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
