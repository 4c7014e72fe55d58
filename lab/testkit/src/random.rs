//! Numbers that look random and are the same for the same seed.

/// `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014): every seed, also 0, gives a full period of
/// 2^64 numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed. Tests print the seed where it is not a constant.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number of 64 bits.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0. Small numbers are more likely by at most `bound /
    /// 2^64`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let number = self.number();
        if bound == 0 { 0 } else { number % bound }
    }

    /// An index of a list of this length; 0 if the list is empty.
    pub const fn index(&mut self, length: usize) -> usize {
        // Below `length`, which is a usize.
        self.below(length as u64) as usize
    }

    /// One of `all`.
    ///
    /// # Panics
    /// The list is empty.
    pub fn pick<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.index(all.len())]
    }

    /// Any byte.
    pub const fn byte(&mut self) -> u8 {
        self.number().to_be_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let draw = |seed| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..200).map(|_| random.below(10)).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..10).all(|number| draw(0).contains(&number)));
        assert_eq!(Random::new(1).below(0), 0);
        assert_eq!(Random::new(1).index(0), 0);
        assert!([3, 4].contains(Random::new(1).pick(&[3, 4])));
        // The first number of the published sequence of seed 0.
        assert_eq!(Random::new(0).number(), 0xe220_a839_7b1d_cdaf);
    }
}
