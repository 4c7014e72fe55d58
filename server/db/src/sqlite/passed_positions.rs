//! Whether the feed has delivered what another process wrote to the same file (coherence.md, rule
//! 19).
//!
//! The file has no position that all processes could compare. But a poll that begins after a write
//! finds the write (`PRAGMA data_version`). So a position is the name of a process and one of its
//! ticks. A process notes when it sees such a position for the first time. The position is passed
//! once a poll has succeeded that began later. Until then, for one or two poll intervals, the
//! visitor's reads go past the cache.

use std::sync::Arc;

use base_clock::Boottime;
use parking_lot::Mutex;

use crate::Position;
use crate::seen_writes::SeenWrites;

/// Shared by the writer thread, which polls, and the threads that check positions.
pub(crate) struct PassedPositions {
    /// The name of this process.
    node: Arc<str>,
    seen_writes: Mutex<SeenWrites>,
}

impl PassedPositions {
    /// `node` is a name that no other process has.
    pub(crate) fn new(node: String) -> Self {
        Self {
            node: node.into(),
            seen_writes: Mutex::default(),
        }
    }

    /// A poll that began at `sent` succeeded: the feed has delivered every earlier commit.
    pub(crate) fn poll_succeeded(&self, sent: Boottime) {
        self.seen_writes.lock().heartbeat_sent(sent);
    }

    /// The position of the writes of this process up to its `tick`.
    pub(crate) fn own_position(&self, tick: u64) -> Position {
        Position::new(Arc::clone(&self.node), tick)
    }

    /// True if the feed has delivered every commit before `position`, for a request that arrives at
    /// `now`.
    pub(crate) fn has_passed(&self, position: &Position, now: Boottime) -> bool {
        // Own writes are delivered before they are acknowledged.
        if *position.source() == *self.node {
            return true;
        }
        if position.source().is_empty() {
            return false;
        }
        let mut seen_writes = self.seen_writes.lock();
        seen_writes.has_passed(position.source(), position.at(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen_writes::MAX_NODES;

    fn at(nanos: u64) -> Boottime {
        Boottime::from_nanos(nanos)
    }

    #[test]
    fn what_another_process_has_written_is_passed_by_a_look_that_began_later() {
        let passed = PassedPositions::new("a".to_owned());
        let other = |tick| Position::new("b", tick);
        passed.poll_succeeded(at(10));
        assert!(passed.has_passed(&passed.own_position(7), at(11)));
        assert!(!passed.has_passed(&other(7), at(11)), "it may be newer");
        passed.poll_succeeded(at(9));
        assert!(!passed.has_passed(&other(7), at(12)));
        passed.poll_succeeded(at(11));
        assert!(passed.has_passed(&other(7), at(13)) && passed.has_passed(&other(6), at(13)));
        assert!(!passed.has_passed(&other(8), at(14)));
        assert!(!passed.has_passed(&other(9), at(15)));
        passed.poll_succeeded(at(14));
        assert!(passed.has_passed(&other(8), at(16)));
        assert!(!passed.has_passed(&other(9), at(16)), "met anew");
        passed.poll_succeeded(at(16));
        assert!(passed.has_passed(&other(9), at(17)));
    }

    #[test]
    fn an_unknown_position_is_never_passed_and_a_forgotten_node_is_seen_again() {
        let passed = PassedPositions::new("a".to_owned());
        for _ in 0..2 {
            assert!(!passed.has_passed(&Position::new("", 0), at(1)));
            passed.poll_succeeded(at(5));
        }
        for number in 0..3 * MAX_NODES as u64 {
            let node = Position::new(format!("node {number}"), 1);
            assert!(!passed.has_passed(&node, at(6)));
            assert!(passed.seen_writes.lock().len() <= MAX_NODES);
        }
        let first = Position::new("node 0", 1);
        assert!(!passed.has_passed(&first, at(6)));
        passed.poll_succeeded(at(7));
        assert!(passed.has_passed(&first, at(8)));
    }
}
