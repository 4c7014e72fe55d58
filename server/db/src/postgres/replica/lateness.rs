//! Reads in a row that a replica has not answered in time.
//!
//! The first may be the fault of what was read. Counterexample: *one cold statement takes the
//! replica from everybody, closes connections whose caches have just been filled, and meets cold
//! ones again after the pause.* The second says that the server has too much to do.

use base_clock::Boottime;

/// When the first of them was given up, if nothing was answered since.
#[derive(Default)]
pub(super) struct ReplicaLateness(Option<Boottime>);

impl ReplicaLateness {
    /// A read that began at `started` is given up `now`; says whether it is another after the
    /// first. Those that ran beside that one may have waited for the same.
    pub(super) fn late(&mut self, started: Boottime, now: Boottime) -> bool {
        let first = *self.0.get_or_insert(now);
        started >= first
    }

    /// A read was answered.
    pub(super) fn answered(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_second_in_a_row_says_that_the_replica_is_slow() {
        let start = Boottime::now();
        let at = |millis| start.plus(Duration::from_millis(millis));
        let mut lateness = ReplicaLateness::default();
        assert!(!lateness.late(at(0), at(800)));
        assert!(!lateness.late(at(10), at(810)), "it ran beside the first");
        assert!(lateness.late(at(820), at(1_620)));
        assert!(lateness.late(at(2_000), at(2_800)), "nor has it recovered");
        lateness.answered();
        assert!(!lateness.late(at(3_000), at(3_800)));
        lateness.answered();
        assert!(!lateness.late(at(4_000), at(4_800)), "one was answered");
    }
}
