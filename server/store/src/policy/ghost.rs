//! The keys of entries that left lately.
//!
//! Of each key 32 bits of its hash are kept. With a million ghosts, one newcomer in four thousand
//! is mistaken for a ghost, and gets a place in main too early. This has no other effect.

use hashbrown::HashTable;

use super::slab::{List, Slab};

#[derive(Default)]
struct Ghost {
    fingerprint: u32,
    /// The entry's weight: the queue is limited by the sum of the weights.
    weight: u32,
}

#[cfg(test)]
/// Bytes for one ghost: the node, and an index with its control byte in a table that is at least
/// 7/16 full.
pub(super) const OVERHEAD: usize =
    super::slab::node_size::<Ghost>() + (size_of::<u32>() + 1) * 16 / 7;

/// A first-in, first-out queue of hashes of entries that weigh at most `limit` bytes together.
pub(super) struct Ghosts {
    limit: usize,
    weight: usize,
    nodes: Slab<Ghost>,
    queue: List,
    by_fingerprint: HashTable<u32>,
}

impl Ghosts {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            weight: 0,
            nodes: Slab::new(),
            queue: List::new(),
            by_fingerprint: HashTable::new(),
        }
    }

    /// Adds a key, and drops the oldest ones for it. A key that is present keeps its place.
    pub(super) fn remember(&mut self, hash: u64, weight: u32) {
        // A weight of 0 counts as 1, so that the queue stays bounded.
        let weight = weight.max(1);
        let fingerprint = fingerprint(hash);
        if weight as usize > self.limit || self.find(fingerprint).is_some() {
            return;
        }
        while self.weight + weight as usize > self.limit {
            let Some(oldest) = self.queue.pop_front(&mut self.nodes) else {
                break;
            };
            self.drop_node(oldest);
        }
        let index = self.nodes.insert(Ghost {
            fingerprint,
            weight,
        });
        self.queue.push_back(&mut self.nodes, index);
        self.weight += weight as usize;
        let Self {
            nodes,
            by_fingerprint,
            ..
        } = self;
        by_fingerprint.insert_unique(table_hash(fingerprint), index, |&index| {
            table_hash(nodes[index].fingerprint)
        });
    }

    /// Removes a key. True if the key was present.
    pub(super) fn forget(&mut self, hash: u64) -> bool {
        let Some(index) = self.find(fingerprint(hash)) else {
            return false;
        };
        self.queue.unlink(&mut self.nodes, index);
        self.drop_node(index);
        true
    }

    fn find(&self, fingerprint: u32) -> Option<u32> {
        let same = |&index: &u32| self.nodes[index].fingerprint == fingerprint;
        self.by_fingerprint
            .find(table_hash(fingerprint), same)
            .copied()
    }

    /// Frees a node that has left the queue.
    fn drop_node(&mut self, index: u32) {
        let ghost = self.nodes.remove(index);
        self.weight -= ghost.weight as usize;
        if let Ok(slot) = self
            .by_fingerprint
            .find_entry(table_hash(ghost.fingerprint), |&other| other == index)
        {
            slot.remove();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.queue.len(), self.by_fingerprint.len());
        self.queue.len()
    }

    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    #[cfg(test)]
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue
            .iter(&self.nodes)
            .map(|index| self.nodes[index].fingerprint)
    }
}

/// Uses both halves: some hash functions vary little in the low bits, others little in the high
/// bits.
pub(super) fn fingerprint(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// The table takes its buckets from the low bits and its control bytes from the high ones.
fn table_hash(fingerprint: u32) -> u64 {
    u64::from(fingerprint).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
