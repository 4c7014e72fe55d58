//! The options that say what is asked for in more than one line: a plan, or an access log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use millrace_client::{Learned, Plan, Replay, Workload};

use super::headings::WORKLOAD;
use super::only_options::MEASURING;
use crate::failure::{Failure, Outcome};
use crate::output::{note, say};

/// What is random comes from this where nothing names another seed.
pub(crate) const SEED: u64 = 1;

/// Where the workload comes from.
#[derive(Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct WorkloadOptions {
    /// Ask for what this plan says: sessions, templates, checks (docs/reference/plans.md)
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["from_log", "method", "body"])]
    plan: Option<PathBuf>,
    /// Ask as the visitors in this access log did (common or combined; .gz)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body"])]
    from_log: Option<PathBuf>,
}

impl WorkloadOptions {
    /// A plan for each of `bases` that asks for the workload, if these options name one. URL, fields and expected statuses
    /// that it does not say itself are those of the base; a `seed` that was asked for goes before its own.
    pub(crate) fn apply<const N: usize>(
        &self,
        bases: [Plan; N],
        seed: Option<u64>,
    ) -> Outcome<[Plan; N]> {
        let source = match (&self.plan, &self.from_log) {
            (None, None) => return Ok(bases),
            (Some(path), _) => Source::Plan(path),
            (None, Some(path)) => {
                let learned = Learned::from_log(path).map_err(Failure::new)?;
                note(&learned);
                Source::Log(learned)
            }
        };
        let mut plans = bases;
        for plan in &mut plans {
            let workload = match &source {
                Source::Plan(path) => {
                    let workload = read_plan(path, plan)?;
                    match seed {
                        Some(seed) => workload.with_seed(seed),
                        None => workload,
                    }
                }
                Source::Log(learned) => learned
                    .workload(plan, seed.unwrap_or(SEED))
                    .map_err(Failure::new)?,
            };
            *plan = asking(workload, plan.clone());
        }
        Ok(plans)
    }
}

/// What a workload is made from.
enum Source<'a> {
    Plan(&'a Path),
    Log(Learned),
}

/// What a single run can also do with an access log.
#[derive(Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct LogOptions {
    /// Only say what --from-log has to teach: classes, popularity, arrivals
    #[arg(
        long,
        requires = "from_log",
        conflicts_with_all = MEASURING,
        hide_short_help = true
    )]
    pub(crate) learn_only: bool,
    /// Send the log's own GETs and HEADs at its own times
    #[arg(long, requires = "from_log", conflicts_with_all = ["rate", "arrivals", "session"])]
    replay: bool,
    /// Replay other methods too, without a body: they may change data
    #[arg(long, requires = "replay", hide_short_help = true)]
    replay_unsafe: bool,
}

impl LogOptions {
    /// With --learn-only: says what the log has to teach. False if that is not what is asked for.
    pub(crate) fn teach(&self, workload: &WorkloadOptions) -> Outcome<bool> {
        match &workload.from_log {
            Some(path) if self.learn_only => {
                say(Learned::from_log(path).map_err(Failure::new)?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// `plan` with the workload that is asked for, and where it is a replay when its requests are due, in nanoseconds from
    /// the first.
    pub(crate) fn apply(
        &self,
        workload: &WorkloadOptions,
        plan: Plan,
        seed: Option<u64>,
    ) -> Outcome<(Plan, Option<Vec<u64>>)> {
        match &workload.from_log {
            Some(path) if self.replay => {
                let (replay, times) = self.replay(path, &plan)?;
                Ok((asking(replay, plan), Some(times)))
            }
            _ => {
                let [plan] = workload.apply([plan], seed)?;
                Ok((plan, None))
            }
        }
    }

    fn replay(&self, path: &Path, base: &Plan) -> Outcome<(Workload, Vec<u64>)> {
        let replay = Replay::from_log(path, self.replay_unsafe).map_err(Failure::new)?;
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
}

fn read_plan(path: &Path, base: &Plan) -> Outcome<Workload> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    Workload::parse(&text, path, base).map_err(Failure::new)
}

/// `plan` with this workload, for the server that it is made for.
fn asking(workload: Workload, plan: Plan) -> Plan {
    plan.with(|plan| {
        plan.target.url = workload.url().to_owned();
        plan.request.workload = Some(Arc::new(workload));
    })
}
