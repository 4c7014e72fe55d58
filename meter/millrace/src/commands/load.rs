//! `millrace load`: one measured run against any HTTP server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base_probe::{Probe, Prober, ProberOptions};
use clap::{Args, Command, Subcommand, ValueEnum};
use millrace_client::{Order, Plan, RequestPlan, Stop, reach};
use millrace_report::{
    diagnosis_csv, diagnosis_report, diagnosis_text, limits_text, number, postgres_tables,
    probe_report, probe_table, run_csv, run_report, run_table, text_table,
};
use millrace_runs::{DiagnoseProgress, Diagnosis, Run, diagnosed};
use millrace_stats::{Met, Objective, Verdict};

use super::arrivals::{AskedArrivals, PhaseFlags};
use super::calibration::calibrate;
use super::fileset::Fileset;
use super::headings::{BESIDE, WORKLOAD};
use super::results::ResultOptions;
use super::values;
use super::values::whole;
use super::workload::{SEED, teach, with_workload_or_replay};
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::flags::{LOAD, PlanFlags};
use crate::live::{ViewPosition, doing};
use crate::output::note;

/// How long a run is measured without `--duration` or another flag that ends it.
const USUAL: Duration = Duration::from_secs(10);

/// Measure a server, in a closed loop or at a rate
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct Load {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// The URL to ask for, such as http://127.0.0.1:8080/read?id=1; with --plan only the server
    #[arg(required_unless_present_any = ["plan", "learn-only", "probe_only"])]
    url: Option<String>,
    /// Connections, all open at the same time
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>)]
    connections: usize,
    /// An open loop: this many requests a second, however slow the server is
    #[arg(short, long, value_name = "R", value_parser = values::number, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// How long to measure: 10s, 500ms, 1min; if nothing else ends it, 10s
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    duration: Option<Duration>,
    /// How many requests to measure, instead of a duration
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = whole::<u64>)]
    requests: Option<u64>,
    /// Send requests for this long before measuring
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::duration)]
    warmup: Duration,
    /// The objective to reach, such as '99% < 50ms'; if not, exit status 3; of --diagnose with all
    /// connections
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<Objective>,
    #[command(flatten)]
    phases: PhaseFlags,
    /// A file of paths or URLs on the same server, one a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "from-log"], help_heading = WORKLOAD)]
    urls: Option<PathBuf>,
    /// How the next line of --urls is chosen
    #[arg(long, value_enum, default_value_t = Choice::Sequence, requires = "urls", help_heading = WORKLOAD, hide_short_help = true)]
    order: Choice,
    /// The seed of what is random: lines, arrivals, a plan's choices [default: the plan's own, or
    /// 1]
    #[arg(long, value_name = "N", help_heading = WORKLOAD, hide_short_help = true)]
    seed: Option<u64>,
    #[command(flatten)]
    flags: PlanFlags<LOAD>,
    /// Name what limits the server, by four short runs in --duration
    #[arg(long, help_heading = BESIDE, conflicts_with_all = ["rate", "requests", "no-probe"])]
    diagnose: bool,
    /// Send nothing, only sample for --duration, on the server's machine
    #[arg(long, help_heading = BESIDE)]
    probe_only: bool,
    /// Watch this PostgreSQL server: postgres://user@host/db, password in PGPASSWORD
    #[arg(long, value_name = "URL", help_heading = BESIDE)]
    pg: Option<String>,
    #[command(flatten)]
    results: ResultOptions,
}

#[derive(Subcommand)]
enum LoadCommand {
    Fileset(Fileset),
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Random,
    Sequence,
}

/// The flags that `--probe-only` obeys.
const OBEYED_BY_PROBE_ONLY: [&str; 10] = [
    "duration",
    "pid",
    "port",
    "probe-interval",
    "no-perf",
    "json",
    "report",
    "svg",
    "plain",
    "quiet",
];

