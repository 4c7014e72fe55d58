//! The Universal Scalability Law: what contention and crosstalk cost as the load grows.
//!
//! X(N) = λN / (1 + σ(N−1) + κN(N−1)), from N. Gunther, "Guerrilla Capacity Planning" (Springer,
//! 2007). σ is the share of work that is done one after the other, κ what each pair of requests
//! costs to keep consistent; throughput is highest at N* = √((1−σ)/κ). A fit that the measurements
//! do not support is refused with the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::least_squares::{self, Parameters};
use super::resample::{self, RESAMPLES};

/// Fewer loads than this do not determine three parameters.
const LEVELS: usize = 6;
/// Share of the fitted maximum that must have been seen.
const SATURATION: f64 = 0.8;
/// Share of requests without a good answer above which a level measures something else.
const ERRORS: f64 = 0.01;
/// How far a point may lie above proportion to the lowest by chance.
const CHANCE: f64 = 1.05;
/// The law answers up to this multiple of the highest load.
const REACH: f64 = 2.0;
/// Points of the drawn curve.
const CURVE: usize = 60;

/// One measurement: a throughput at a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Requests in flight: connections in a closed loop without think time.
    pub load: f64,
    /// Good answers a second.
    pub throughput: f64,
    /// Share of requests without a good answer, from 0 to 1.
    pub error_share: f64,
}

/// A value with its 95 % bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value of the fit to all measurements.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Data that was resampled for the intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resampled {
    /// The measurements of each level among themselves.
    Replicates,
    /// How far the points lie from the curve, as shares of it: some level has only one measurement.
    Residuals,
}

/// A fit of the law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// Contention.
    pub sigma: Estimate,
    /// Crosstalk.
    pub kappa: Estimate,
    /// Throughput at a load of 1.
    pub lambda: Estimate,
    /// The load with the highest throughput, where it is known.
    pub peak_load: Option<Estimate>,
    /// The throughput there.
    pub peak_throughput: Option<f64>,
    /// Why there is no peak; empty if there is one.
    pub peak_note: String,
    /// Source of the intervals.
    pub resampled: Resampled,
    /// The highest load that was measured.
    pub highest_load: f64,
    /// The curve over the measured loads.
    pub curve: Vec<CurvePoint>,
}

/// A point of the fitted curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Load.
    pub load: f64,
    /// Throughput by the fit, with its 95 % interval.
    pub throughput: Estimate,
}

/// Why there is no fit, or no answer from one. Its text is a sentence without a full stop.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// Fewer than six loads.
    FewLevels {
        /// How many there are.
        have: usize,
    },
    /// Too many requests without a good answer.
    Errors {
        /// Load of the point.
        load: f64,
        /// Their share.
        share: f64,
    },
    /// Throughput rises faster than the load.
    Superlinear {
        /// Load of the point.
        load: f64,
        /// Throughput, for what proportion to the lowest load would give.
        factor: f64,
    },
    /// The maximum is too far beyond what was measured.
    NotSaturated {
        /// Highest measured throughput as a share of the fitted maximum.
        share: f64,
    },
    /// No curve of the law comes near the points.
    NoFit,
    /// The question is too far beyond the measured loads.
    Extrapolation {
        /// The load asked for.
        load: f64,
        /// The highest that is answered.
        limit: f64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewLevels { have } => write!(
                out,
                "the sweep has {have} level{}, and a fit of three parameters needs at least {LEVELS}",
                if *have == 1 { "" } else { "s" }
            ),
            Self::Errors { load, share } => write!(
                out,
                "{:.1} % of the requests at {load} had no good answer, and more than 1 % means that errors were \
                 measured",
                share * 100.0
            ),
            Self::Superlinear { load, factor } => write!(
                out,
                "throughput at {load} is {factor:.2} times what proportion to the lowest level gives, which the law \
                 cannot explain; the lowest level may be badly measured (cold caches, a sleeping processor)"
            ),
            Self::NotSaturated { share } => write!(
                out,
                "the sweep ends before saturation: the highest throughput is {:.0} % of the maximum that the curve \
                 points to, and at least 80 % is needed; go to higher levels",
                share * 100.0
            ),
            Self::NoFit => out.write_str("no curve of the law comes near the measurements"),
            Self::Extrapolation { load, limit } => write!(
                out,
                "a load of {load} is more than twice the highest that was measured; the law is asked up to {limit}"
            ),
        }
    }
}

impl Usl {
    /// Fits the law to measurements. The same `seed` gives the same intervals. Costs a thousand
    /// fits, about ten milliseconds in all.
    ///
    /// # Errors
    /// The measurements do not support a fit.
    pub fn fit(observations: &[Observation], seed: u64) -> Result<Self, Refusal> {
        let levels = levels(observations);
        check(&levels)?;
        let points: Vec<(f64, f64)> = levels.iter().flat_map(Level::points).collect();
        let best = least_squares::fit(&points, None).ok_or(Refusal::NoFit)?;
        let seen = levels.iter().map(Level::mean).fold(0.0, f64::max);
        let share = seen / maximum(&best);
        if share < SATURATION {
            return Err(Refusal::NotSaturated { share });
        }
        let (resampled, fits) = resample::fits(&levels, &best, seed);
        // More than a tenth of resamples without a fit is no chance.
        if fits.len() * 10 < RESAMPLES * 9 {
            return Err(Refusal::NoFit);
        }
        Ok(Self::with_intervals(&best, &fits, resampled, &levels))
    }

