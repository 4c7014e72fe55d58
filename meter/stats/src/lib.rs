//! The arithmetic of measuring: distributions, verdicts, comparisons, and the search for a
//! capacity.
//!
//! It knows figures and the conclusions from them. It must not know sockets, threads, clocks or
//! files, nor how figures were measured: every function here gives the same answer for the same
//! arguments. Random numbers come from seeds.

pub mod analysis;
pub mod backlog;
mod calibration;
pub mod capacity;
pub mod compare;
pub mod hdr;
pub mod latency;
pub mod objective;
pub mod random;
pub mod series;
pub mod span;
pub mod stationary;
pub mod timeline;
pub mod timings;
pub mod verdict;

pub use analysis::bottleneck::{Finding, Limit};
pub use analysis::demand::{Demand, Demands, PerRequest};
pub use analysis::usl::{CurvePoint, Estimate, Observation, Refusal, Resampled, Usl};
pub use backlog::Backlog;
pub use calibration::Calibration;
pub use capacity::outcome::{CapacityTrial, Curve, SearchEnd, Stage};
pub use compare::{
    Aside, BLOCKS, Block, Decision, Detect, Effect, FEWEST_BLOCKS, MOST_BLOCKS, Metric, PATTERN,
    Ratio, Sample, Side, Subject, Trial,
};
pub use hdr::{Hdr, Histograms};
pub use latency::{Bucket, Latencies, Latency, Quantile};
pub use objective::{Met, Objective};
pub use span::duration;
pub use timeline::{Point, Timeline};
pub use verdict::{Accounting, Little, Verdict};
