//! Counts of the frequent keys in a long stream, in bounded memory.
//!
//! Counts are exact until the table is full. Then the median of all counts is subtracted from each,
//! and keys without a count are removed (D. Anderson et al., "A high-performance algorithm for
//! identifying frequent items in data streams", IMC 2017, after J. Misra and D. Gries, 1982). No
//! count is ever too high, and none is too low by more than [`missing`](Frequent::missing).

use std::hash::BuildHasher as _;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A table of counts, with a value of `V` beside each.
#[derive(Debug, Default)]
pub struct Frequent<V = ()> {
    counts: HashTable<KeyCount<V>>,
    hasher: RandomState,
    bytes: usize,
    most: usize,
    most_bytes: usize,
    missing: u64,
}

/// A key with its count.
#[derive(Debug)]
pub struct KeyCount<V> {
    /// The key.
    pub key: Box<[u8]>,
    /// Its count.
    pub count: u64,
    /// The value beside it.
    pub value: V,
}

impl<V: Default> Frequent<V> {
    /// At most `most` keys with `most_bytes` bytes together.
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            most,
            most_bytes,
            ..Self::default()
        }
    }

    /// Counts `key` once more, and returns the value beside it.
    pub fn add(&mut self, key: &[u8]) -> &mut V {
        self.add_many(key, 1)
    }

    fn add_many(&mut self, key: &[u8], count: u64) -> &mut V {
        let hash = self.hasher.hash_one(key);
        let is_key = |counted: &KeyCount<V>| *counted.key == *key;
        let is_full = self.counts.len() >= self.most || self.bytes + key.len() > self.most_bytes;
        if is_full && self.counts.find(hash, is_key).is_none() {
            self.forget();
        }
        let hasher = &self.hasher;
        match self
            .counts
            .entry(hash, is_key, |counted| hasher.hash_one(&*counted.key))
        {
            Entry::Occupied(entry) => {
                let counted = entry.into_mut();
                counted.count += count;
                &mut counted.value
            }
            Entry::Vacant(entry) => {
                self.bytes += key.len();
                let counted = KeyCount {
                    key: key.into(),
                    count,
                    value: V::default(),
                };
                &mut entry.insert(counted).into_mut().value
            }
        }
    }

    /// Adds the counts of another table, and its room; `join` adds its values.
    pub fn merge(&mut self, other: Self, join: impl Fn(&mut V, V)) {
        self.missing += other.missing;
        self.most += other.most;
        self.most_bytes += other.most_bytes;
        for counted in other.counts {
            join(self.add_many(&counted.key, counted.count), counted.value);
        }
    }

    /// Makes room for half of the keys: constant time for each key, spread over the calls.
    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.counts.iter().map(|counted| counted.count).collect();
        if counts.is_empty() {
            return;
        }
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.missing += median;
        let bytes = &mut self.bytes;
        self.counts.retain(|counted| {
            counted.count = counted.count.saturating_sub(median);
            if counted.count == 0 {
                *bytes -= counted.key.len();
            }
            counted.count > 0
        });
    }

    /// By how much a count may be too low at most: 0 if all are exact.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// All keys with their counts, the most frequent first.
    pub fn sorted(&self) -> Vec<&KeyCount<V>> {
        let mut all: Vec<_> = self.counts.iter().collect();
        all.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        all
    }
}

impl Frequent {
    /// All keys with their counts, the most frequent first.
    pub fn into_sorted(self) -> Vec<(Box<[u8]>, u64)> {
        let mut all: Vec<_> = self
            .counts
            .into_iter()
            .map(|counted| (counted.key, counted.count))
            .collect();
        all.sort_unstable_by(|(a_key, a), (b_key, b)| b.cmp(a).then_with(|| a_key.cmp(b_key)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(table: &Frequent, key: &[u8]) -> u64 {
        let sorted = table.sorted();
        sorted
            .iter()
            .find(|counted| *counted.key == *key)
            .map_or(0, |counted| counted.count)
    }

    /// A stream in which the number `n` comes about as often as its share of a harmonic sum.
    fn stream() -> impl Iterator<Item = u64> {
        let mut state = 2_u64;
        (0..100_000).map(move |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
            (1e6_f64.powf(uniform)) as u64
        })
    }

    #[test]
    fn counts_are_exact_while_there_is_room() {
        let mut table = Frequent::new(3, 100);
        for key in [b"a", b"b", b"a", b"c"] {
            table.add(key);
        }
        assert_eq!(
            (count(&table, b"a"), count(&table, b"x"), table.missing()),
            (2, 0, 0)
        );
        assert_eq!(table.into_sorted()[0], (b"a"[..].into(), 2));
    }

    #[test]
    fn frequent_keys_survive_a_flood_of_others() {
        let (mut one, mut other) = (Frequent::new(1000, 1 << 20), Frequent::new(1000, 1 << 20));
        let mut truth = [0_u64; 11];
        for (n, rank) in stream().enumerate() {
            if let Some(count) = truth.get_mut(rank as usize) {
                *count += 1;
            }
            let table = if n % 3 == 0 { &mut one } else { &mut other };
            table.add(rank.to_string().as_bytes());
        }
        one.merge(other, |(), ()| ());
        let missing = one.missing();
        assert!(missing > 0 && missing < 1000, "{missing}");
        for (rank, &truth) in truth.iter().enumerate().skip(1) {
            let found = count(&one, rank.to_string().as_bytes());
            assert!(
                found <= truth && found + missing >= truth,
                "{rank}: {found} of {truth}"
            );
        }
        assert!(one.into_sorted().len() <= 2000);
    }

    #[test]
    fn long_keys_are_bounded_too() {
        let mut table = Frequent::<()>::new(1000, 10_000);
        (0..1000).for_each(|n| {
            table.add(format!("{n:0100}").as_bytes());
        });
        assert!(table.bytes <= 10_000 && table.len() <= 100);
    }

    #[test]
    fn values_stay_beside_their_keys() {
        let mut table = Frequent::<u64>::new(10, 100);
        *table.add(b"a") += 5;
        *table.add(b"a") += 6;
        let mut other = Frequent::<u64>::new(11, 100);
        *other.add(b"a") += 7;
        (0..10).for_each(|n| *other.add(&[n]) += 1);
        table.merge(other, |sum, more| *sum += more);
        let sorted = table.sorted();
        assert_eq!((sorted[0].count, sorted[0].value), (3, 18));
        assert_eq!(
            (table.len(), table.missing()),
            (11, 0),
            "merging forgets none"
        );
    }
}
