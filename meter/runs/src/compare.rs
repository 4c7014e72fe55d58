//! Is B better or worse than A? Decided by paired blocks.
//!
//! A machine's speed drifts, so two long runs one after the other compare hours, not servers. Here
//! the unit is the run, and runs alternate in blocks of four, A B B A: a drift that is linear
//! within a block adds the same to both sides. Each block gives one log ratio; the interval comes
//! from the differences between blocks. Before that, A is measured against itself in the same
//! pattern: its result is the floor below which no difference can be shown.

pub(crate) mod cpu;
mod subject;

use serde::{Deserialize, Serialize};

pub use subject::{Compare, CompareProgress, compare};

use crate::Host;
use millrace_stats::{Aside, Block, Decision, Detect, Effect, Metric, Subject, Verdict};

/// A comparison and all its runs. Its JSON is the format of `millrace compare --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Verdict on the comparison.
    pub verdict: Verdict,
    /// Reasons against the result; empty for `VALID`.
    pub reasons: Vec<String>,
    /// Remarks that do not speak against the result.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The answer as a sentence.
    pub answer: String,
    /// The answer in a word.
    pub decision: Decision,
    /// How many times worse than A the server B may be.
    pub limit: Option<f64>,
    /// True if the upper 95 % bound of "how many times worse" is within the limit. `None` without a
    /// limit, or if it could not be decided.
    pub within_limit: Option<bool>,
    /// True if all blocks were carried out.
    pub complete: bool,
    /// The metric that decides. The others are shown beside it, without a correction for multiple
    /// comparisons.
    pub metric: Metric,
    /// The server that is compared with.
    pub a: Subject,
    /// The server that is compared.
    pub b: Subject,
    /// The result for each measured metric.
    pub effects: Vec<Effect>,
    /// Requested blocks of each phase; the minimum if `detect` is given.
    pub blocks_asked: usize,
    /// The smallest difference to be detected.
    pub detect: Option<Detect>,
    /// Connections of each run.
    pub connections: usize,
    /// Requests a second of each run in an open loop; sessions a second with `sessions`.
    pub offered_rate: Option<f64>,
    /// True if the rate is one of sessions, which make requests of their own.
    #[serde(default)]
    pub sessions: bool,
    /// Length of each run.
    pub duration_s: f64,
    /// Length of the warm-up before each run.
    pub warmup_s: f64,
    /// Blocks of A against itself.
    pub baseline: Vec<Block>,
    /// Blocks of A and B.
    pub blocks: Vec<Block>,
    /// Blocks that were measured again, in their order.
    #[serde(default)]
    pub aside: Vec<Aside>,
    /// The machine of the client.
    pub host: Host,
    /// The command line.
    pub command: String,
}

impl Comparison {
    /// The result for the metric that decides.
    pub fn decisive(&self) -> Option<&Effect> {
        self.effects
            .iter()
            .find(|effect| effect.metric == self.metric)
    }
}
