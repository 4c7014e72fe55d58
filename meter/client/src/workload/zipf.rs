//! Zipf's law: the kth of n things is chosen with a probability proportional to k⁻ˢ.
//!
//! By rejection inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", ACM TOMACS 6:3, 1996): no table for any n, and less than
//! two tries on average.

use millrace_stats::random::Random;

/// The distribution of ranks 1 to `n` with exponent `s` above 0.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    n: f64,
    s: f64,
    /// The integral at the left end of the first rank.
    first: f64,
    /// The integral at the right end of the last rank.
    last: f64,
    /// A rank this near above its point is accepted without computing the density.
    near: f64,
}

impl Zipf {
    /// The caller has checked: `n` is at least 1, `s` is above 0 and finite.
    pub(crate) fn new(n: u64, s: f64) -> Self {
        let n = n.max(1) as f64;
        Self {
            n,
            s,
            first: integral(1.5, s) - 1.0,
            last: integral(n + 0.5, s),
            near: 2.0 - inverse(integral(2.5, s) - density(2.0, s), s),
        }
    }

    /// A rank from 1 to `n`.
    pub(crate) fn pick(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.last + random.uniform() * (self.first - self.last);
            let x = inverse(u, self.s);
            let rank = x.round().clamp(1.0, self.n);
            if rank - x <= self.near || u >= integral(rank + 0.5, self.s) - density(rank, self.s) {
                return rank as u64;
            }
        }
    }
}

fn density(x: f64, s: f64) -> f64 {
    (-s * x.ln()).exp()
}

/// The integral of the density, (x¹⁻ˢ − 1) / (1 − s), which is ln x at s = 1.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    let power = (1.0 - s) * log;
    if power.abs() < 1e-8 {
        log * (1.0 + power / 2.0)
    } else {
        log * (power.exp_m1() / power)
    }
}

fn inverse(y: f64, s: f64) -> f64 {
    // Rounding may leave the domain by a little at the far end of a steep distribution.
    let t = (y * (1.0 - s)).max(-1.0);
    if t.abs() < 1e-8 {
        (y * (1.0 - t / 2.0)).exp()
    } else {
        (y * (t.ln_1p() / t)).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n: u64, s: f64) {
        let (zipf, mut random) = (Zipf::new(n, s), Random::new(11));
        let mut hits = vec![0u32; n as usize];
        let draws = 50_000;
        (0..draws).for_each(|_| hits[zipf.pick(&mut random) as usize - 1] += 1);
        let total: f64 = (1..=n).map(|k| density(k as f64, s)).sum();
        for (k, &hits) in (1..).zip(&hits) {
            let expected = f64::from(draws) * density(f64::from(k), s) / total;
            let error = 5.0 * expected.sqrt() + 5.0;
            assert!(
                (f64::from(hits) - expected).abs() < error,
                "{k} of {n}, s {s}: {hits}, not {expected}"
            );
        }
    }

    #[test]
    fn ranks_follow_the_law() {
        for s in [0.2, 0.9, 1.0, 1.000_000_01, 1.5, 4.0] {
            check(20, s);
        }
        check(1, 1.0);
        check(2, 0.5);
    }

    #[test]
    fn a_huge_number_of_ranks_needs_no_table() {
        for s in [0.01, 1.0, 20.0] {
            let (zipf, mut random) = (Zipf::new(1 << 50, s), Random::new(1));
            assert!((0..1000).all(|_| (1..=1 << 50).contains(&zipf.pick(&mut random))));
        }
    }
}
