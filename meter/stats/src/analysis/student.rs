//! Student's t distribution, for means of few values.

use std::f64::consts::{FRAC_2_PI, PI};

/// The value of Student's t below which a share of `p` lies, for `freedom` degrees of freedom (at
/// least 1) and a `p` of at least one half. Found by bisection to eleven digits.
pub fn quantile(p: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while cumulative(high, freedom) < p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if cumulative(middle, freedom) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The share below a `t` that is not negative: Abramowitz and Stegun 26.7.3 and 26.7.4, finite sums
/// for whole degrees of freedom.
fn cumulative(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // The first term and the number of terms; each next term has two more factors of the cosine.
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    let mut k = if is_odd { 1 } else { 0 };
    while k + 2 <= freedom {
        sum += term;
        k += 2;
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
    }
    let between = if is_odd {
        FRAC_2_PI * (angle + sine * sum)
    } else {
        sine * sum
    };
    debug_assert!(angle <= PI / 2.0);
    0.5 + 0.5 * between
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// Printed tables.
    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (p, freedom, expected) in [
            (0.975, 1, 12.7062),
            (0.975, 2, 4.3027),
            (0.975, 3, 3.1824),
            (0.975, 9, 2.2622),
            (0.975, 10, 2.2281),
            (0.80, 9, 0.8834),
            (0.975, 120, 1.9799),
            (0.5, 4, 0.0),
        ] {
            let found = quantile(p, freedom);
            assert!((found - expected).abs() < 6e-5, "{p} {freedom}: {found}");
        }
    }
}
