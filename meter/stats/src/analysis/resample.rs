//! The bootstrap of a fitted curve (B. Efron, "Bootstrap Methods: Another Look at the Jackknife",
//! Annals of Statistics 7:1, 1979).
//!
//! A sweep has few measurements. With so few, the intervals of the plain bootstrap hold the truth
//! in 85 % of cases instead of 95 %. So the drawn values are spread by the factor by which
//! Student's t is wider than the normal distribution. In simulations with a noise of 1 % (seven
//! levels, one to ten measurements each, 300 sweeps for each case) the intervals then hold each
//! parameter in 92 to 99 % of cases.

use super::least_squares::{self, Parameters};
use super::student;
use super::usl::{Level, Resampled};
use crate::random::Random;

/// Resamples: the ends of a 95 % interval are then 25 values from the extremes.
pub(super) const RESAMPLES: usize = 1000;
/// Parameters of the curve. Each is settled by about one level.
const PARAMETERS: usize = 3;

/// Fits to resampled measurements, those that succeed. There are more measurements than parameters.
pub(crate) fn fits(levels: &[Level], best: &Parameters, seed: u64) -> (Resampled, Vec<Parameters>) {
    let mut random = Random::new(seed);
    let counts = || levels.iter().map(|level| level.throughputs.len());
    let repeats = counts().min().unwrap_or(0);
    let mut resample: Box<dyn FnMut() -> Vec<(f64, f64)>> = if repeats > 1 {
        let wider = student_ratio(PARAMETERS * (repeats - 1));
        Box::new(move || {
            let drawn = levels
                .iter()
                .flat_map(|level| replicates(level, wider, &mut random));
            drawn.collect()
        })
    } else {
        let residuals = residuals(levels, best, counts().sum::<usize>());
        Box::new(move || {
            let points = levels.iter().flat_map(Level::points);
            points
                .map(|(load, _)| {
                    let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
                    let residual = sign * residuals[random.below(residuals.len())];
                    (load, best.throughput(load) * (1.0 + residual))
                })
                .collect()
        })
    };
    let fits = (0..RESAMPLES).filter_map(|_| least_squares::fit(&resample(), Some(best)));
    let fits = fits.collect();
    let resampled = if repeats > 1 {
        Resampled::Replicates
    } else {
        Resampled::Residuals
    };
    (resampled, fits)
}

/// Draws as many measurements as the level has, with replacement, and spreads them about their
/// mean: a few values lie closer together than the distribution that they come from.
fn replicates(level: &Level, wider: f64, random: &mut Random) -> Vec<(f64, f64)> {
    let (mean, count) = (level.mean(), level.throughputs.len());
    let spread = wider * (count as f64 / (count as f64 - 1.0)).sqrt();
    let draw = |_| {
        let drawn = level.throughputs[random.below(count)];
        (level.load, mean + spread * (drawn - mean))
    };
    (0..count).map(draw).collect()
}

/// The distances of the points from the curve, as shares of the curve: throughput scatters in
/// proportion to itself.
fn residuals(levels: &[Level], best: &Parameters, count: usize) -> Vec<f64> {
    let freedom = count - PARAMETERS;
    // Residuals are shorter than errors, because parameters were fitted to them.
    let spread = student_ratio(freedom) * (count as f64 / freedom as f64).sqrt();
    let points = levels.iter().flat_map(Level::points);
    points
        .map(|(load, x)| spread * (x / best.throughput(load) - 1.0))
        .collect()
}

/// By how much Student's t is wider than the normal distribution, at 95 %.
fn student_ratio(freedom: usize) -> f64 {
    student::quantile(0.975, freedom) / 1.959_964
}
