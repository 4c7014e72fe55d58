//! Writes of other nodes that are known by a number alone, for a visitor who comes with one (COHERENCE, rule 19).
//!
//! Every node numbers the answers to its writes. Whoever comes with a number comes after that answer. So a node notes when it has met
//! the number first, and has passed it once it has heard of a heartbeat that was sent later: the write, and all that this visitor had been
//! told before, was acknowledged before that. It is good for whatever history the write is in, and costs reads for as long as a heartbeat takes.

use std::collections::HashMap;
use std::sync::Arc;

use base_clock::Boottime;

/// Nodes that are told apart; past that all are forgotten, which costs each one more heartbeat.
pub(crate) const MOST: usize = 64;

/// What was met, and what has been heard of since.
#[derive(Default)]
pub(crate) struct Met {
    /// When the newest heartbeat was sent.
    heard: Boottime,
    nodes: HashMap<Arc<str>, Node>,
}

/// What is known of another node.
#[derive(Default)]
struct Node {
    /// Its numbers up to this have been passed.
    passed: Option<u64>,
    /// A later one, and when it was met: the next heartbeat passes it.
    met: Option<(u64, Boottime)>,
    /// The latest of those that were met after that one, and when the last of them was: the heartbeat after the next passes them all.
    later: Option<(u64, Boottime)>,
}

impl Met {
    /// Whatever was committed before `sent` has been told.
    pub(crate) fn heard(&mut self, sent: Boottime) {
        self.heard = self.heard.max(sent);
    }

    /// Whether what was answered up to `number` of `node` has been told, for one who asks at `now`.
    pub(crate) fn has_passed(&mut self, node: &str, number: u64, now: Boottime) -> bool {
        if self.nodes.len() >= MOST && !self.nodes.contains_key(node) {
            self.nodes.clear();
        }
        let heard = self.heard;
        let node = self.nodes.entry(node.into()).or_default();
        while let Some((met, _)) = node.met.take_if(|(_, at)| *at <= heard) {
            node.passed = node.passed.max(Some(met));
            node.met = node.later.take();
        }
        let has_passed = node.passed.is_some_and(|passed| number <= passed);
        if !has_passed {
            // One that waits is not put off by those that come after it, nor do they wait for their turn one by one.
            match node.met {
                None => node.met = Some((number, now)),
                Some((met, _)) if number <= met => {}
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

    /// ✗ *One number is noted, that of whoever asks first after a heartbeat: of a hundred writers the latest may be the hundredth.*
    #[test]
    fn whoever_comes_behind_another_waits_for_two_heartbeats_at_most() {
        let mut met = Met::default();
        let at = Boottime::from_nanos;
        assert!(!met.has_passed("a", 1, at(10)));
        for number in 2..=100 {
            assert!(!met.has_passed("a", number, at(10 + number)));
        }
        met.heard(at(50));
        assert!(met.has_passed("a", 1, at(120)));
        assert!(!met.has_passed("a", 60, at(121)), "met since");
        met.heard(at(122));
        assert!(met.has_passed("a", 100, at(123)));
        assert!(!met.has_passed("a", 101, at(124)));
    }
}
