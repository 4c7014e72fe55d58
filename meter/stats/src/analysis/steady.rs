//! Where a series becomes steady, and how well its mean is known then.

use super::student;

/// Values that are averaged before the truncation point is looked for, as the name MSER-5 says.
const FIVE: usize = 5;
/// Standard errors by which the two parts of Geweke's diagnostic may differ.
const LEVEL: f64 = 3.0;
/// Differences below this share of the squared mean are rounding.
const ROUNDING: f64 = 1e-12;
/// Fives of which a truncation point can be told.
const LEAST_FIVES: usize = 20;
/// Fives at the end that are no truncation point: a mean of few values has a small error by chance.
const TAIL: usize = 5;
/// Batches of which a mean has an interval.
const LEAST_BATCHES: usize = 10;
/// Below this quantile of the standard normal distribution a correlation counts as chance (90 %,
/// one-sided).
const CHANCE: f64 = 1.2816;

/// True if the series is steady from some point in its first half on. The point is that of MSER-5:
/// after it the standard error of the mean, as if of independent values, is smallest (White, "An
/// effective truncation heuristic for bias reduction in simulation output", Simulation 69:6, 1997;
/// of fives: White, Cobb and Spratt, WSC 2000). By the same authors, a point in the second half
/// means that the series is too short to tell. `None` for fewer than a hundred values.
pub fn is_steady(values: &[f64]) -> Option<bool> {
    let fives: Vec<f64> = values
        .chunks_exact(FIVE)
        .map(|five| five.iter().sum::<f64>() / FIVE as f64)
        .collect();
    if fives.len() < LEAST_FIVES {
        return None;
    }
    // Sums of the values after each point, from the end; relative to the mean, so that the squares
    // lose no digits.
    let middle = fives.iter().sum::<f64>() / fives.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (point, value) in fives.iter().enumerate().rev() {
        let value = value - middle;
        sum += value;
        squares += value * value;
        let count = (fives.len() - point) as f64;
        let error = (squares - sum * sum / count).max(0.0) / (count * count);
        // The first of equal ones.
        if fives.len() - point > TAIL && error <= best.0 + ROUNDING * middle * middle {
            best = (error, point);
        }
    }
    Some(best.1 <= fives.len() / 2 && is_level(&fives[best.1..]))
}

/// True if the first quarter and the last half have the same mean up to chance: the diagnostic of
/// Geweke ("Evaluating the accuracy of sampling-based approaches to calculating posterior moments",
/// Bayesian Statistics 4, 1992). Values are taken as independent, which errs on the side of
/// waiting. The smallest standard error of a slow drift may lie anywhere, so MSER-5 alone does not
/// find it.
fn is_level(values: &[f64]) -> bool {
    let moments = |part: &[f64]| {
        let count = part.len() as f64;
        let mean = part.iter().sum::<f64>() / count;
        let squares: f64 = part.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, squares / (count - 1.0).max(1.0) / count)
    };
    let (early, early_error) = moments(&values[..(values.len() / 4).max(1)]);
    let (late, late_error) = moments(&values[values.len() / 2..]);
    let rounding = ROUNDING * late * late;
    (early - late).powi(2) <= LEVEL * LEVEL * (early_error + late_error) + rounding
}

/// Half the 95 % interval of the mean by batch means, from the deviations of the values. Neighbours
/// are joined until the correlation of the batches (lag 1) is within chance and at least ten
/// batches are left (Fishman, "Grouping observations in digital simulation", Management Science
/// 24:5, 1978). `None` if the batches stay correlated: the series is too short, or it drifts.
pub fn half_width(deviations: &[f64]) -> Option<f64> {
    let mut size = 1;
    while deviations.len() / size >= LEAST_BATCHES {
        let means: Vec<f64> = deviations
            .chunks_exact(size)
            .map(|batch| batch.iter().sum::<f64>() / size as f64)
            .collect();
        let count = means.len() as f64;
        let mean = means.iter().sum::<f64>() / count;
        let squares: f64 = means.iter().map(|value| (value - mean).powi(2)).sum();
        if squares <= 0.0 {
            return Some(0.0);
        }
        let products: f64 = means
            .windows(2)
            .map(|pair| (pair[0] - mean) * (pair[1] - mean))
            .sum();
        // The variance of the correlation of independent values.
        let chance = CHANCE * ((count - 2.0) / (count * count - 1.0)).sqrt();
        if products / squares <= chance {
            let error = (squares / (count - 1.0) / count).sqrt();
            return Some(student::quantile(0.975, means.len() - 1) * error);
        }
        size *= 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// An autoregressive series with this correlation, around 0, with a standard deviation of 1.
    fn correlated(seed: u64, correlation: f64, count: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut normal = move || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        let mut last = normal();
        let fresh = (1.0 - correlation * correlation).sqrt();
        (0..count)
            .map(|_| {
                last = correlation * last + fresh * normal();
                last
            })
            .collect()
    }

    #[test]
    fn a_steady_series_is_steady_and_one_that_rises_is_not() {
        assert_eq!(is_steady(&[1.0; 99]), None);
        assert_eq!(is_steady(&[1.0; 100]), Some(true));
        let steady = (0..200).filter(|&seed| is_steady(&correlated(seed, 0.3, 200)) == Some(true));
        assert!(steady.count() > 180);
        let rising: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(is_steady(&rising), Some(false));
        // A drift that is small beside the scatter, until there is enough of it.
        let drifts = |count: usize| {
            let drift = |seed: &u64| -> bool {
                let noise = correlated(*seed, 0.0, count).into_iter().enumerate();
                let values: Vec<f64> = noise.map(|(n, x)| x + n as f64 / 100.0).collect();
                is_steady(&values) == Some(true)
            };
            (0..200).filter(drift).count()
        };
        assert!(
            drifts(200) < 70 && drifts(400) == 0,
            "{} {}",
            drifts(200),
            drifts(400)
        );
        // Cold for a third of the time. The whole series is steady; a series that ends soon after
        // the cold third is not.
        let cold =
            |n: usize| -> Vec<f64> { (0..n).map(|n| if n < 60 { 5.0 } else { 1.0 }).collect() };
        assert_eq!(is_steady(&cold(180)), Some(true));
        assert_eq!(is_steady(&cold(110)), Some(false));
    }

    #[test]
    fn the_interval_holds_the_mean_nearly_as_often_as_it_says() {
        for (correlation, least) in [(0.0, 920), (0.5, 880), (0.8, 850)] {
            let holds = |seed: &u64| {
                let values = correlated(*seed, correlation, 400);
                let mean = values.iter().sum::<f64>() / 400.0;
                let deviations: Vec<f64> = values.iter().map(|value| value - mean).collect();
                half_width(&deviations).is_none_or(|half| mean.abs() <= half)
            };
            let count = (0..1000).filter(holds).count();
            assert!(count >= least, "{correlation}: {count}");
        }
    }

    #[test]
    fn a_drift_has_no_interval_and_a_constant_a_tiny_one() {
        let drift: Vec<f64> = (0..400).map(|n| f64::from(n) - 200.0).collect();
        assert_eq!(half_width(&drift), None);
        assert_eq!(half_width(&[0.0; 20]), Some(0.0));
        assert_eq!(half_width(&[0.0; 9]), None);
    }
}
