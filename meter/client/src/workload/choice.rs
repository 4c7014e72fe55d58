//! Values to choose from: a list or a range, chosen uniformly, by Zipf's law or by weights.

use std::io::Write as _;

use super::alias::Alias;
use super::zipf::Zipf;
use millrace_stats::random::Random;

/// A named choice.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) values: Values,
    pub(crate) spread: Skew,
}

/// The values of a choice.
#[derive(Debug)]
pub(crate) enum Values {
    List(Vec<Box<[u8]>>),
    /// The first, and how many.
    Range(i64, u64),
}

/// The probabilities of the values.
#[derive(Debug)]
pub(crate) enum Skew {
    Uniform,
    Zipf(Zipf),
    Weighted(Alias),
}

impl Values {
    pub(crate) fn count(&self) -> u64 {
        match self {
            Self::List(list) => list.len() as u64,
            Self::Range(_, count) => *count,
        }
    }
}

impl Skew {
    /// An index below `count`.
    pub(crate) fn pick(&self, count: u64, random: &mut Random) -> u64 {
        match self {
            Self::Uniform => random.below(count as usize) as u64,
            Self::Zipf(zipf) => zipf.pick(random) - 1,
            Self::Weighted(alias) => alias.pick(random) as u64,
        }
    }
}

impl Choice {
    /// Gives `use_it` one value.
    pub(crate) fn pick<T>(&self, random: &mut Random, use_it: impl FnOnce(&[u8]) -> T) -> T {
        let index = self.spread.pick(self.values.count(), random);
        match &self.values {
            Values::List(list) => use_it(&list[index as usize]),
            Values::Range(first, _) => {
                let mut digits = [0; 20];
                let mut rest = &mut digits[..];
                // 20 bytes hold every i64.
                let _ = write!(rest, "{}", first.wrapping_add_unsigned(index));
                let left = rest.len();
                use_it(&digits[..20 - left])
            }
        }
    }
}
