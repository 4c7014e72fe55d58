//! Workloads: a plan in a file, or an access log to learn from or to replay.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millrace_client::{Learned, Plan, Replay, Workload};

use crate::failure::{CommandResult, Failure};
use crate::flags::{LOAD, PlanFlags};
use crate::output::{note, say};

/// The seed of random choices, unless the user gives another one.
pub(crate) const SEED: u64 = 1;

/// The plans `bases`, each with the workload of `--plan` or `--from-log` if there is one. URL,
/// fields and expected statuses that the workload does not say are those of the base. A `seed`
/// replaces the plan's own.
pub(super) fn with_workload<const COMMAND: u8, const N: usize>(
    flags: &PlanFlags<COMMAND>,
    bases: [Plan; N],
    seed: Option<u64>,
) -> CommandResult<[Plan; N]> {
    let plan_file = flags.value::<PathBuf>("plan");
    let learned = match flags.value::<PathBuf>("from-log") {
        Some(path) if plan_file.is_none() => {
            let learned = Learned::from_log(&path).map_err(Failure::new)?;
            note(&learned);
            Some(learned)
        }
        _ => None,
    };
    let mut plans = bases;
    for plan in &mut plans {
        let workload = if let Some(path) = &plan_file {
            let workload = read_plan(path, plan)?;
            match seed {
                Some(seed) => workload.with_seed(seed),
                None => workload,
            }
        } else if let Some(learned) = &learned {
            learned
                .workload(plan, seed.unwrap_or(SEED))
                .map_err(Failure::new)?
        } else {
            continue;
        };
        request_workload(plan, workload);
    }
    Ok(plans)
}

/// With `--learn-only`: prints what the log has to teach. False without that flag.
pub(super) fn teach(flags: &PlanFlags<LOAD>) -> CommandResult<bool> {
    match flags.value::<PathBuf>("from-log") {
        Some(path) if flags.is_on("learn-only") => {
            say(Learned::from_log(&path).map_err(Failure::new)?);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The plan `base` with the workload of `millrace load`, and with `--replay` the times at which its
/// requests are due, in nanoseconds from the first.
pub(super) fn with_workload_or_replay(
    flags: &PlanFlags<LOAD>,
    base: Plan,
    seed: Option<u64>,
) -> CommandResult<(Plan, Option<Vec<u64>>)> {
    match flags.value::<PathBuf>("from-log") {
        Some(path) if flags.is_on("replay") => {
            let mut plan = base;
            let (workload, times) = read_replay(&path, flags.is_on("replay-unsafe"), &plan)?;
            request_workload(&mut plan, workload);
            Ok((plan, Some(times)))
        }
        _ => {
            let [plan] = with_workload(flags, [base], seed)?;
            Ok((plan, None))
        }
    }
}

fn read_replay(path: &Path, all_methods: bool, base: &Plan) -> CommandResult<(Workload, Vec<u64>)> {
    let replay = Replay::from_log(path, all_methods).map_err(Failure::new)?;
    if replay.unsafe_methods > 0 {
        note(format!(
            "{} requests with other methods than GET and HEAD are left out; --replay-unsafe sends them",
            replay.unsafe_methods
        ));
    }
    if let Some(first) = replay.lines.first_damaged {
        note(format!(
            "{} damaged lines, the first is line {first}",
            replay.lines.damaged
        ));
    }
    replay.workload(base).map_err(Failure::new)
}

fn read_plan(path: &Path, base: &Plan) -> CommandResult<Workload> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    Workload::parse(&text, path, base).map_err(Failure::new)
}

/// Lets `plan` request this workload from the server that it is made for.
fn request_workload(plan: &mut Plan, workload: Workload) {
    plan.target.url = workload.url().to_owned();
    plan.request.workload = Some(Arc::new(workload));
}