/// `millrace load`, whose `--probe-only` refuses every flag that it does not obey: it sends
/// nothing, and a flag without effect should be named, not ignored.
pub(super) fn refuse_beside_probe_only(command: Command) -> Command {
    let names = command.get_arguments().map(|argument| argument.get_id());
    let refused: Vec<_> = names
        .filter(|name| *name != "probe_only" && !OBEYED_BY_PROBE_ONLY.contains(&name.as_str()))
        .cloned()
        .collect();
    command.mut_arg("probe_only", |argument| {
        argument.conflicts_with_all(refused)
    })
}

impl Load {
    pub(crate) fn run(self) -> CommandResult {
        if let Some(LoadCommand::Fileset(command)) = self.command {
            return command.run();
        }
        if teach(&self.flags)? {
            return Ok(());
        }
        self.results.teller()?;
        if self.probe_only {
            return self.sample();
        }
        let mut plan = self.plan()?;
        plan.notes().into_iter().for_each(note);
        if self.diagnose {
            return self.diagnose(plan);
        }
        let events = Events::listen()?;
        let line = self.results.line();
        plan.conditions.calibration = calibrate(&self.flags, &plan, &line, &events.stop)?;
        reach(&plan).map_err(Failure::measuring)?;
        let run = {
            let mut live = self.results.live(format!(
                "millrace load {}",
                self.url.as_deref().unwrap_or_default()
            ));
            let is_watching = live.is_watching();
            let mut show = |run: &millrace_client::Progress| {
                let place = ViewPosition {
                    part: String::new(),
                    fraction: run.fraction,
                    remaining: run.remaining,
                };
                live.show(place, run, || progress_line(run));
            };
            let progress: Option<&mut dyn FnMut(&millrace_client::Progress)> = match is_watching {
                true => Some(&mut show),
                false => None,
            };
            millrace_runs::run(&plan, progress, &events.stop).map_err(Failure::measuring)?
        };
        let mut table = text_table(&run_table(&run)) + &limits_text(&run);
        for postgres in run.postgres.iter().flat_map(|seen| postgres_tables(seen)) {
            table.push('\n');
            table.push_str(&text_table(&postgres));
        }
        self.results.write(&run, &table, run_csv, run_report)?;
        if run.verdict == Verdict::Invalid {
            // The table and its note show the reasons.
            return Err(Failure::Said);
        }
        self.objective
            .map_or(Ok(()), |objective| reached(objective, &run, ""))
    }

    /// `--probe-only`: samples of the host, without a run.
    fn sample(&self) -> CommandResult {
        let duration = self.duration.unwrap_or(USUAL);
        let probe = self.probe(duration)?;
        let table = text_table(&probe_table(&probe));
        // Counters of a whole machine have no rows: --csv is refused beside --probe-only.
        self.results
            .write(&probe, &table, |_| String::new(), probe_report)
    }

    /// Samples the host for `duration`, or until Ctrl-C.
    fn probe(&self, duration: Duration) -> CommandResult<Probe> {
        let asked = self.flags.plan("")?.conditions.probe.unwrap_or_default();
        let events = Events::listen()?;
        let prober = Prober::start(ProberOptions {
            interval: asked.interval,
            pids: asked.pids,
            ports: asked.ports,
            required: true,
            own_threads: None,
            perf: asked.perf,
        })
        .map_err(|error| Failure::new(format!("the host cannot be probed: {error}")))?;
        let line = self.results.line();
        line.show(format!("sampling for {duration:?}"));
        events.stopped_within(duration);
        line.clear();
        Ok(prober.stop())
    }

