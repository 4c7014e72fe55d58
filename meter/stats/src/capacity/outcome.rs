//! The trials of a search for the capacity, and the result of the search.

use serde::{Deserialize, Serialize};

use super::fit::LogitLine;
use crate::{Objective, Verdict};

/// Purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To find a rate at which the objective is not met, by doubling.
    Bracket,
    /// To narrow the gap between a rate that is met and one that is not.
    Bisect,
    /// To fit the share of bad requests around the crossing. Only these take part in the fit.
    Refine,
    /// To confirm that the objective is met at the lower end of the interval.
    ConfirmLow,
    /// To confirm that it is not met above the upper end.
    ConfirmHigh,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The highest rate, with its interval.
    Rate,
    /// The objective is not met even at the lowest rate.
    BelowFrom,
    /// The objective is met at the highest rate that was to be tried.
    AboveTo,
    /// The client cannot offer a higher rate; the server's limit is not known.
    ClientLimit,
    /// The trials did not show where the objective begins to fail.
    Undecided,
    /// The search was stopped by a signal or by its caller.
    Stopped,
    /// A trial was invalid.
    Invalid,
}

/// One run of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityTrial {
    /// Purpose of the trial.
    pub stage: Stage,
    /// Requests a second that were offered.
    pub rate: f64,
    /// Requests that were due in the measured part: the denominator of the objective.
    pub scheduled: u64,
    /// Requests with a good answer within the objective's time.
    pub good: u64,
    /// True if a backlog grew; that fails the objective.
    pub backlog: bool,
    /// Complete answers a second.
    pub achieved_rate: f64,
    /// 99th percentile of the response time in microseconds, if there were enough samples.
    pub p99_us: Option<f64>,
    /// True if the client was so late that the client was the limit.
    pub client_limit: bool,
    /// Verdict on the run.
    pub verdict: Verdict,
    /// Reasons against the run.
    pub reasons: Vec<String>,
}

impl CapacityTrial {
    /// The share of good answers in time, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.good as f64 / self.scheduled.max(1) as f64
    }

    /// True if the trial by itself meets `objective`.
    pub fn meets(&self, objective: &Objective) -> bool {
        // A tenth of a request of tolerance, for shares that are not exact in binary.
        self.scheduled > 0
            && !self.backlog
            && self.good as f64 >= objective.share * self.scheduled as f64 - 0.1
    }
}

/// The fitted share of bad requests: log(p / (1 − p)) = `level` + `slope` · (rate / `center` − 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The rate in the middle of the fit.
    pub center: f64,
    /// The log odds of a bad request there.
    pub level: f64,
    /// Change of the log odds for one multiple of the rate.
    pub slope: f64,
}

impl Curve {
    /// The share of good answers in time at `rate`.
    pub fn share(&self, rate: f64) -> f64 {
        let Self {
            center,
            level,
            slope,
        } = *self;
        let line = LogitLine {
            center,
            level,
            slope,
        };
        1.0 - line.bad(rate)
    }
}

impl From<LogitLine> for Curve {
    fn from(line: LogitLine) -> Self {
        Self {
            center: line.center,
            level: line.level,
            slope: line.slope,
        }
    }
}