    fn with_intervals(
        best: &Parameters,
        fits: &[Parameters],
        resampled: Resampled,
        levels: &[Level],
    ) -> Self {
        let estimate = |of: &dyn Fn(&Parameters) -> f64| interval(of(best), fits.iter().map(of));
        let lowest = levels.first().map_or(1.0, |level| level.load);
        let highest_load = levels.last().map_or(1.0, |level| level.load);
        let curve = (0..=CURVE).map(|n| {
            let load = lowest + (highest_load - lowest) * n as f64 / CURVE as f64;
            CurvePoint {
                load,
                throughput: estimate(&|fit| fit.throughput(load)),
            }
        });
        let kappa = estimate(&|fit| fit.kappa);
        let peak = estimate(&peak_load);
        let peak_note = if kappa.low <= 0.0 {
            "not reached: the interval of κ includes 0".to_owned()
        } else if peak.value > REACH * highest_load {
            format!(
                "more than twice the highest level: past {}",
                REACH * highest_load
            )
        } else {
            String::new()
        };
        let has_peak = peak_note.is_empty();
        Self {
            sigma: estimate(&|fit| fit.sigma),
            kappa,
            lambda: estimate(&|fit| fit.lambda),
            peak_load: has_peak.then_some(peak),
            peak_throughput: has_peak.then(|| best.throughput(peak.value)),
            peak_note,
            resampled,
            highest_load,
            curve: curve.collect(),
        }
    }

    /// Throughput by the law at a load.
    ///
    /// # Errors
    /// [`Refusal::Extrapolation`] past twice the highest measured load.
    pub fn throughput(&self, load: f64) -> Result<f64, Refusal> {
        let limit = REACH * self.highest_load;
        if load > limit {
            return Err(Refusal::Extrapolation { load, limit });
        }
        let best = Parameters {
            sigma: self.sigma.value,
            kappa: self.kappa.value,
            lambda: self.lambda.value,
        };
        Ok(best.throughput(load))
    }
}

/// The measurements at one load.
pub struct Level {
    /// The load of the level.
    pub load: f64,
    pub(super) throughputs: Vec<f64>,
    error_share: f64,
}

impl Level {
    /// Load and throughput of each run at the level.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.throughputs.iter().map(|x| (self.load, *x))
    }

    /// The mean throughput.
    pub fn mean(&self) -> f64 {
        self.throughputs.iter().sum::<f64>() / self.throughputs.len() as f64
    }
}

fn levels(observations: &[Observation]) -> Vec<Level> {
    let mut sorted = observations.to_vec();
    sorted.sort_by(|a, b| a.load.total_cmp(&b.load));
    sorted
        .chunk_by(|a, b| a.load == b.load)
        .map(|same| Level {
            load: same[0].load,
            throughputs: same.iter().map(|one| one.throughput).collect(),
            error_share: same.iter().map(|one| one.error_share).sum::<f64>() / same.len() as f64,
        })
        .collect()
}

/// Checks that the measurements may be fitted at all.
fn check(levels: &[Level]) -> Result<(), Refusal> {
    if levels.len() < LEVELS {
        return Err(Refusal::FewLevels { have: levels.len() });
    }
    if let Some(level) = levels.iter().find(|level| level.error_share > ERRORS) {
        return Err(Refusal::Errors {
            load: level.load,
            share: level.error_share,
        });
    }
    let possible = |x: &f64| *x > 0.0 && x.is_finite();
    if !levels
        .iter()
        .all(|level| level.load > 0.0 && level.throughputs.iter().all(possible))
    {
        return Err(Refusal::NoFit);
    }
    let alone = levels[0].mean() / levels[0].load;
    let above = levels
        .iter()
        .map(|level| (level.load, level.mean() / level.load / alone));
    match above.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((load, factor)) if factor > CHANCE => Err(Refusal::Superlinear { load, factor }),
        _ => Ok(()),
    }
}

/// Returns the load at which throughput is highest; without crosstalk there is none.
fn peak_load(fit: &Parameters) -> f64 {
    if fit.kappa > 0.0 {
        ((1.0 - fit.sigma).max(0.0) / fit.kappa).sqrt().max(1.0)
    } else {
        f64::INFINITY
    }
}

/// The highest throughput of a fit: at its peak, or toward λ/σ.
fn maximum(fit: &Parameters) -> f64 {
    let peak = peak_load(fit);
    if peak.is_finite() {
        fit.throughput(peak)
    } else {
        fit.lambda / fit.sigma
    }
}

/// The middle 95 % of the resampled values about `value`.
fn interval(value: f64, resampled: impl Iterator<Item = f64>) -> Estimate {
    let mut sorted: Vec<f64> = resampled.collect();
    sorted.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let place = (q * (sorted.len() as f64 - 1.0)).round() as usize;
        sorted.get(place).copied().unwrap_or(value)
    };
    Estimate {
        value,
        low: at(0.025),
        high: at(0.975),
    }
}

#[cfg(test)]
#[path = "usl_tests.rs"]
mod tests;
