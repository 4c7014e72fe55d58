//! Is B better or worse than A? Decided by paired blocks.
//!
//! A machine's speed drifts, so two long runs one after the other compare hours, not servers. Here the run is the
//! unit, and runs alternate in blocks of four, A B B A: a drift that is linear within a block adds the same to both
//! sides. Each block gives one log ratio; the interval comes from how the blocks differ. Before it, A is measured
//! against itself in the same pattern: what that finds is the floor below which nothing can be said.

pub(crate) mod cpu;
mod design;
pub(crate) mod judge;
mod length;
#[cfg(test)]
mod simulation;
mod subject;
mod words;

use serde::{Deserialize, Serialize};

pub use length::Detect;
pub use subject::{Compare, CompareProgress, compare};

use crate::{Host, Verdict};

/// Blocks that a ratio is to be decided by; with fewer, the verdict is `SUSPECT`.
pub const BLOCKS: usize = 10;
/// Blocks without which there is no interval.
pub const FEWEST_BLOCKS: usize = 3;
/// Blocks of each half that nobody waits for the end of.
pub const MOST_BLOCKS: usize = 10_000;

/// A figure of a run by which two servers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// CPU time of the server for one answer, opening of connections included, in microseconds.
    Cpu,
    /// Good answers a second of a closed loop.
    Throughput,
    /// Median response time in microseconds; of a closed loop the service time.
    P50,
    /// The 99th percentile of the same.
    P99,
}

impl Metric {
    /// Every metric, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Throughput, Self::P50, Self::P99];

    /// Whether less of it is better.
    pub fn is_cost(self) -> bool {
        self != Self::Throughput
    }

    /// What it is called in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "server CPU per request",
            Self::Throughput => "throughput",
            Self::P50 => "median",
            Self::P99 => "99th percentile",
        }
    }
}

/// One of the two servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// What it is called.
    pub name: String,
    /// What is asked for.
    pub url: String,
    /// Its processes on this machine, for the CPU time; may be empty.
    pub pids: Vec<u32>,
}

/// A place in a block. In the A/A phase both are the server A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The first and the last run.
    A,
    /// The second and the third.
    B,
}

/// The order of the runs in a block.
pub const PATTERN: [Side; 4] = [Side::A, Side::B, Side::B, Side::A];

/// What one run gave; `None` where it had too few samples or nobody could look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Good answers a second.
    pub throughput: Option<f64>,
    /// Median in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile in microseconds.
    pub p99_us: Option<f64>,
    /// CPU time of the server for one answer, in microseconds.
    pub cpu_us: Option<f64>,
}

impl Sample {
    /// The figure of a metric, if there is one above zero.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        let figure = match metric {
            Metric::Cpu => self.cpu_us,
            Metric::Throughput => self.throughput,
            Metric::P50 => self.p50_us,
            Metric::P99 => self.p99_us,
        };
        figure.filter(|figure| *figure > 0.0 && figure.is_finite())
    }
}

/// One run of a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its place in the block.
    pub side: Side,
    /// Its figures.
    pub sample: Sample,
    /// Whether to believe them.
    pub verdict: Verdict,
    /// What speaks against them.
    pub reasons: Vec<String>,
    /// See [`Run::client_at_fault`](crate::Run::client_at_fault).
    #[serde(default)]
    pub client_at_fault: bool,
}

/// Four runs in the order of [`PATTERN`]; fewer only in the last block of a comparison that did not come to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The runs.
    pub trials: Vec<Trial>,
}

/// A block that does not count, because what befell the client made a run of it `INVALID`. It was measured again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aside {
    /// Whether it was one of A against itself.
    pub baseline: bool,
    /// Its number within its half, from 1.
    pub number: usize,
    /// Its runs up to the `INVALID` one.
    pub block: Block,
}

impl Block {
    /// Whether all runs are there.
    pub fn is_complete(&self) -> bool {
        self.trials.len() == PATTERN.len()
    }

