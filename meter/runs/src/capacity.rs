//! The capacity of a server: the highest rate at which it meets an objective, with an interval and
//! a confirmation.
//!
//! The search doubles the rate until the objective fails, and narrows the gap by bisection. It then
//! spreads trials around the crossing and fits the share of bad requests against the rate, with a
//! new centre after each round of four. This is a stochastic approximation after Robbins and Monro
//! ("A stochastic approximation method", Ann. Math. Stat. 22:3, 1951) whose step is the fitted
//! slope (Wu, "Efficient sequential designs with binary data", JASA 80, 1985). The search ends when
//! the interval is as narrow as the user asks for. Fresh trials that took no part in the fit then
//! test the lower end of the interval, where the objective must hold, and a rate above the upper
//! end, where it must fail.

mod limits;
mod outcome;
mod runner;
mod words;

use std::time::Duration;

pub use outcome::Capacity;
pub use runner::capacity;

use millrace_client::{Plan, Process, Progress};
use millrace_stats::{CapacityTrial, Objective, Stage};

/// What to search, and how.
#[derive(Clone, Debug)]
pub struct CapacityPlan {
    /// One trial; it ends after a duration, and its schedule comes from the search.
    pub plan: Plan,
    /// How the requests of a trial are spread; each trial has its own arrivals.
    pub process: Process,
    /// What must be met.
    pub objective: Objective,
    /// The rate of the first trial, in requests a second.
    pub from: f64,
    /// The highest rate that is tried.
    pub to: f64,
    /// Half of the 95 % interval at which the search is content, as a share of the rate.
    pub precision: f64,
    /// The rate that the lower end of the interval should not be below.
    pub at_least: Option<f64>,
}

impl CapacityPlan {
    /// From 100 to 100,000 requests a second to within 3 %, with Poisson arrivals.
    pub fn new(plan: Plan, objective: Objective) -> Self {
        Self {
            plan,
            process: Process::Poisson(1),
            objective,
            from: 100.0,
            to: 100_000.0,
            precision: 0.03,
            at_least: None,
        }
    }
}

/// What a search reports during its run.
#[derive(Clone, Copy, Debug)]
pub enum CapacityNews<'a> {
    /// How far the search is; about four times a second.
    Progress(&'a CapacityProgress),
    /// A trial that is done.
    Trial(&'a CapacityTrial),
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityProgress {
    /// What the trial that runs is for.
    pub stage: Stage,
    /// Its rate.
    pub rate: f64,
    /// Trials that are done.
    pub done: usize,
    /// Trials that the whole search is expected to take. It changes with the results.
    pub expected: usize,
    /// How far the trial's run is.
    pub run: Progress,
    /// Time to the expected end.
    pub remaining: Duration,
}
