//! The options of the calibration: what the client itself can do, measured before the run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::values;
use clap::Args;
use millrace_client::{Error, Plan, Stop};
use millrace_stats::Calibration;

use super::headings::CLIENT;
use crate::failure::{Failure, Outcome};
use crate::output::{Progress, note};

/// Runs shorter than this are calibrated only if asked for: they are for a look, not for a figure.
const LOOK: Duration = Duration::from_secs(2);
/// How long a calibration takes if nothing else is said.
const USUAL: Duration = Duration::from_secs(1);
/// The shortest that can count anything.
const SHORTEST: Duration = Duration::from_millis(50);

/// Whether and how long the client is measured first.
#[derive(Args)]
#[command(next_help_heading = CLIENT)]
pub(crate) struct CalibrationOptions {
    /// How long to measure the client itself first, against a null server; 1s for runs of 2s or more
    #[arg(long, value_name = "TIME", value_parser = values::duration, conflicts_with = "no_calibration", hide_short_help = true)]
    calibration: Option<Duration>,
    /// Do not measure the client itself first
    #[arg(long, hide_short_help = true)]
    no_calibration: bool,
}

impl CalibrationOptions {
    /// Measures the client for `plan`. A calibration that cannot be made is no reason not to measure: it is said, and left
    /// out.
    pub(crate) fn measure(
        &self,
        plan: &Plan,
        line: &Progress,
        stop: &AtomicBool,
    ) -> Outcome<Option<Calibration>> {
        let is_long = matches!(plan.length.stop, Stop::Duration(length) if length >= LOOK);
        let length = match self.calibration {
            Some(length) if length < SHORTEST => {
                return Err(Failure::new("--calibration must be at least 50 ms"));
            }
            Some(length) => length,
            None if is_long && !self.no_calibration => USUAL,
            None => return Ok(None),
        };
        line.show("measuring the client itself");
        let found = millrace_runs::calibrate(plan, length, stop);
        line.clear();
        Ok(match found {
            Ok(calibration) => calibration,
            // The measurement itself will say so.
            Err(Error::Plan(_) | Error::Resolve { .. }) => None,
            Err(error) => {
                note(format!("no calibration: {error}"));
                None
            }
        })
    }
}
