//! Statements that a replica is not asked for, because it has lately failed at them.
//!
//! What fails there is read on the primary as well, so a statement that always does would cost
//! every page of it twice.

use std::collections::HashMap;
use std::time::Duration;

use base_clock::Boottime;
use foldhash::fast::RandomState;

/// For how long: a server that had too much to do may have caught up by then.
const SPARED: Duration = Duration::from_secs(10);
/// Maximum number of statements.
const MOST: usize = 1_024;

/// By the number of their [shape](crate::postgres::shape::Shape), and until when.
#[derive(Default)]
pub(super) struct ExcludedStatements(HashMap<u64, Boottime, RandomState>);

impl ExcludedStatements {
    /// Not again soon.
    pub(super) fn add(&mut self, shape: u64, now: Boottime) {
        if self.0.len() >= MOST {
            self.0.retain(|_, until| now < *until);
        }
        if self.0.len() < MOST {
            self.0.insert(shape, now.plus(SPARED));
        }
    }

    /// True if it is left to the primary.
    pub(super) fn has(&self, shape: u64, now: Boottime) -> bool {
        self.0.get(&shape).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_failed_is_spared_for_a_while() {
        let start = Boottime::now();
        let mut spared = ExcludedStatements::default();
        spared.add(1, start);
        assert!(spared.has(1, start) && !spared.has(2, start));
        assert!(!spared.has(1, start.plus(SPARED)));
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let start = Boottime::now();
        let mut spared = ExcludedStatements::default();
        for shape in 0..5_000 {
            spared.add(shape, start);
        }
        assert_eq!(spared.0.len(), MOST);
        let later = start.plus(SPARED);
        spared.add(7_000, later);
        assert_eq!(spared.0.len(), 1);
        assert!(spared.has(7_000, later));
    }
}
