//! A choice by weights in constant time: the alias method (A. J. Walker, ACM TOMS 3:3, 1977), built
//! in linear time as M. D. Vose does (IEEE TSE 17:9, 1991).

use millrace_stats::random::Random;

/// A table of weights to draw from; 12 bytes for each.
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// The share of a column that belongs to its own index.
    own: Vec<f64>,
    /// The index that has the rest of a column.
    other: Vec<u32>,
}

impl Alias {
    /// The caller has checked the weights: finite, not negative, fewer than 2³², and at least one
    /// is above 0.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let count = weights.len();
        // Divided by the greatest first, so that no sum overflows.
        let greatest = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let total: f64 = weights.iter().map(|weight| weight / greatest).sum();
        let mut own: Vec<f64> = weights
            .iter()
            .map(|weight| weight / greatest / total * count as f64)
            .collect();
        let mut other: Vec<u32> = (0..count as u32).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..count as u32).partition(|&column| own[column as usize] < 1.0);
        while let (Some(&little), Some(&much)) = (small.last(), large.last()) {
            small.pop();
            other[little as usize] = much;
            own[much as usize] -= 1.0 - own[little as usize];
            if own[much as usize] < 1.0 {
                large.pop();
                small.push(much);
            }
        }
        // The rest is 1 except for rounding. A weight of 0 that rounding left over must stay
        // unreachable.
        for column in small.into_iter().chain(large) {
            if weights[column as usize] > 0.0 {
                own[column as usize] = 1.0;
            }
        }
        Self { own, other }
    }

    /// The index of a weight.
    pub(crate) fn pick(&self, random: &mut Random) -> usize {
        let column = random.below(self.own.len());
        if random.uniform() < self.own[column] {
            column
        } else {
            self.other[column] as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(weights: &[f64]) {
        let (alias, mut random) = (Alias::new(weights), Random::new(3));
        let mut hits = vec![0.0; weights.len()];
        (0..40_000).for_each(|_| hits[alias.pick(&mut random)] += 1.0);
        let total: f64 = weights.iter().sum();
        for (weight, hits) in weights.iter().zip(&hits) {
            let expected = 40_000.0 * weight / total;
            assert!(
                (hits - expected).abs() <= 5.0 * expected.sqrt(),
                "{weights:?}: {hits}, not {expected}"
            );
        }
    }

    #[test]
    fn each_is_drawn_by_its_weight() {
        check(&[1.0]);
        check(&[35.0, 50.0, 14.0, 1.0]);
        check(&[0.0, 1.0, 0.0]);
        check(&[1e300, 1e300]);
        check(&[0.1; 10]);
    }
}
