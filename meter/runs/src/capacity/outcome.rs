//! What a search for the capacity found, as it is stored and shown.

use serde::{Deserialize, Serialize};

use crate::Host;
use millrace_stats::analysis::bottleneck::Finding;
use millrace_stats::analysis::demand::Demands;
use millrace_stats::{CapacityTrial, Curve, Objective, SearchEnd, Verdict};

/// A search and all its trials. Its JSON is the format of `millrace capacity --json`; rates are
/// requests a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Verdict on the search.
    pub verdict: Verdict,
    /// Reasons against the search; empty for `VALID`.
    pub reasons: Vec<String>,
    /// The answer as a sentence.
    pub answer: String,
    /// How the search ended.
    pub found: SearchEnd,
    /// The highest rate that meets the objective, where the crossing was found.
    pub rate: Option<f64>,
    /// Lower end of its 95 % interval. Without a crossing, the highest rate that was seen to meet
    /// the objective.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; `None` without a crossing.
    pub high: Option<f64>,
    /// True if fresh trials at the lower end met the objective; `None` if there were none.
    pub met_at_low: Option<bool>,
    /// True if fresh trials above the upper end failed it; `None` if there were none.
    pub failed_above_high: Option<bool>,
    /// Objective that was to be met.
    pub objective: Objective,
    /// The rate that the lower end should not be below.
    pub at_least: Option<f64>,
    /// True if it is not; `None` without such a rate, or where that cannot be said.
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
    /// URL that was asked for.
    pub url: String,
    /// Connections of each trial.
    pub connections: usize,
    /// Length of each trial.
    pub duration_s: f64,
    /// Length of the warm-up before each.
    pub warmup_s: f64,
    /// The machine of the client.
    pub host: Host,
    /// The command line.
    pub command: String,
    /// True if the rates of search and trials are of sessions, which make requests of their own.
    /// Counts and achieved rates are of requests.
    #[serde(default)]
    pub sessions: bool,
    /// Limits of the server at the ends of the interval, the likeliest first, by the fresh trials
    /// there. Empty where nothing shows a limit, none where there were no such trials or nothing
    /// was sampled.
    pub bottleneck: Option<Vec<Finding>>,
    /// Demands of one request there.
    pub demands: Option<Demands>,
    /// Limits that could not be judged, in sentences without a full stop.
    #[serde(default)]
    pub remarks: Vec<String>,
}
