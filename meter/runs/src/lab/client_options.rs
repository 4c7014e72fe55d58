//! What the workload says of the client besides its paths and its rate: pauses, sessions,
//! bandwidth, and the length of a run.

use std::time::Duration;

use super::spec::WorkloadSpec;
use millrace_client::{Pace, Plan, Stop, Think};

/// Length of a run whose file does not say.
const USUAL: Duration = Duration::from_secs(5);

impl WorkloadSpec {
    /// The planned length of a run. One of a number of requests, and a replay of a whole log, may
    /// last longer or shorter.
    pub(super) fn duration(&self) -> Duration {
        self.duration.map_or(USUAL, |time| time.0)
    }

    /// When a run of this planned length ends.
    pub(super) fn stop(&self, duration: Duration) -> Stop {
        match (self.requests, &self.replay, self.duration) {
            (Some(requests), ..) => Stop::Requests(requests),
            (None, Some(_), None) => Stop::Duration(Duration::MAX),
            _ => Stop::Duration(duration),
        }
    }

    /// Sets method and body in `plan`, and how connections carry them.
    pub(super) fn set_request(&self, plan: &mut Plan) {
        if let Some(method) = &self.method {
            plan.request.method.clone_from(method);
        }
        if let Some(body) = &self.body {
            plan.request.body = body.clone().into_bytes();
            if self.method.is_none() {
                "POST".clone_into(&mut plan.request.method);
            }
        }
    }

    /// Sets pauses, sessions and bandwidth in `plan`.
    pub(super) fn set_habits(&self, plan: &mut Plan) {
        plan.load.pace = self.think.map_or(Pace::AtOnce, Pace::Think);
        plan.load.session = self.session;
        plan.request.keep_alive = self.keep_alive;
        plan.target.throttle_down = self.throttle_down;
        plan.target.throttle_up = self.throttle_up;
    }

    /// Describes pauses, sessions and bandwidth in sentences, for the report.
    pub(super) fn habits(&self) -> Vec<String> {
        let mut habits = Vec::new();
        if let Some(requests) = self.requests {
            habits.push(format!("a run ends after {requests} requests"));
        }
        if let Some(method) = &self.method {
            habits.push(format!("requests are {method}"));
        }
        if let Some(body) = &self.body {
            habits.push(format!("each has a body of {} bytes", body.len()));
        }
        if let Some(session) = self.session {
            habits.push(format!("visitors make {session} requests each"));
        }
        if let Some(count) = self.per_connection {
            habits.push(format!("a connection serves {count}"));
        }
        if !self.keep_alive {
            habits.push("each request has a connection of its own".to_owned());
        }
        if let Some(think) = self.think {
            habits.push(pause(think));
        }
        if let Some(rate) = self.throttle_down {
            habits.push(format!("a connection receives at most {rate}"));
        }
        if let Some(rate) = self.throttle_up {
            habits.push(format!("it sends at most {rate}"));
        }
        if let Some(log) = &self.replay {
            let speed = self.speed.as_ref().map_or(1.0, |speed| *speed.get_ref());
            habits.push(format!(
                "the requests of {} at its own times, {speed} times as fast",
                log.get_ref()
            ));
        }
        habits
    }
}

/// A pause in words.
fn pause(think: Think) -> String {
    match think {
        Think::Constant(pause) => format!("the pause after an answer is {pause:?}"),
        Think::Exponential(mean) => {
            format!(
                "the pause after an answer is exponentially distributed with a mean of {mean:?}"
            )
        }
        Think::Uniform(from, to) => {
            format!("the pause after an answer is between {from:?} and {to:?}")
        }
    }
}