    fn plan(&self) -> CommandResult<Plan> {
        let urls = match &self.urls {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
                let urls = RequestPlan::urls_from(&text);
                if urls.is_empty() {
                    return Err(Failure::new(format!("{} names no URL", path.display())));
                }
                urls
            }
            None => Vec::new(),
        };
        let mut plan = self.flags.plan(self.url.as_deref().unwrap_or_default())?;
        plan.request.urls = urls;
        if let Choice::Random = self.order {
            plan.request.order = Order::Random(self.seed.unwrap_or(SEED));
        }
        plan.load.connections = self.connections;
        plan.length.stop = self.requests.map_or_else(
            || Stop::Duration(self.duration.unwrap_or(USUAL)),
            Stop::Requests,
        );
        plan.length.warmup = self.warmup;
        plan.conditions.postgres = self.pg.clone();
        let (mut plan, times) = with_workload_or_replay(&self.flags, plan, self.seed)?;
        let asked = AskedArrivals {
            rate: self.rate,
            seed: self.seed.unwrap_or(SEED),
            duration: self.duration,
            times,
        };
        self.phases.apply(&mut plan, &asked)?;
        Ok(plan)
    }

    /// The four levels of a diagnosis, each a quarter of the time.
    fn diagnose(&self, plan: Plan) -> CommandResult {
        let duration = self.duration.unwrap_or(USUAL);
        let events = Events::listen()?;
        let mut plan = plan.with(|plan| plan.length.stop = Stop::Duration(duration / 4));
        let levels = diagnosed(plan.load.connections);
        let most = levels.into_iter().fold(1, usize::max);
        let highest = plan.clone().with(|plan| plan.load.connections = most);
        let line = self.results.line();
        plan.conditions.calibration = calibrate(&self.flags, &highest, &line, &events.stop)?;
        let diagnosis = {
            let mut live = self.results.live("millrace load --diagnose".to_owned());
            let mut show = |progress: &DiagnoseProgress| {
                let DiagnoseProgress { step, steps, run } = progress;
                let part = format!("level {step} of {steps}");
                let done = step.saturating_sub(1) as f64 + run.fraction;
                let later = duration / 4 * u32::try_from(steps - step).unwrap_or(0);
                let place = ViewPosition {
                    part: part.clone(),
                    fraction: done / (*steps).max(1) as f64,
                    remaining: run.remaining.map(|left| left + later),
                };
                live.show(place, run, || format!("{part}: {}", progress_line(run)));
            };
            millrace_runs::diagnose(&plan, Some(&mut show), &events.stop)
                .map_err(Failure::measuring)?
        };
        let text = diagnosis_text(&diagnosis);
        self.results
            .write(&diagnosis, &text, diagnosis_csv, diagnosis_report)?;
        match diagnosis.verdict {
            Verdict::Invalid => Err(Failure::Said),
            Verdict::Valid | Verdict::Suspect => self.objective.map_or(Ok(()), |objective| {
                reached_in_diagnosis(objective, &diagnosis)
            }),
        }
    }
}

/// Prints whether the run reached `objective`. `at` names the level of the run, if there are
/// others.
fn reached(objective: Objective, run: &Run, at: &str) -> CommandResult {
    match run.meets(&objective) {
        Met::Yes => {
            note(format!("{objective}{at}: reached"));
            return Ok(());
        }
        Met::No => match run.backlog {
            Some(grown) => note(format!("{objective}{at}: missed, for {grown}")),
            None => note(format!("{objective}{at}: missed")),
        },
        Met::Undecided => note(format!(
            "{objective}{at}: not decided, for {} requests are too few",
            number::count(run.accounting.issued)
        )),
    }
    Err(Failure::Missed)
}

/// Prints whether a diagnosis reached `objective`: the level with the connections that the user
/// asked for counts.
fn reached_in_diagnosis(objective: Objective, diagnosis: &Diagnosis) -> CommandResult {
    let Some(level) = diagnosis.at_all_connections() else {
        note(format!(
            "{objective}: not decided, for the diagnosis was stopped before the level that it is about"
        ));
        return Err(Failure::Missed);
    };
    let at = format!(" with {} in flight", number::count(level.in_flight));
    reached(objective, &level.run, &at)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

fn progress_line(progress: &millrace_client::Progress) -> String {
    format!(
        "{} {:.0} %  {} requests  {}  {} errors",
        doing(progress.phase),
        progress.fraction * 100.0,
        number::count(progress.finished),
        number::rate(progress.rate),
        number::count(progress.errors)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_that_probe_only_obeys_exists() {
        let command = refuse_beside_probe_only(Load::augment_args(Command::new("load")));
        let names: Vec<&str> = command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .collect();
        for name in OBEYED_BY_PROBE_ONLY {
            assert!(names.contains(&name), "{name}");
        }
    }
}
