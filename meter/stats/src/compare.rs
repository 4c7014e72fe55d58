//! The arithmetic of a comparison: the design of its blocks, their number, and the judgement.
//!
//! The run is the unit, and runs alternate in blocks of four, A B B A: a drift that is linear
//! within a block adds the same to both sides. Each block gives one log ratio; the interval comes
//! from the differences between blocks.

pub mod design;
pub mod judge;
pub mod length;
#[cfg(test)]
mod simulation;
pub mod words;

use serde::{Deserialize, Serialize};

pub use length::Detect;

use crate::Verdict;

/// Blocks that a ratio is to be decided by; with fewer, the verdict is `SUSPECT`.
pub const BLOCKS: usize = 10;
/// Blocks without which there is no interval.
pub const FEWEST_BLOCKS: usize = 3;
/// Most blocks of each half; no comparison needs more.
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

    /// True if less of it is better.
    pub fn is_cost(self) -> bool {
        self != Self::Throughput
    }

    /// Returns the name in a table.
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
    /// Name of the server.
    pub name: String,
    /// The requested URL.
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

/// The figures of one run; `None` where it had too few samples or the probe had no access.
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
    /// Verdict on the runs.
    pub verdict: Verdict,
    /// Reasons against the runs.
    pub reasons: Vec<String>,
    /// True if it is `INVALID` only because the client was disturbed.
    #[serde(default)]
    pub client_at_fault: bool,
}

/// Four runs in the order of [`PATTERN`]; fewer only in the last block of an unfinished comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The runs.
    pub trials: Vec<Trial>,
}

/// A block that does not count, because a disturbance of the client made one of its runs `INVALID`.
/// The block was measured again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aside {
    /// True if it was one of A against itself.
    pub baseline: bool,
    /// Its number within its half, from 1.
    pub number: usize,
    /// Its runs up to the `INVALID` one.
    pub block: Block,
}

impl Block {
    /// True if all runs are there.
    pub fn is_complete(&self) -> bool {
        self.trials.len() == PATTERN.len()
    }

    /// The geometric mean of a metric over the two runs of a side, if the block is complete and
    /// both have it.
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
    /// True if the interval leaves out 1.
    pub fn differs(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Finding for one metric.
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
    /// The smallest share of change that would be found four times out of five (two-sided, 5 %),
    /// from the wider of the two spreads and the blocks of the comparison.
    pub detectable: Option<f64>,
}

/// The result of a comparison.
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
