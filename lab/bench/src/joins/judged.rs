//! What the writer was told, and so what a page must show.

use std::sync::{Mutex, PoisonError};

use base_clock::Boottime;

/// The versions of some rows that were acknowledged, each with its moment.
pub(super) struct Acknowledged(Mutex<Vec<Vec<(Boottime, i64)>>>);

impl Acknowledged {
    /// Of this many rows, none of which has been changed.
    pub(super) fn new(rows: usize) -> Self {
        Self(Mutex::new(vec![Vec::new(); rows]))
    }

    /// The next version of a row was acknowledged just now.
    pub(super) fn note(&self, row: usize, version: i64) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows[row].push((Boottime::now(), version));
    }

    /// The last version of a row that was acknowledged before this moment; 0 if there is none.
    pub(super) fn due(&self, row: usize, before: Boottime) -> i64 {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rows[row].partition_point(|(at, _)| *at < before);
        let last = count.checked_sub(1).and_then(|last| rows[row].get(last));
        last.map_or(0, |(_, version)| *version)
    }
}

#[cfg(test)]
mod tests {
    use super::{Acknowledged, Boottime};

    #[test]
    fn what_was_acknowledged_before_is_due() {
        let rows = Acknowledged::new(2);
        let start = Boottime::now();
        rows.note(1, 1);
        let between = Boottime::now();
        rows.note(1, 2);
        let after = Boottime::now();
        assert_eq!([start, between, after].map(|at| rows.due(1, at)), [0, 1, 2]);
        assert_eq!(rows.due(0, after), 0);
    }
}
