//! Choices: a fuzzing engine's bytes, or numbers from a seed.

/// Gives one choice after the other. The same bytes, or the same seed, give the same choices.
#[derive(Clone, Debug)]
pub struct Dice<'a>(Source<'a>);

#[derive(Clone, Debug)]
enum Source<'a> {
    Bytes(&'a [u8]),
    Seed(u64),
}

impl<'a> Dice<'a> {
    /// Choices that `bytes` make; when they are used up, every choice is the first. So an engine that shrinks its bytes
    /// makes what comes of them simpler.
    #[must_use]
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self(Source::Bytes(bytes))
    }

    /// Endless choices from a seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(Source::Seed(seed))
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = match &mut self.0 {
            Source::Bytes(bytes) => {
                let wanted = match bound {
                    0..=0x100 => 1,
                    0x101..=0x1_0000 => 2,
                    _ => 4,
                };
                let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
                *bytes = rest;
                taken.iter().fold(0, |sum, &b| sum << 8 | u64::from(b))
            }
            Source::Seed(seed) => split_mix(seed),
        };
        if bound == 0 {
            return 0;
        }
        // Below `bound`, which is a usize.
        usize::try_from(drawn % bound as u64).unwrap_or_default()
    }

    /// True `percent` times in a hundred; false when an engine's bytes are used up.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent.min(100)
    }

    /// One of `all`; none if there is none.
    pub fn pick<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        all.get(self.below(all.len()))
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        u8::try_from(self.below(0x100)).unwrap_or_default()
    }

    /// Up to `most` bytes of any value.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len).map(|_| self.byte()).collect()
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn bytes_are_choices_and_then_everything_is_the_first() {
        let mut dice = Dice::of(&[7, 1, 2, 255]);
        assert_eq!(dice.below(5), 2);
        assert_eq!(dice.below(1000), 0x102);
        assert!(dice.chance(46));
        assert_eq!(dice.pick(&[8, 9]), Some(&8));
        assert!(!dice.chance(99));
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick::<u8>(&[]), None);
    }

    #[test]
    fn a_seed_gives_the_same_choices_again_and_all_of_them() {
        let draw = |seed| -> Vec<usize> {
            let mut dice = Dice::seeded(seed);
            (0..200).map(|_| dice.below(10)).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..10).all(|number| draw(3).contains(&number)));
    }
}
