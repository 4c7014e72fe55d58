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

use millrace_client::{Error, Plan, Process, Progress, Stop};
use millrace_stats::capacity::search::Question;
use millrace_stats::{CapacityTrial, Objective, Stage};

/// The highest rate of a search without a top: more than one client can send. A search ends long
/// before it, where the objective fails or the client is the limit.
const NO_TOP: f64 = 10_000_000.0;

/// Subject and settings of a search.
#[derive(Clone, Debug)]
pub struct CapacityPlan {
    /// One trial; it ends after a duration, and its schedule comes from the search.
    pub plan: Plan,
    /// How the requests of a trial are spread; each trial has its own arrivals.
    pub process: Process,
    /// Objective that must be met.
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
    /// From 100 requests a second as far as the server or the client goes, to within 3 %, with
    /// Poisson arrivals.
    pub fn new(plan: Plan, objective: Objective) -> Self {
        Self {
            to: NO_TOP.min(plan.highest_rate()),
            plan,
            process: Process::Poisson(1),
            objective,
            from: 100.0,
            precision: 0.03,
            at_least: None,
        }
    }

    /// Checks what can be checked before the first trial.
    ///
    /// # Errors
    /// The search cannot be carried out.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
        if !matches!(self.plan.length.stop, Stop::Duration(_)) {
            return refuse("a trial ends after a duration, not after a number of requests");
        }
        if self.plan.load.schedule.is_some() {
            return refuse("the schedule of a trial comes from the search");
        }
        if !(self.from > 0.0 && self.from < self.to) {
            return refuse("the lowest rate must be above 0 and below the highest");
        }
        if !(self.precision >= 0.001 && self.precision <= 0.5) {
            return refuse("the precision must be from 0.1 % to 50 %");
        }
        if self
            .at_least
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            return refuse("the rate that is to be reached must be above 0");
        }
        runner::top(self).check()?;
        Ok(())
    }

    /// The planned length of a trial.
    pub fn trial_length(&self) -> Duration {
        let measured = match self.plan.length.stop {
            Stop::Duration(duration) => duration,
            Stop::Requests(_) => Duration::ZERO,
        };
        self.plan.length.unmeasured() + measured
    }

    /// The fewest and the most trials of a search that finds its rate.
    pub fn trials(&self) -> [usize; 2] {
        self.question().trials()
    }

    fn question(&self) -> Question {
        Question {
            objective: self.objective,
            from: self.from,
            to: self.to,
            precision: self.precision,
        }
    }
}

/// Event that a search reports during its run.
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
    /// Purpose of the trial that runs.
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
