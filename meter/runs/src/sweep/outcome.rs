//! What a sweep found, as it is stored and shown.

use serde::{Deserialize, Serialize};

use crate::Run;
use millrace_stats::Verdict;
use millrace_stats::analysis::bottleneck::Finding;
use millrace_stats::analysis::demand::Demands;
use millrace_stats::analysis::usl::Usl;
use millrace_stats::objective::{Met, Objective};

/// Quantity that the levels of a sweep raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Requests a second, in an open loop.
    Rate,
    /// Connections, in a closed loop.
    Connections,
}

/// Direction in which a step was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From a lower level.
    Up,
    /// From a higher level.
    Down,
}

/// One step: a run at a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepStep {
    /// Requests a second, or connections.
    pub level: f64,
    /// On the way up or down.
    pub direction: Direction,
    /// Climb to which the step belongs, from 1.
    pub repeat: u64,
    /// True if it ran to its end. A step that was stopped is kept, but nothing is concluded from
    /// it.
    pub complete: bool,
    /// Judgement of the objective; `None` if there was none.
    pub objective: Option<Met>,
    /// Measured run.
    pub run: Run,
}

/// A sweep. Its JSON is the format of `millrace sweep --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Verdict of its worst step; `SUSPECT` if it was stopped before its end.
    pub verdict: Verdict,
    /// Reasons against the step; empty for `VALID`.
    pub reasons: Vec<String>,
    /// Quantity that the levels raise.
    pub by: By,
    /// The URL that was asked for.
    pub url: String,
    /// The levels as they were written.
    pub ladder: String,
    /// How many steps there were to be.
    pub planned: u64,
    /// The steps in the order in which they were run.
    pub steps: Vec<SweepStep>,
    /// The level with the most good answers a second.
    pub top: Option<TopRate>,
    /// The level with the highest throughput over mean response time; `None` with fewer than two
    /// levels.
    pub power: Option<Power>,
    /// Level at which the way down differs most from the way up.
    pub hysteresis: Option<Hysteresis>,
    /// The Universal Scalability Law, if the steps carry a fit.
    pub usl: Option<Usl>,
    /// Why there is no fit; empty if there is one.
    pub usl_refused: String,
    /// How the levels stand to the objective, if there was one.
    pub objective: Option<Attained>,
    /// The command line.
    pub command: String,
    /// True if rates are of sessions, which make requests of their own; each run has its rate of
    /// requests.
    #[serde(default)]
    pub sessions: bool,
    /// Limits of the server over all levels, the likeliest first. Empty where nothing shows a
    /// limit, none where nothing was sampled.
    pub bottleneck: Option<Vec<Finding>>,
    /// Demands of one request, at the level with the highest throughput.
    pub demands: Option<Demands>,
    /// Limits that could not be judged, in sentences without a full stop.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The highest throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopRate {
    /// Level at which it was seen.
    pub level: f64,
    /// Good answers a second, mean of the level's steps.
    pub rate: f64,
}

/// The highest "power": throughput X over mean response time R, in good answers a second for each
/// second of it. Where there are several climbs, all figures are their geometric means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// Level at which it was seen.
    pub level: f64,
    /// X/R there.
    pub value: f64,
    /// X there: good answers a second.
    pub rate: f64,
    /// R there: mean response time, in a closed loop service time.
    pub mean_us: f64,
    /// If the level is the first or the last of the ladder: the highest X/R may lie beyond it.
    pub edge: Option<Edge>,
    /// Climbs that it comes from.
    pub climbs: usize,
    /// The range of levels that holds the best one of the ladder in 95 % of such sweeps; `None`
    /// with fewer than three climbs.
    pub range: Option<LevelRange>,
    /// X/R of each level of the way up that had good answers in every climb, lowest level first.
    pub levels: Vec<LevelPower>,
}

/// X/R at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelPower {
    /// The level.
    pub level: f64,
    /// Good answers a second for each second of mean response time.
    pub value: f64,
}

/// Levels from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelRange {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// An end of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// Its lowest level.
    Lowest,
    /// Its highest level.
    Highest,
}

/// Throughput on the way up and down at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hysteresis {
    /// The level.
    pub level: f64,
    /// Good answers a second on the way up, mean of the climbs.
    pub up: f64,
    /// Good answers a second on the way down, mean of the climbs.
    pub down: f64,
}

/// How the levels stand to an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attained {
    /// The objective.
    pub objective: Objective,
    /// The levels, lowest first.
    pub levels: Vec<Judged>,
    /// The highest level that meets it.
    pub highest: Option<f64>,
    /// Level at which it ceases to hold, between two levels.
    pub crossing: Option<Crossing>,
    /// Why that cannot be said; empty if it can.
    #[serde(default)]
    pub crossing_refused: String,
}

/// Level at which an objective ceases to hold: between the highest level that meets it and the
/// lowest above that misses it, on a straight line of the logarithm of the time over the level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crossing {
    /// Level at which the time of the objective's share is that of the objective.
    pub level: f64,
    /// The level that meets it.
    pub from: f64,
    /// The time within which the objective's share of the requests was answered there, at its worst
    /// step.
    pub from_us: f64,
    /// The level that misses it.
    pub to: f64,
    /// The time there.
    pub to_us: f64,
}

/// One level against the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The level.
    pub level: f64,
    /// Judgement of the objective over every step at the rate.
    pub met: Met,
}