    /// The geometric mean of a metric over the two runs of a side, if the block is complete and both have it.
    pub fn mean(&self, metric: Metric, side: Side) -> Option<f64> {
        let runs = || self.trials.iter().filter(|trial| trial.side == side);
        let logs: Option<f64> = runs()
            .map(|trial| trial.sample.get(metric).map(f64::ln))
            .sum();
        self.is_complete()
            .then(|| logs.map(|sum| (sum / runs().count() as f64).exp()))?
    }

    /// B over A.
    pub fn ratio(&self, metric: Metric) -> Option<f64> {
        Some(self.mean(metric, Side::B)? / self.mean(metric, Side::A)?)
    }
}

/// A ratio of B to A over many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The geometric mean.
    pub ratio: f64,
    /// Lower bound of its 95 % interval (Student, of the log ratios): this interval decides.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Bounds by the studentised bootstrap, as a second opinion; `None` for fewer than four blocks.
    pub bootstrap: Option<(f64, f64)>,
    /// Standard deviation of the log ratio of one block.
    pub spread: f64,
    /// Blocks that it comes from.
    pub blocks: usize,
}

impl Ratio {
    /// Whether the interval leaves out 1.
    pub fn differs(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// What was found for one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The metric.
    pub metric: Metric,
    /// Geometric mean over A's runs beside B's.
    pub a: Option<f64>,
    /// Geometric mean over B's.
    pub b: Option<f64>,
    /// A against itself; `None` with fewer than [`FEWEST_BLOCKS`].
    pub baseline: Option<Ratio>,
    /// B against A.
    pub ratio: Option<Ratio>,
    /// The smallest share of change that would be found four times out of five (two-sided, 5 %), by the wider
    /// of the two spreads and the blocks of the comparison.
    pub detectable: Option<f64>,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// B is better.
    Better,
    /// B is worse.
    Worse,
    /// No difference that could be seen.
    NoDifference,
    /// It cannot be said.
    Undecided,
}

/// A comparison and all its runs. Its JSON is the format of `millrace compare --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Whether to believe the rest.
    pub verdict: Verdict,
    /// What speaks against it; empty for `VALID`.
    pub reasons: Vec<String>,
    /// What is to be known beside it, and does not speak against it.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The answer as a sentence.
    pub answer: String,
    /// The answer in a word.
    pub decision: Decision,
    /// How many times worse than A the server B may be.
    pub limit: Option<f64>,
    /// Whether the upper 95 % bound of "how many times worse" is within the limit; `None` without a limit, or where
    /// that could not be decided.
    pub within_limit: Option<bool>,
    /// Whether all blocks were carried out.
    pub complete: bool,
    /// The metric that decides. The others are shown beside it, without a correction for looking at several.
    pub metric: Metric,
    /// The server that is compared with.
    pub a: Subject,
    /// The server that is compared.
    pub b: Subject,
    /// What was found, for each metric that was measured.
    pub effects: Vec<Effect>,
    /// Blocks that were asked for, of each phase; the fewest where `detect` is given.
    pub blocks_asked: usize,
    /// The smallest difference that was to be seen.
    #[serde(default)]
    pub detect: Option<Detect>,
    /// Connections of each run.
    pub connections: usize,
    /// Requests a second of each run in an open loop; sessions a second with `sessions`.
    pub offered_rate: Option<f64>,
    /// Whether the rate is one of sessions, which make requests of their own.
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
    /// Whether idle cores of the client's machine were kept awake.
    #[serde(default)]
    pub awake: bool,
    /// The machine of the client.
    pub host: Host,
    /// The command line.
    pub command: String,
}

impl Comparison {
    /// What was found for the metric that decides.
    pub fn decisive(&self) -> Option<&Effect> {
        self.effects
            .iter()
            .find(|effect| effect.metric == self.metric)
    }
}
