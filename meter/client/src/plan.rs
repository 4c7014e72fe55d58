//! What to measure: the plan of one run, and the parts that it is made of.

mod check;
mod conditions;
mod length;
mod load;
mod probe;
mod request;
mod schedule;
mod target;

pub use conditions::RunConditions;
pub use length::{LengthPlan, Stop};
pub use load::LoadPlan;
pub use probe::ProbePlan;
pub use request::{Order, RequestPlan};
pub use schedule::{Process, Schedule};
pub use target::TargetPlan;

use crate::{Pace, limits, spin};

/// One run.
///
/// ```
/// use millrace_client::{Plan, Stop};
///
/// let plan = Plan::new("http://127.0.0.1:8080/").with(|plan| {
///     plan.load.connections = 10;
///     plan.length.stop = Stop::Requests(1000);
/// });
/// assert!(plan.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server, and how connections reach it.
    pub target: TargetPlan,
    /// Request, and the responses that are good.
    pub request: RequestPlan,
    /// How many connections send, and when.
    pub load: LoadPlan,
    /// How long the parts of the run are.
    pub length: LengthPlan,
    /// Conditions of the run: the evidence of its verdict, and its sampling.
    pub conditions: RunConditions,
}

impl Plan {
    /// One connection with keep-alive for ten seconds: every part but the URL has its default.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            target: TargetPlan::new(url),
            request: RequestPlan::default(),
            load: LoadPlan::default(),
            length: LengthPlan::default(),
            conditions: RunConditions::default(),
        }
    }

    /// This plan after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Lists remarks for the user before the run: resources that it may use up, and those that it
    /// takes from the server.
    pub fn notes(&self) -> Vec<String> {
        let ports = limits::source_ports_over_time(self);
        let spinning = spin::note(&self.target, &self.load);
        ports.into_iter().chain(spinning).collect()
    }

    /// True if a connection belongs to a user who pauses or makes several requests. If not, it
    /// takes any request that is due.
    pub(crate) fn has_users(&self) -> bool {
        self.load.pace != Pace::AtOnce || self.has_sessions()
    }

    /// True if a rate is a rate of sessions, each with requests of its own.
    pub fn has_sessions(&self) -> bool {
        self.load.session.is_some() || self.request.workload.is_some()
    }
}
