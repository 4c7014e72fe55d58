//! Random numbers for simulations and resampling: fast, repeatable from a seed, not for secrets.
//!
//! The generator is xoshiro256++ 1.0, its state filled by splitmix64, both by David Blackman and
//! Sebastiano Vigna (public domain, <https://prng.di.unimi.it/>; "Scrambled linear pseudorandom
//! number generators", ACM TOMS 47:4, 2021).

/// A generator of random numbers; the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of `seed`. Seeds that differ little give numbers that have nothing in common.
    pub fn new(seed: u64) -> Self {
        Self {
            state: std::array::from_fn(|n| mix(seed, n as u64)),
        }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 (included) to 1 (not included), in steps of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A whole number below `n`, uniform to within `n`/2⁶⁴; 0 for an `n` of 0. It is the high half
    /// of a product (Lemire, ACM TOMACS 29:1, 2019), without the rejection, whose absence no
    /// simulation here can notice.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }
}

/// The `n`th number of splitmix64 from `seed`, without computing those before it: threads need no
/// generator of their own.
pub fn mix(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(GAMMA));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Constant that splitmix64 adds to its state for each number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the reference implementations.
    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([0, 1, 2].map(|n| mix(1_234_567, n)), expected);
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    #[test]
    fn numbers_are_spread_evenly() {
        let mut random = Random::new(7);
        let mean = (0..10_000).map(|_| random.uniform()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
        let mut hits = [0; 6];
        (0..6000).for_each(|_| hits[random.below(6)] += 1);
        assert!(
            hits.iter().all(|hits| (850..1150).contains(hits)),
            "{hits:?}"
        );
        assert_eq!(random.below(0), 0);
    }
}
