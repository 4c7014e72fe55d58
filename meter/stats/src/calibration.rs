//! What a client can do by itself: its ceiling and its floor.

use serde::{Deserialize, Serialize};

/// Findings of the client against the null server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Answers a second in a closed loop with the connections, depth and threads of the plan.
    pub ceiling_per_s: f64,
    /// Median service time of one request at a time.
    pub floor_us: f64,
    /// The client's CPU time for one request at the ceiling.
    pub cpu_us_per_request: f64,
    /// Mean size of the subject's answers, heads included, and so of the null server's.
    pub response_bytes: u64,
    /// True if the null server had to run on cores that the client uses.
    pub same_core: bool,
    /// True if the client could do more than the ceiling: the null server took cores from it that
    /// the subject will not take, the null server was the limit, or a run surpassed the ceiling.
    pub lower_bound: bool,
}

impl Calibration {
    /// Returns the calibration after a run at `rate`: a ceiling that was surpassed is only a lower
    /// bound.
    pub fn after(self, rate: f64) -> Self {
        Self {
            lower_bound: self.lower_bound || self.is_surpassed(rate),
            ..self
        }
    }

    /// True if a run at `rate` shows that the client can do more than the ceiling.
    pub fn is_surpassed(&self, rate: f64) -> bool {
        rate > self.ceiling_per_s
    }
}
