//! Writes of other nodes that are known by a number alone, for a visitor who comes with one (COHERENCE, rule 19).
//!
//! Every node numbers the answers to its writes. Whoever comes with a number comes after that answer. So a node notes when it has met
//! the number first, and has passed it once it has heard of a heartbeat that was sent later: the write, and all that this visitor had been
//! told before, was acknowledged before that. It is good for whatever history the write is in, and costs reads for as long as a heartbeat takes.

use std::collections::HashMap;
use std::sync::Arc;

use millpond_store::clock::Boottime;

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
    /// A later one, and when it was met.
    met: Option<(u64, Boottime)>,
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
        if let Some((met, _)) = node.met.take_if(|(_, at)| *at <= heard) {
            node.passed = node.passed.max(Some(met));
        }
        let has_passed = node.passed.is_some_and(|passed| number <= passed);
        if !has_passed {
            // One that waits is not put off by those that come after it.
            node.met.get_or_insert((number, now));
        }
        has_passed
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}
