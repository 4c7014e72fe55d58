//! `millpond load`: one measured run against any HTTP server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use millpond_load::{Met, Objective, Order, Phase, Plan, Run, Stop, Verdict};
use millpond_report::{number, run_report, run_table, text_table};
use millpond_site::Config;

use super::calibration_options::CalibrationOptions;
use super::fileset::Fileset;
use super::loop_options::{Asked, LoopOptions};
use super::request_options::RequestOptions;
use super::results::ResultOptions;
use super::workload_options::WorkloadOptions;
use crate::command_line;
use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::output::{Progress, note};

/// How long a run is measured unless something says otherwise.
const USUAL: Duration = Duration::from_secs(10);

/// Measure a server, in a closed loop or at a rate
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Load {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// What to ask for, such as http://127.0.0.1:8080/read?id=1; with --plan only the server
    #[arg(required_unless_present_any = ["plan", "learn_only"])]
    url: Option<String>,
    /// Connections, all open at the same time
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Send this many requests a second, whatever the server does; response times count from when each was due
    #[arg(short, long, value_name = "R")]
    rate: Option<f64>,
    /// How long to measure, such as 10s, 500ms or 1min; 10s if nothing else ends the run
    #[arg(long, value_name = "TIME", value_parser = Config::duration)]
    duration: Option<Duration>,
    /// How many requests to measure, instead of a duration
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration")]
    requests: Option<u64>,
    /// Send requests for this long before measuring
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = Config::duration)]
    warmup: Duration,
    /// A file of paths or URLs on the same server, one a line
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// How the next line of --urls is chosen
    #[arg(long, value_enum, default_value_t = Choice::Sequence, requires = "urls")]
    order: Choice,
    /// The same seed chooses the same lines and the same random arrivals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    request: RequestOptions,
    /// What the run must reach, such as '99% < 50ms' of all requests; exit status 3 if it does not
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<Objective>,
    #[command(flatten)]
    results: ResultOptions,
    #[command(flatten)]
    calibration: CalibrationOptions,
    #[command(flatten)]
    loops: LoopOptions,
    // What is asked for in more than one line.
    #[command(flatten)]
    workload: WorkloadOptions,
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

impl Load {
    pub(crate) fn run(self) -> Outcome {
        if let Some(LoadCommand::Fileset(command)) = self.command {
            return command.run();
        }
        if self.workload.teach()? {
            return Ok(());
        }
        let mut plan = self.plan()?;
        plan.notes().into_iter().for_each(note);
        let events = Events::listen()?;
        plan.calibration = self.calibration.measure(&plan, &events.stop)?;
        let mut run = {
            let line = Progress::new();
            let mut show = |progress: &millpond_load::Progress| line.show(progress_line(progress));
            millpond_load::run(&plan, Some(&mut show), &events.stop).map_err(Failure::new)?
        };
        run.command = command_line::typed();
        let table = text_table(&run_table(&run));
        self.results.write(&run, &table, run_report)?;
        if run.verdict == Verdict::Invalid {
            // The table and its note have the reasons.
            return Err(Failure::Said);
        }
        self.objective
            .map_or(Ok(()), |objective| reached(objective, &run))
    }

    fn plan(&self) -> Outcome<Plan> {
        let urls = match &self.urls {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
                let urls = Plan::urls_from(&text);
                if urls.is_empty() {
                    return Err(Failure::new(format!("{} names no URL", path.display())));
                }
                urls
            }
            None => Vec::new(),
        };
        let plan = Plan {
            urls,
            order: match self.order {
                Choice::Random => Order::Random(self.seed),
                Choice::Sequence => Order::Sequence,
            },
            connections: self.connections,
            stop: self.requests.map_or_else(
                || Stop::Duration(self.duration.unwrap_or(USUAL)),
                Stop::Requests,
            ),
            warmup: self.warmup,
            ..self.request.plan(self.url.as_deref().unwrap_or_default())?
        };
        let (plan, times) = match self.workload.choose(&plan, self.seed)? {
            Some(chosen) => {
                let url = chosen.workload.url().to_owned();
                let workload = Some(chosen.workload);
                (
                    Plan {
                        url,
                        workload,
                        ..plan
                    },
                    chosen.times,
                )
            }
            None => (plan, None),
        };
        let asked = Asked {
            rate: self.rate,
            seed: self.seed,
            duration: self.duration,
            times,
        };
        self.loops.apply(plan, &asked)
    }
}

/// Says whether the run has reached `objective`.
fn reached(objective: Objective, run: &Run) -> Outcome {
    match objective.judge(run) {
        Met::Yes => {
            note(format!("{objective}: reached"));
            return Ok(());
        }
        Met::No => note(format!("{objective}: missed")),
        Met::Undecided => note(format!(
            "{objective}: not decided, for {} requests are too few",
            number::count(run.accounting.issued)
        )),
    }
    Err(Failure::Missed)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

fn progress_line(progress: &millpond_load::Progress) -> String {
    let doing = match progress.phase {
        Phase::Connecting => "connecting",
        Phase::WarmUp => "warming up",
        Phase::Measuring => "measuring",
    };
    format!(
        "{doing} {:.0} %  {} requests  {}  {} errors",
        progress.fraction * 100.0,
        number::count(progress.finished),
        number::rate(progress.rate),
        number::count(progress.errors)
    )
}
