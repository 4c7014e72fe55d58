//! One run from its plan to its figures.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::conclude::{Measured, conclude};
use crate::{Run, postgres, probe};
use millrace_client::Progress;
use millrace_client::driver::PreparedRun;
use millrace_client::{Error, Plan};

/// Carries out `plan`, and returns when it is done, or soon after `stop` is set with the results so
/// far. `progress` is called about four times a second from the calling thread.
///
/// # Errors
/// The plan cannot be carried out. Failures between client and server are counted in
/// [`Run::errors`] instead.
pub fn run(
    plan: &Plan,
    progress: Option<&mut dyn FnMut(&Progress)>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    let prepared = PreparedRun::new(plan)?;
    let postgres = postgres::watch(&plan.conditions)?;
    let probing = probe::start(&plan.conditions, prepared.addresses())?;
    let sent = prepared.carry_out(progress, stop)?;
    let probed = probing.map(|probing| probing.finish(&sent.harvests));
    Ok(conclude(Measured {
        plan,
        sent,
        stopped: stop.load(Ordering::Relaxed),
        postgres,
        probed,
    }))
}
