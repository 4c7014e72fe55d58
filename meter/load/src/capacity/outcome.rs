//! What a search for the capacity found, as it is stored and shown.

use serde::{Deserialize, Serialize};

use super::fit::Line;
use crate::analysis::bottleneck::Finding;
use crate::analysis::demand::Demands;
use crate::{Host, Objective, Verdict};

/// What a trial is for.
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
pub enum Found {
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
    /// Somebody stopped the search.
    Stopped,
    /// A trial meant nothing.
    Invalid,
}

/// One run of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityTrial {
    /// What it was for.
    pub stage: Stage,
    /// Requests a second that were offered.
    pub rate: f64,
    /// Requests that were due in the measured part: the denominator of the objective.
    pub scheduled: u64,
    /// Those with a good answer within the objective's time.
    pub good: u64,
    /// Whether the server kept up so little that a backlog grew; that fails the objective.
    pub backlog: bool,
    /// Complete answers a second.
    pub achieved_rate: f64,
    /// 99th percentile of the response time in microseconds, if there were enough samples.
    pub p99_us: Option<f64>,
    /// Whether the client was so late that it was the limit itself.
    pub client_limit: bool,
    /// Whether to believe the run.
    pub verdict: Verdict,
    /// What speaks against it.
    pub reasons: Vec<String>,
}

impl CapacityTrial {
    /// The share of good answers in time, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.good as f64 / self.scheduled.max(1) as f64
    }

    /// Whether the trial by itself meets `objective`.
    pub fn meets(&self, objective: &Objective) -> bool {
        // A tenth of a request for shares that are not exact in binary.
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
        let line = Line {
            center,
            level,
            slope,
        };
        1.0 - line.bad(rate)
    }
}

impl From<Line> for Curve {
    fn from(line: Line) -> Self {
        Self {
            center: line.center,
            level: line.level,
            slope: line.slope,
        }
    }
}

/// A search and all its trials. Its JSON is the format of `millrace capacity --json`; rates are requests a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Whether to believe the rest.
    pub verdict: Verdict,
    /// What speaks against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// The answer as a sentence.
    pub answer: String,
    /// How the search ended.
    pub found: Found,
    /// The highest rate that meets the objective, where the crossing was found.
    pub rate: Option<f64>,
    /// Lower end of its 95 % interval. Without a crossing, the highest rate that was seen to meet the objective.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; `None` without a crossing.
    pub high: Option<f64>,
    /// Whether fresh trials at the lower end met the objective; `None` if there were none.
    pub met_at_low: Option<bool>,
    /// Whether fresh trials above the upper end failed it; `None` if there were none.
    pub failed_above_high: Option<bool>,
    /// What was to be met.
    pub objective: Objective,
    /// The rate that the lower end should not be below.
    pub at_least: Option<f64>,
    /// Whether it is not; `None` without such a rate, or where that cannot be said.
    pub is_at_least: Option<bool>,
    /// Half of the interval that was asked for, as a share of the rate.
    pub precision: f64,
    /// The lowest rate of the search.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// The fitted curve, near the crossing.
    pub curve: Option<Curve>,
    /// The trials in their order.
    pub trials: Vec<CapacityTrial>,
    /// What was asked for.
    pub url: String,
    /// Connections of each trial.
    pub connections: usize,
    /// Length of each trial.
    pub duration_s: f64,
    /// Length of the warm-up before each.
    pub warmup_s: f64,
    /// Whether idle cores of the client's machine were kept awake.
    #[serde(default)]
    pub awake: bool,
    /// The machine of the client.
    pub host: Host,
    /// The command line.
    pub command: String,
    /// Whether the rates of search and trials are of sessions, which make requests of their own. Counts and achieved rates are
    /// of requests.
    #[serde(default)]
    pub sessions: bool,
    /// What limits the server at the ends of the interval, the likeliest first, by the fresh trials there. Empty where nothing
    /// shows a limit, none where there were no such trials or nothing was sampled.
    #[serde(default)]
    pub bottleneck: Option<Vec<Finding>>,
    /// What one request takes there.
    #[serde(default)]
    pub demands: Option<Demands>,
    /// What could not be told of the limits, in sentences without a full stop.
    #[serde(default)]
    pub remarks: Vec<String>,
}
