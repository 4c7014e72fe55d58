//! An objective for the response time, `99% < 50ms`, and whether a run meets it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Latency, Quantile, span};

/// A share of all requests that must have a good answer within a time.
///
/// The denominator is every request that was due in the measured part: a request that failed, timed
/// out or was shed had no good answer. No objective is met while a [`Backlog`](crate::Backlog)
/// grows: later answers would take longer than the measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The share, from 0 to 1.
    pub share: f64,
    /// The time, from the scheduled send where there is one.
    pub within_us: f64,
}

/// Judgement of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Met {
    /// It is.
    Yes,
    /// It is not, a backlog grew, or the run is `INVALID`.
    No,
    /// There were too few requests to say.
    Undecided,
}

/// The requests of one run, which are judged by an objective.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// True if no objective can be met: the run is `INVALID`, or a backlog grew.
    pub is_failed: bool,
    /// Requests that were due in the measured part.
    pub issued: u64,
    /// Requests with a good answer.
    pub good: u64,
    /// Response times of good answers; of a closed loop service times.
    pub latency: Option<&'a Latency>,
    /// The percentile curve of the same.
    pub percentiles: &'a [Quantile],
}

impl Objective {
    /// Judges what was observed by the objective.
    pub fn judge(&self, observed: &Observed<'_>) -> Met {
        if observed.is_failed || observed.issued == 0 {
            return Met::No;
        }
        let issued = observed.issued as f64;
        let good = observed.good as f64;
        let (low, high) = self.within(observed);
        let enough = self.share * issued;
        // A tenth of a request for shares that are not exact in binary.
        if good * low >= enough - 0.1 {
            Met::Yes
        } else if good * high <= enough + 0.1 {
            Met::No
        } else {
            Met::Undecided
        }
    }

    /// Bounds of the share of good answers in time, from the percentiles that the run has. The
    /// upper bound is not reached: a percentile is the shortest time within which its share
    /// arrived.
    fn within(&self, observed: &Observed<'_>) -> (f64, f64) {
        let Some(latency) = observed.latency else {
            return (0.0, 0.0);
        };
        let named = [
            (0.5, latency.p50),
            (0.9, latency.p90),
            (0.95, latency.p95),
            (0.99, latency.p99),
            (0.999, latency.p999),
            (1.0, Some(latency.max)),
        ];
        let named = named.into_iter().filter_map(|(q, us)| Some((q, us?)));
        let fine = observed.percentiles.iter().map(|point| (point.q, point.us));
        named.chain(fine).fold((0.0, 1.0), |(low, high), (q, us)| {
            if us < self.within_us {
                (f64::max(low, q), high)
            } else {
                (low, f64::min(high, q))
            }
        })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.share * 1e8).round() / 1e6;
        match self.within_us {
            us if us < 1000.0 => write!(out, "{percent}% < {us}us"),
            us if us < 1e6 => write!(out, "{percent}% < {}ms", us / 1e3),
            us => write!(out, "{percent}% < {}s", us / 1e6),
        }
    }
}

impl FromStr for Objective {
    type Err = String;

    /// `PERCENT% < TIME`, with the time in `us`, `ms`, `s`, `min` or `h`.
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| {
            format!(
                "the objective {text:?} is not understood; write a percentage below 100 and a time, such as \
                 '99% < 50ms' or '99.9% < 2s'"
            )
        })
    }
}

fn parse(text: &str) -> Option<Objective> {
    let (percent, time) = text.split_once('<')?;
    let percent: f64 = percent.trim().strip_suffix('%')?.trim().parse().ok()?;
    let within_us = span::micros(time)?;
    let possible = percent > 0.0 && percent < 100.0;
    possible.then_some(Objective {
        share: percent / 100.0,
        within_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_is_a_percentage_and_a_time() {
        let check = |text: &str, share: f64, within_us: f64, shown: &str| {
            let objective: Objective = text.parse().unwrap();
            assert!((objective.share - share).abs() < 1e-12, "{text}");
            assert!((objective.within_us - within_us).abs() < 1e-6, "{text}");
            assert_eq!(objective.to_string(), shown);
        };
        check("99% < 50ms", 0.99, 50_000.0, "99% < 50ms");
        check("99.9%<2s", 0.999, 2e6, "99.9% < 2s");
        check(" 50 % < 0.8 ms ", 0.5, 800.0, "50% < 800us");
        check("95% < 250µs", 0.95, 250.0, "95% < 250us");
        for bad in [
            "",
            "99%",
            "99 < 50ms",
            "100% < 1s",
            "0% < 1s",
            "99% < 50",
            "99% < -1s",
            "99% > 1s",
            "99% < 5days",
            "99% < infs",
            "x% < 1s",
        ] {
            let message = bad.parse::<Objective>().unwrap_err();
            assert!(message.contains("99% < 50ms"), "{message}");
        }
    }
}
