//! How many different hashes: exact while there is room, then estimated.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Bits of a hash that choose a register: an error of 0.8 % at one standard deviation.
const BITS: u32 = 14;
const REGISTERS: usize = 1 << BITS;

/// A set of hashes, or a sketch of one (P. Flajolet et al., "HyperLogLog", 2007).
#[derive(Clone, Debug)]
pub(crate) enum Distinct {
    Exact(HashTable<u64>),
    Sketch(Box<[u8]>),
}

impl Default for Distinct {
    fn default() -> Self {
        Self::Exact(HashTable::new())
    }
}

impl Distinct {
    /// Adds a hash; `room` is the number of hashes that may still be kept, of all sets.
    pub(crate) fn add(&mut self, hash: u64, room: &mut usize) {
        if let Self::Exact(hashes) = self {
            match hashes.entry(hash, |known| *known == hash, |known| *known) {
                Entry::Occupied(_) => return,
                Entry::Vacant(entry) if *room > 0 => {
                    entry.insert(hash);
                    *room -= 1;
                    return;
                }
                Entry::Vacant(_) => {}
            }
        }
        note(self.registers(room), hash);
    }

    /// The registers of the sketch that it is, or that it becomes.
    fn registers(&mut self, room: &mut usize) -> &mut [u8] {
        if let Self::Exact(hashes) = self {
            *room += hashes.len();
            let mut registers = vec![0; REGISTERS].into_boxed_slice();
            hashes.iter().for_each(|hash| note(&mut registers, *hash));
            *self = Self::Sketch(registers);
        }
        match self {
            Self::Sketch(registers) => registers,
            Self::Exact(_) => &mut [],
        }
    }

    /// Adds the hashes of another set.
    pub(crate) fn merge(&mut self, other: Self, room: &mut usize) {
        match other {
            Self::Exact(hashes) => {
                *room += hashes.len();
                hashes.into_iter().for_each(|hash| self.add(hash, room));
            }
            Self::Sketch(others) => {
                for (register, other) in self.registers(room).iter_mut().zip(others) {
                    *register = other.max(*register);
                }
            }
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// The number of different hashes.
    pub(crate) fn count(&self) -> u64 {
        let registers = match self {
            Self::Exact(hashes) => return hashes.len() as u64,
            Self::Sketch(registers) => registers,
        };
        let count = REGISTERS as f64;
        let sum: f64 = registers
            .iter()
            .map(|rank| 2_f64.powi(-i32::from(*rank)))
            .sum();
        let estimate = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = registers.iter().filter(|rank| **rank == 0).count() as f64;
        // With few hashes, the empty registers say more.
        let is_small = estimate <= 2.5 * count && empty > 0.0;
        (if is_small {
            count * (count / empty).ln()
        } else {
            estimate
        })
        .round() as u64
    }
}

fn note(registers: &mut [u8], hash: u64) {
    let register = &mut registers[(hash >> (64 - BITS)) as usize];
    let rank = (hash << BITS).leading_zeros().min(64 - BITS) as u8 + 1;
    *register = rank.max(*register);
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    fn hash(n: u64) -> u64 {
        foldhash::quality::FixedState::default().hash_one(n)
    }

    fn set(numbers: std::ops::Range<u64>, mut room: usize) -> Distinct {
        let mut set = Distinct::default();
        numbers.for_each(|n| set.add(hash(n), &mut room));
        set
    }

    #[test]
    fn counts_are_exact_while_there_is_room_and_near_afterwards() {
        let mut room = 1000;
        let mut exact = Distinct::default();
        (0..2000).for_each(|n| exact.add(hash(n % 1000), &mut room));
        assert_eq!((exact.count(), exact.is_exact(), room), (1000, true, 0));
        exact.add(hash(1000), &mut room);
        assert_eq!(
            (exact.is_exact(), room),
            (false, 1000),
            "its room is free again"
        );
        for count in [100, 10_000, 40_000, 300_000] {
            let estimate = set(0..count, 50).count() as f64 / count as f64;
            assert!((0.97..1.03).contains(&estimate), "{count}: {estimate}");
        }
    }

    #[test]
    fn the_union_counts_what_is_in_both_once() {
        for (one, other) in [
            (usize::MAX, usize::MAX),
            (50, usize::MAX),
            (usize::MAX, 50),
            (50, 50),
        ] {
            let mut union = set(0..30_000, one / 2);
            union.merge(set(20_000..50_000, other / 2), &mut (usize::MAX / 4));
            let share = union.count() as f64 / 50_000.0;
            let is_exact = one > 50 && other > 50;
            assert_eq!((union.is_exact(), share == 1.0), (is_exact, is_exact));
            assert!((0.97..1.03).contains(&share), "{share}");
        }
    }
}
