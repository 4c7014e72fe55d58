//! Writes of other nodes that are known only by a number, which a visitor brings (coherence.md,
//! rule 19).
//!
//! Every node numbers the responses to its writes. A visitor brings the number of a response that
//! was sent before. This node notes when it sees a number for the first time. The number is passed
//! once a heartbeat arrives that was sent later: the write was acknowledged before that, and so was
//! everything that the visitor had been shown. This works for a write in any history. Until the
//! heartbeat arrives, the visitor's reads go past the cache.

use std::collections::HashMap;
use std::sync::Arc;

use base_clock::Boottime;

/// Nodes that are tracked. Beyond this number all are forgotten, which costs one more heartbeat for
/// each.
pub(crate) const MAX_NODES: usize = 64;

/// The numbers that were seen, and when the newest heartbeat was sent.
#[derive(Default)]
pub(crate) struct SeenWrites {
    /// When the newest heartbeat was sent.
    heartbeat_sent: Boottime,
    nodes: HashMap<Arc<str>, NodeWrites>,
}

/// The numbers that another node has given.
#[derive(Default)]
struct NodeWrites {
    /// Numbers up to this one are passed.
    passed: Option<u64>,
    /// A later number, and when it was seen. The next heartbeat passes it.
    seen: Option<(u64, Boottime)>,
    /// The latest number that was seen after that one, and when it was seen. The heartbeat after
    /// the next passes it and all before it.
    later: Option<(u64, Boottime)>,
}

impl SeenWrites {
    /// A heartbeat that was sent at `sent` arrived: the feed has delivered every earlier commit.
    pub(crate) fn heartbeat_sent(&mut self, sent: Boottime) {
        self.heartbeat_sent = self.heartbeat_sent.max(sent);
    }

    /// True if the feed has delivered every write up to `number` of `node`, for a request that
    /// arrives at `now`.
    pub(crate) fn has_passed(&mut self, node: &str, number: u64, now: Boottime) -> bool {
        if self.nodes.len() >= MAX_NODES && !self.nodes.contains_key(node) {
            self.nodes.clear();
        }
        let heartbeat_sent = self.heartbeat_sent;
        let node = self.nodes.entry(node.into()).or_default();
        while let Some((seen, _)) = node.seen.take_if(|(_, at)| *at <= heartbeat_sent) {
            node.passed = node.passed.max(Some(seen));
            node.seen = node.later.take();
        }
        let has_passed = node.passed.is_some_and(|passed| number <= passed);
        if !has_passed {
            // A number that waits is not delayed by later numbers, and later numbers wait together.
            match node.seen {
                None => node.seen = Some((number, now)),
                Some((seen, _)) if number <= seen => {}
                Some(_) => {
                    let latest = node.later.map_or(0, |(later, _)| later);
                    node.later = Some((latest.max(number), now));
                }
            }
        }
        has_passed
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counterexample: only the first number after a heartbeat is noted. The latest of a hundred
    /// writers may be the hundredth.
    #[test]
    fn a_later_number_waits_for_at_most_two_heartbeats() {
        let mut seen = SeenWrites::default();
        let at = Boottime::from_nanos;
        assert!(!seen.has_passed("a", 1, at(10)));
        for number in 2..=100 {
            assert!(!seen.has_passed("a", number, at(10 + number)));
        }
        seen.heartbeat_sent(at(50));
        assert!(seen.has_passed("a", 1, at(120)));
        assert!(!seen.has_passed("a", 60, at(121)), "seen since");
        seen.heartbeat_sent(at(122));
        assert!(seen.has_passed("a", 100, at(123)));
        assert!(!seen.has_passed("a", 101, at(124)));
    }
}
