//! How unequal a popularity is: the exponent of Zipf's law that fits counts in the order of their
//! ranks.

/// Ranks that are summed one by one; the rest is an integral.
const SUMMED: usize = 256;

/// The exponent of Zipf's law over `counts.len()` ranks for which these counts, the greatest first,
/// are most likely. `None` with fewer than five ranks or two hundred requests. The ranks are taken
/// from the counts, so chance sorts them too: a small sample looks a little steeper than it is.
pub(super) fn exponent(counts: &[u64]) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    if counts.len() < 5 || total < 200 {
        return None;
    }
    let logs = counts
        .iter()
        .enumerate()
        .map(|(rank, &count)| count as f64 * ((rank + 1) as f64).ln());
    let wanted = logs.sum::<f64>() / total as f64;
    // The mean logarithm of the rank falls as the exponent grows.
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if mean_log(counts.len(), middle) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((low + high) / 2.0)
}

/// The mean logarithm of the rank under Zipf's law: −d/ds of the logarithm of the sum of k⁻ˢ.
fn mean_log(ranks: usize, s: f64) -> f64 {
    const STEP: f64 = 1e-5;
    (sum(ranks, s - STEP).ln() - sum(ranks, s + STEP).ln()) / (2.0 * STEP)
}

/// The sum of k⁻ˢ for k from 1 to `ranks`, its tail by the midpoint rule.
fn sum(ranks: usize, s: f64) -> f64 {
    let first = ranks.min(SUMMED);
    let head: f64 = (1..=first).map(|rank| (rank as f64).powf(-s)).sum();
    if ranks == first {
        return head;
    }
    let (from, to) = ((first as f64 + 0.5).ln(), (ranks as f64 + 0.5).ln());
    let power = 1.0 - s;
    // The integral of x⁻ˢ, which is ln x at s = 1.
    let tail = if power.abs() < 1e-9 {
        to - from
    } else {
        ((power * to).exp() - (power * from).exp()) / power
    };
    head + tail
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::zipf::Zipf;
    use millrace_stats::random::Random;

    #[test]
    fn a_known_exponent_is_found_again() {
        for s in [0.6, 0.9, 1.0, 1.3] {
            let counts: Vec<u64> = (1..=5000)
                .map(|rank| (1e7 * f64::from(rank).powf(-s)) as u64)
                .collect();
            let found = exponent(&counts).unwrap();
            assert!((found - s).abs() < 0.01, "{s}: {found}");
        }
        let (zipf, mut random) = (Zipf::new(300, 0.8), Random::new(9));
        let mut counts = vec![0; 300];
        (0..60_000).for_each(|_| counts[zipf.pick(&mut random) as usize - 1] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let found = exponent(&counts).unwrap();
        assert!((found - 0.8).abs() < 0.05, "{found}");
    }

    #[test]
    fn equal_counts_have_no_slope_and_few_say_nothing() {
        assert!(exponent(&[100; 50]).unwrap() < 0.01);
        assert_eq!(exponent(&[1000; 4]), None);
        assert_eq!(exponent(&[1; 100]), None);
    }
}
