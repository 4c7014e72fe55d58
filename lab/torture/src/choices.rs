//! Choices: a fuzzing engine's bytes, or numbers from a seed.

use lab_testkit::Random;

/// Gives one choice after the other. The same bytes, or the same seed, give the same choices.
#[derive(Clone, Debug)]
pub struct Choices<'a>(ChoiceSource<'a>);

#[derive(Clone, Debug)]
enum ChoiceSource<'a> {
    Bytes(&'a [u8]),
    Seed(Random),
}

impl<'a> Choices<'a> {
    /// Choices from `bytes`; after the last byte every choice is the first option. So an engine
    /// that shrinks its bytes gets simpler inputs.
    #[must_use]
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self(ChoiceSource::Bytes(bytes))
    }

    /// Endless choices from a seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(ChoiceSource::Seed(Random::new(seed)))
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = match &mut self.0 {
            ChoiceSource::Bytes(bytes) => {
                let wanted = match bound {
                    0..=0x100 => 1,
                    0x101..=0x1_0000 => 2,
                    _ => 4,
                };
                let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
                *bytes = rest;
                taken.iter().fold(0, |sum, &b| sum << 8 | u64::from(b))
            }
            ChoiceSource::Seed(random) => random.number(),
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

#[cfg(test)]
mod tests {
    use super::Choices;

    #[test]
    fn bytes_are_choices_and_then_all_are_the_first() {
        let mut choices = Choices::of(&[7, 1, 2, 255]);
        assert_eq!(choices.below(5), 2);
        assert_eq!(choices.below(1000), 0x102);
        assert!(choices.chance(46));
        assert_eq!(choices.pick(&[8, 9]), Some(&8));
        assert!(!choices.chance(99));
        assert_eq!(choices.below(0), 0);
        assert_eq!(choices.pick::<u8>(&[]), None);
    }

    #[test]
    fn a_seed_gives_the_same_choices_and_reaches_all() {
        let draw = |seed| -> Vec<usize> {
            let mut choices = Choices::seeded(seed);
            (0..200).map(|_| choices.below(10)).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..10).all(|number| draw(3).contains(&number)));
    }
}
