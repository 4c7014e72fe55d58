//! Figures of a server at a level that can be drawn over the levels.

use serde::{Deserialize, Serialize};

use super::outcome::{LabFinding, MedianRange};

/// A figure that a graph of an experiment shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabFigure {
    /// Good responses a second.
    Throughput,
    /// Bytes of responses a second.
    Bytes,
    /// Mean response time in microseconds, in a closed loop service time, as all times here.
    Mean,
    /// Half of the responses took at most this long.
    P50,
    /// Nine of ten responses took at most this long.
    P90,
    /// 99 of 100 responses took at most this long.
    P99,
    /// The longest.
    Max,
    /// CPU time of the server for one request in microseconds.
    Cpu,
    /// CPU time of the server in a second: how many cores it used.
    Cores,
    /// Resident memory of the server's processes in bytes, at the end of the run.
    Memory,
    /// Share of the requests without a good response.
    Failed,
    /// Share of the requests whose response was not complete in time.
    Timeouts,
    /// Share of the time for which the cores of the machine had nothing to do.
    Idle,
    /// Bytes a second over all interfaces, loopback included.
    Network,
    /// Instructions in a cycle of the processor.
    Ipc,
    /// Cache misses of the server for one request.
    CacheMisses,
    /// Mispredicted branches of the server for one request.
    BranchMisses,
}

impl LabFigure {
    /// Figures that are drawn if an experiment does not name any.
    pub const USUAL: [Self; 3] = [Self::Cpu, Self::Throughput, Self::P99];

    /// True if it is sampled on the machine, which an experiment must ask for.
    pub fn is_sampled(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Network | Self::Ipc | Self::CacheMisses | Self::BranchMisses
        )
    }

    /// Its value in `finding`; `None` if it was not measured.
    pub fn of(self, finding: &LabFinding) -> Option<MedianRange> {
        match self {
            Self::Throughput => finding.throughput,
            Self::P50 => finding.p50_us,
            Self::P99 => finding.p99_us,
            Self::Cpu => finding.cpu_us,
            _ => finding.figures.get(&self).copied(),
        }
    }
}
