//! The options of `millpond load` that say what is asked for in more than one line: a plan, or an access log.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use millpond_load::{Learned, Plan, Replay, Workload};

use super::headings::WORKLOAD;
use crate::failure::{Failure, Outcome};
use crate::output::{note, say};

/// Where the workload comes from.
#[derive(Args)]
#[command(next_help_heading = WORKLOAD)]
pub(crate) struct WorkloadOptions {
    /// Ask for what this plan says: sessions, templates, checks (docs/plans.md)
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["from_log", "urls", "method", "body"])]
    plan: Option<PathBuf>,
    /// Ask as the visitors in this access log did (common or combined; .gz)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["urls", "method", "body"])]
    from_log: Option<PathBuf>,
    /// Only say what --from-log has to teach: classes, popularity, arrivals
    #[arg(
        long,
        requires = "from_log",
        conflicts_with = "replay",
        hide_short_help = true
    )]
    learn_only: bool,
    /// Send the log's own GETs and HEADs at its own times
    #[arg(long, requires = "from_log", conflicts_with_all = ["rate", "arrivals", "session"])]
    replay: bool,
    /// Replay other methods too, without a body: they may change data
    #[arg(long, requires = "replay", hide_short_help = true)]
    replay_unsafe: bool,
}

/// A workload, and where it is a replay when its requests are due, in nanoseconds from the first.
pub(crate) struct Chosen {
    pub(crate) workload: Arc<Workload>,
    pub(crate) times: Option<Vec<u64>>,
}

impl WorkloadOptions {
    /// With --learn-only: says what the log has to teach. False if that is not what is asked for.
    pub(crate) fn teach(&self) -> Outcome<bool> {
        match &self.from_log {
            Some(path) if self.learn_only => {
                say(Learned::from_log(path).map_err(Failure::new)?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The workload, if these options name one. URL, fields and expected statuses that it does not say itself are those of
    /// `base`.
    pub(crate) fn choose(&self, base: &Plan, seed: u64) -> Outcome<Option<Chosen>> {
        let (workload, times) = match (&self.plan, &self.from_log) {
            (Some(path), _) => (read_plan(path, base)?, None),
            (None, Some(path)) if self.replay => {
                let (workload, times) = self.replay(path, base)?;
                (workload, Some(times))
            }
            (None, Some(path)) => {
                let learned = Learned::from_log(path).map_err(Failure::new)?;
                note(&learned);
                (learned.workload(base, seed).map_err(Failure::new)?, None)
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(Chosen {
            workload: Arc::new(workload),
            times,
        }))
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
