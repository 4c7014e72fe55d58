//! `millpond load`: one measured run against any HTTP server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use millpond_load::{Met, Objective, Order, Phase, Plan, Run, Schedule, Stop, Verdict};
use millpond_report::{number, run_report, run_table, text_table};
use millpond_site::Config;

use super::calibration_options::CalibrationOptions;
use super::postgres_options::PostgresOptions;
use super::request_options::{RequestOptions, Spread};
use super::results::ResultOptions;
use crate::command_line;
use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::output::{Progress, note};

/// Measure a server, in a closed loop or at a rate
#[derive(Args)]
pub(crate) struct Load {
    /// What to ask for, such as http://127.0.0.1:8080/read?id=1
    url: String,
    /// Connections, all open at the same time
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    connections: usize,
    /// Send this many requests a second, whatever the server does; response times count from when each was due
    #[arg(short, long, value_name = "R")]
    rate: Option<f64>,
    /// How the requests of --rate are spread: at equal distances, or at random as from independent visitors
    #[arg(long, value_enum, default_value_t = Spread::Constant, requires = "rate")]
    arrivals: Spread,
    /// Do not send a request of --rate that is later than this; it counts as an error
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = Config::duration)]
    deadline: Option<Duration>,
    /// How long to measure, such as 10s, 500ms or 1min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = Config::duration)]
    duration: Duration,
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
    // The database behind the server.
    #[command(flatten)]
    postgres: PostgresOptions,
    #[command(flatten)]
    calibration: CalibrationOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Random,
    Sequence,
}

impl Load {
    pub(crate) fn run(self) -> Outcome {
        let mut plan = self.plan()?;
        let events = Events::listen()?;
        plan.calibration = self.calibration.measure(&plan, &events.stop)?;
        let mut run = {
            let line = Progress::new();
            let mut show = |progress: &millpond_load::Progress| line.show(progress_line(progress));
            millpond_load::run(&plan, Some(&mut show), &events.stop).map_err(Failure::new)?
        };
        run.command = command_line::typed();
        let mut table = text_table(&run_table(&run));
        self.postgres.tell(&run, &mut table);
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
        Ok(Plan {
            urls,
            order: match self.order {
                Choice::Random => Order::Random(self.seed),
                Choice::Sequence => Order::Sequence,
            },
            connections: self.connections,
            stop: self
                .requests
                .map_or(Stop::Duration(self.duration), Stop::Requests),
            warmup: self.warmup,
            schedule: self.rate.map(|rate| Schedule {
                rate,
                process: self.arrivals.process(self.seed),
                deadline: self.deadline,
            }),
            postgres: self.postgres.url(),
            ..self.request.plan(&self.url)?
        })
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
