//! What a sweep found, as it is stored and shown.

use serde::{Deserialize, Serialize};

use crate::analysis::bottleneck::Finding;
use crate::analysis::demand::Demands;
use crate::analysis::usl::Usl;
use crate::objective::{Met, Objective};
use crate::{Run, Verdict};

/// What the levels of a sweep are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Requests a second, in an open loop.
    Rate,
    /// Connections, in a closed loop.
    Connections,
}

/// Which way a step was reached.
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
pub struct Step {
    /// Requests a second, or connections.
    pub level: f64,
    /// On the way up or down.
    pub direction: Direction,
    /// Which climb it belongs to, from 1.
    pub repeat: u64,
    /// Whether it ran to its end. A step that was stopped is kept, but nothing is concluded from it.
    pub complete: bool,
    /// Whether it met the objective; `None` if there was none.
    pub objective: Option<Met>,
    /// What was measured.
    pub run: Run,
}

/// A sweep. Its JSON is the format of `millpond sweep --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// That of its worst step; `SUSPECT` if it was stopped before its end.
    pub verdict: Verdict,
    /// What speaks against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// What the levels are.
    pub by: By,
    /// The URL that was asked for.
    pub url: String,
    /// The levels as they were written.
    pub ladder: String,
    /// How many steps there were to be.
    pub planned: u64,
    /// The steps in the order in which they were run.
    pub steps: Vec<Step>,
    /// The level with the most good answers a second.
    pub top: Option<TopRate>,
    /// Where the way down differs most from the way up.
    pub hysteresis: Option<Hysteresis>,
    /// The Universal Scalability Law, if the steps carry a fit.
    pub usl: Option<Usl>,
    /// Why there is no fit; empty if there is one.
    pub usl_refused: String,
    /// How the levels stand to the objective, if there was one.
    pub objective: Option<Attained>,
    /// The command line.
    pub command: String,
    /// Whether rates are of sessions, which make requests of their own; each run has its rate of requests.
    #[serde(default)]
    pub sessions: bool,
    /// What limits the server over all levels, the likeliest first. Empty where nothing shows a limit, none where nothing
    /// was sampled.
    #[serde(default)]
    pub bottleneck: Option<Vec<Finding>>,
    /// What one request takes, at the level with the highest throughput.
    #[serde(default)]
    pub demands: Option<Demands>,
    /// What could not be told of the limits, in sentences without a full stop.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The highest throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopRate {
    /// Where it was seen.
    pub level: f64,
    /// Good answers a second, mean of the level's steps.
    pub rate: f64,
}

/// Throughput on the way up and down at one level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hysteresis {
    /// The level.
    pub level: f64,
    /// Good answers a second on the way up, mean of the climbs.
    pub up: f64,
    /// The same on the way down.
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
}

/// One level against the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The level.
    pub level: f64,
    /// Whether every step at it met the objective.
    pub met: Met,
}
