//! Keys to entries, in shards so that hits on different workers seldom write the same cache line.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use crate::{
    Feed,
    entry::StoredEntry,
    sync::{Arc, Padded, RwLock},
};

const SHARDS: usize = 64;

type Shard<V, F> = RwLock<HashTable<Arc<StoredEntry<V, F>>>>;

/// A hit takes one shard's lock for reading. Only a fill, an eviction or a replacement takes it for
/// writing.
pub(crate) struct Index<V, F: Feed> {
    shards: Box<[Padded<Shard<V, F>>]>,
    hasher: foldhash::fast::RandomState,
}

impl<V, F: Feed> Index<V, F> {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS)
                .map(|_| Padded(RwLock::new(HashTable::new())))
                .collect(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The table takes its buckets from the low bits and its tags from the top bits; the shard
    /// number comes from between.
    fn shard(&self, hash: u64) -> &Shard<V, F> {
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    /// Looks `key` up and has `read` look at the entry, under the shard's read lock.
    pub(crate) fn read<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&Arc<StoredEntry<V, F>>) -> R,
    ) -> Option<R> {
        let hash = self.hash(key);
        let shard = self.shard(hash).read();
        shard.find(hash, |entry| *entry.key == *key).map(read)
    }

    /// Puts the entry in the place of the one with the same key, which is returned.
    pub(crate) fn replace(&self, entry: &Arc<StoredEntry<V, F>>) -> Option<Arc<StoredEntry<V, F>>> {
        let mut shard = self.shard(entry.hash).write();
        match shard.entry(
            entry.hash,
            |other| other.key == entry.key,
            |other| other.hash,
        ) {
            hashbrown::hash_table::Entry::Occupied(mut slot) => {
                Some(std::mem::replace(slot.get_mut(), entry.clone()))
            }
            hashbrown::hash_table::Entry::Vacant(slot) => {
                slot.insert(entry.clone());
                None
            }
        }
    }

    /// Removes this very entry, if it is still the one under its key.
    pub(crate) fn remove(&self, entry: &Arc<StoredEntry<V, F>>) {
        let mut shard = self.shard(entry.hash).write();
        if let Ok(slot) = shard.find_entry(entry.hash, |other| Arc::ptr_eq(other, entry)) {
            slot.remove();
        }
    }

    /// Returns the entries with these keys. Locks one shard after the other.
    pub(crate) fn select(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Arc<StoredEntry<V, F>>> {
        let mut selected = Vec::new();
        for shard in &self.shards {
            let shard = shard.read();
            let wanted = shard.iter().filter(|entry| is_wanted(&entry.key));
            selected.extend(wanted.cloned());
        }
        selected
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().len()).sum()
    }
}
