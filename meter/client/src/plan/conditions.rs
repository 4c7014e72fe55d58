//! The conditions of a run: what it is judged by, and what is sampled beside it.

use super::ProbePlan;
use millrace_stats::Calibration;

/// What is known before a run, and what is watched during it.
#[derive(Clone, Debug, Default)]
pub struct RunConditions {
    /// The command line by which the run can be made again. Empty: no command line made it.
    pub command: String,
    /// What the client itself can do, from `calibrate` of `millrace-runs`.
    pub calibration: Option<Calibration>,
    /// What is sampled on this machine during the run. None: nothing.
    pub probe: Option<ProbePlan>,
    /// The URL of a PostgreSQL server to watch during the run.
    pub postgres: Option<String>,
}
