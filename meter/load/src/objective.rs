//! An objective for the response time, `99% < 50ms`, and whether a run meets it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Run, Verdict, span};

/// A share of all requests that must have a good answer within a time.
///
/// The denominator is every request that was due in the measured part: one that failed, timed out or was shed had no
/// good answer. No objective is met while a [`crate::Backlog`] grows: what was seen until then is not what comes after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The share, from 0 to 1.
    pub share: f64,
    /// The time, from the scheduled send where there is one.
    pub within_us: f64,
}

/// Whether an objective is met.
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

impl Objective {
    /// Judges a run.
    pub fn judge(&self, run: &Run) -> Met {
        if run.verdict == Verdict::Invalid || run.accounting.issued == 0 || run.backlog.is_some() {
            return Met::No;
        }
        let issued = run.accounting.issued as f64;
        let good = run.accounting.good as f64;
        let (low, high) = self.within(run);
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

    /// Bounds of the share of good answers that came in time, from the percentiles that the run has. The upper one is not
    /// reached: a percentile is the shortest time within which its share came.
    fn within(&self, run: &Run) -> (f64, f64) {
        let Some(latency) = run.latency_us.response.or(run.latency_us.service) else {
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
        let fine = run.percentiles.iter().map(|point| (point.q, point.us));
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
    type Err = Error;

    /// `PERCENT% < TIME`, with the time in `us`, `ms`, `s`, `min` or `h`.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| {
            Error::Plan(format!(
                "the objective {text:?} is not understood; write a percentage below 100 and a time, such as \
                 '99% < 50ms' or '99.9% < 2s'"
            ))
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
    use crate::sweep::sample_run;
    use crate::{Backlog, Latency, Quantile};

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
            let message = bad.parse::<Objective>().unwrap_err().to_string();
            assert!(message.contains("99% < 50ms"), "{message}");
        }
    }

    fn judged(text: &str, run: &Run) -> Met {
        text.parse::<Objective>().unwrap().judge(run)
    }

    #[test]
    fn percentiles_decide_where_they_are_known() {
        // 10,000 good answers: median 1 ms, 99 % 5 ms, longest 20 ms.
        let run = sample_run(10.0, 1000.0);
        assert_eq!(judged("99% < 5.1ms", &run), Met::Yes);
        assert_eq!(judged("99% < 5ms", &run), Met::No);
        assert_eq!(judged("50% < 1.1ms", &run), Met::Yes);
        assert_eq!(judged("97% < 4ms", &run), Met::Undecided);
        assert_eq!(judged("99.99% < 20.1ms", &run), Met::Yes);
        let fine = Run {
            percentiles: vec![Quantile {
                q: 0.975,
                us: 3900.0,
            }],
            ..run
        };
        assert_eq!(judged("97% < 4ms", &fine), Met::Yes);
    }

    #[test]
    fn a_request_without_an_answer_is_late() {
        let mut run = sample_run(10.0, 1000.0);
        run.accounting.issued += 200;
        run.accounting.failed = 200;
        assert_eq!(judged("99% < 1s", &run), Met::No);
        assert_eq!(judged("98% < 1s", &run), Met::Yes);
        run.verdict = Verdict::Invalid;
        assert_eq!(judged("98% < 1s", &run), Met::No);
    }

    #[test]
    fn no_objective_is_met_while_a_backlog_grows() {
        let mut run = sample_run(10.0, 1000.0);
        assert_eq!(judged("50% < 1s", &run), Met::Yes);
        run.backlog = Some(Backlog {
            from: 5.0,
            to: 900.0,
        });
        assert_eq!(judged("50% < 1s", &run), Met::No);
    }

    #[test]
    fn too_few_requests_decide_nothing() {
        let mut run = sample_run(10.0, 1000.0);
        run.latency_us.service = Some(Latency {
            p99: None,
            p999: None,
            ..run.latency_us.service.unwrap()
        });
        assert_eq!(judged("99% < 6ms", &run), Met::Undecided);
        assert_eq!(judged("99% < 21ms", &run), Met::Yes);
    }
}
