//! The calibration: what the client itself can do, measured before the run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use millrace_client::{Error, Plan, Stop};
use millrace_stats::Calibration;

use crate::failure::{CommandResult, Failure};
use crate::flags::PlanFlags;
use crate::output::{Progress, note};

/// Shorter runs are not calibrated unless the user asks for it: they are for a look, not for a
/// figure.
const SHORT_RUN: Duration = Duration::from_secs(2);
/// Length of a calibration without `--calibration`.
const DEFAULT_LENGTH: Duration = Duration::from_secs(1);
/// The shortest calibration that can count anything.
const SHORTEST: Duration = Duration::from_millis(50);

/// Measures the client for `plan`. A calibration that cannot be made does not end the measurement:
/// a note says so.
pub(super) fn calibrate<const COMMAND: u8>(
    flags: &PlanFlags<COMMAND>,
    plan: &Plan,
    line: &Progress,
    stop: &AtomicBool,
) -> CommandResult<Option<Calibration>> {
    let is_long = matches!(plan.length.stop, Stop::Duration(length) if length >= SHORT_RUN);
    let length = match flags.value::<Duration>("calibration") {
        Some(length) if length < SHORTEST => {
            return Err(Failure::new("--calibration must be at least 50 ms"));
        }
        Some(length) => length,
        None if is_long && !flags.is_on("no-calibration") => DEFAULT_LENGTH,
        None => return Ok(None),
    };
    line.show("measuring the client itself");
    let found = millrace_runs::calibrate(plan, length, stop);
    line.clear();
    Ok(match found {
        Ok(calibration) => calibration,
        // The measurement itself fails with the same error, and reports it.
        Err(Error::Plan(_) | Error::Resolve { .. }) => None,
        Err(error) => {
            note(format!("no calibration: {error}"));
            None
        }
    })
}
