//! Counts of the frequent keys in a long stream, in bounded memory.
//!
//! Counts are exact until the table is full. Then the median of all counts is subtracted from each,
//! and keys without a count are removed (D. Anderson et al., "A high-performance algorithm for
//! identifying frequent items in data streams", IMC 2017, after J. Misra and D. Gries, 1982). No
//! count is ever too high, and none is too low by more than [`missing`](Frequent::missing).

use std::collections::HashMap;

/// A table of counts.
#[derive(Debug)]
pub(super) struct Frequent {
    counts: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
    missing: u64,
}

impl Frequent {
    /// At most `most` keys with `most_bytes` bytes together.
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            counts: HashMap::new(),
            bytes: 0,
            most,
            most_bytes,
            missing: 0,
        }
    }

    /// Counts `key` once more.
    pub(super) fn add(&mut self, key: &[u8]) {
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
            return;
        }
        if self.counts.len() >= self.most || self.bytes + key.len() > self.most_bytes {
            self.forget();
        }
        self.bytes += key.len();
        self.counts.insert(key.into(), 1);
    }

    /// Makes room for half of the keys: constant time for each key, spread over the calls.
    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.missing += median;
        let bytes = &mut self.bytes;
        self.counts.retain(|key, count| {
            *count = count.saturating_sub(median);
            if *count == 0 {
                *bytes -= key.len();
            }
            *count > 0
        });
    }

    /// By how much a count may be too low at most: 0 if all are exact.
    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    /// All keys with their counts, the most frequent first.
    pub(super) fn into_sorted(self) -> Vec<(Box<[u8]>, u64)> {
        let mut all: Vec<_> = self.counts.into_iter().collect();
        all.sort_unstable_by(|(a_key, a), (b_key, b)| b.cmp(a).then_with(|| a_key.cmp(b_key)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::zipf::Zipf;
    use millrace_stats::random::Random;

    fn count(table: &Frequent, key: &[u8]) -> u64 {
        table.counts.get(key).copied().unwrap_or(0)
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
        let sorted = table.into_sorted();
        assert_eq!(sorted[0], (b"a"[..].into(), 2));
    }

    #[test]
    fn frequent_keys_survive_a_flood_of_others() {
        let (zipf, mut random) = (Zipf::new(1_000_000, 1.0), Random::new(2));
        let mut table = Frequent::new(1000, 1 << 20);
        let mut truth = [0_u64; 11];
        for _ in 0..100_000 {
            let rank = zipf.pick(&mut random);
            if let Some(count) = truth.get_mut(rank as usize) {
                *count += 1;
            }
            table.add(rank.to_string().as_bytes());
        }
        assert!(
            table.missing() > 0 && table.missing() < 500,
            "{}",
            table.missing()
        );
        for (rank, &truth) in truth.iter().enumerate().skip(1) {
            let found = count(&table, rank.to_string().as_bytes());
            assert!(
                found <= truth && found + table.missing() >= truth,
                "{rank}: {found} of {truth}"
            );
        }
        assert!(table.into_sorted().len() <= 1000);
    }

    #[test]
    fn long_keys_are_bounded_too() {
        let mut table = Frequent::new(1000, 10_000);
        (0..1000).for_each(|n| table.add(format!("{n:0100}").as_bytes()));
        assert!(table.bytes <= 10_000 && table.counts.len() <= 100);
    }
}
