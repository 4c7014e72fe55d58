//! The conditions of a run: what it is judged by, and what is sampled beside it.

use super::ProbePlan;
use millrace_stats::Calibration;

/// Conditions of a run that are known before it, and those that are watched during it.
#[derive(Clone, Debug, Default)]
pub struct RunConditions {
    /// The command line by which the run can be made again. Empty: no command line made it.
    pub command: String,
    /// Capacity of the client itself, from `calibrate` of `millrace-runs`.
    pub calibration: Option<Calibration>,
    /// Sampling on this machine during the run. None: nothing.
    pub probe: Option<ProbePlan>,
    /// The URL of a PostgreSQL server to watch during the run.
    pub postgres: Option<String>,
}
