//! What other processes have written to the same file, for a visitor who comes from one of them (COHERENCE, rule 19).
//!
//! The file has no position that all processes could compare. But a look at it that begins after a write finds the write (`PRAGMA
//! data_version`). So a position is the name of a process and a tick of its own; a process that meets one for the first time
//! notes when, and has passed it once it has heard of a look that began later. Until then, at most one poll, its own reads show the write.

use std::sync::Arc;

use base_clock::Boottime;
use parking_lot::Mutex;

use crate::Position;
use crate::met::Met;

/// Shared by the writer thread, which looks, and all who ask.
pub(crate) struct Passed {
    /// This process.
    node: Arc<str>,
    others: Mutex<Met>,
}

impl Passed {
    /// `node` is a name that no other process has.
    pub(crate) fn new(node: String) -> Self {
        Self {
            node: node.into(),
            others: Mutex::default(),
        }
    }

    /// Whatever was committed before `sent` has been told.
    pub(crate) fn heard(&self, sent: Boottime) {
        self.others.lock().heard(sent);
    }

    /// The position of what this process has written up to its `tick`.
    pub(crate) fn own(&self, tick: u64) -> Position {
        Position::new(Arc::clone(&self.node), tick)
    }

    /// Whether what was committed before `position` has been told, for one who asks at `now`.
    pub(crate) fn has_passed(&self, position: &Position, now: Boottime) -> bool {
        // Own writes are told before they are answered.
        if *position.source() == *self.node {
            return true;
        }
        if position.source().is_empty() {
            return false;
        }
        let mut others = self.others.lock();
        others.has_passed(position.source(), position.at(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::met::MOST;

    fn at(nanos: u64) -> Boottime {
        Boottime::from_nanos(nanos)
    }

    #[test]
    fn what_another_process_has_written_is_passed_by_a_look_that_began_later() {
        let passed = Passed::new("a".to_owned());
        let other = |tick| Position::new("b", tick);
        passed.heard(at(10));
        assert!(passed.has_passed(&passed.own(7), at(11)));
        assert!(!passed.has_passed(&other(7), at(11)), "it may be newer");
        passed.heard(at(9));
        assert!(!passed.has_passed(&other(7), at(12)));
        passed.heard(at(11));
        assert!(passed.has_passed(&other(7), at(13)) && passed.has_passed(&other(6), at(13)));
        assert!(!passed.has_passed(&other(8), at(14)));
        assert!(!passed.has_passed(&other(9), at(15)));
        passed.heard(at(14));
        assert!(passed.has_passed(&other(8), at(16)));
        assert!(!passed.has_passed(&other(9), at(16)), "met anew");
        passed.heard(at(16));
        assert!(passed.has_passed(&other(9), at(17)));
    }

    #[test]
    fn what_nobody_knows_is_never_passed_and_what_is_forgotten_is_met_again() {
        let passed = Passed::new("a".to_owned());
        for _ in 0..2 {
            assert!(!passed.has_passed(&Position::new("", 0), at(1)));
            passed.heard(at(5));
        }
        for number in 0..3 * MOST as u64 {
            let node = Position::new(format!("node {number}"), 1);
            assert!(!passed.has_passed(&node, at(6)));
            assert!(passed.others.lock().len() <= MOST);
        }
        let first = Position::new("node 0", 1);
        assert!(!passed.has_passed(&first, at(6)));
        passed.heard(at(7));
        assert!(passed.has_passed(&first, at(8)));
    }
}
