//! `millpond sweep`: a run at each level of a ladder, and what they say together.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use millpond_load::{
    By, Ladder, News, Objective, Phase, Plan, Step, Stop, Sweep as Found, SweepPlan, SweepProgress,
    Verdict,
};
use millpond_report::{
    Column, Table, number, sweep_columns, sweep_csv, sweep_findings, sweep_report, sweep_row,
    text_table,
};
use millpond_site::Config;

use super::calibration_options::CalibrationOptions;
use super::request_options::{RequestOptions, Spread};
use crate::command_line;
use crate::events::Events;
use crate::failure::{Failure, Outcome};
use crate::output::{Progress, note, say, write_out};

/// Connections of an open loop, unless others are asked for: enough that a request seldom waits for one.
const CONNECTIONS: usize = 64;

/// Measure a server at rising rates or with more and more connections
///
/// Each step has its own warm-up. Levels are written as 50..1500/50 (from 50 to 1500 in steps of 50), as 1..10, or as
/// 1,2,4,8,16. A sweep over connections ends with the Universal Scalability Law, fitted to the steps, or with the reason
/// why they do not carry a fit. Ctrl-C ends the sweep and keeps the steps that are done.
///
/// Exit status: 0 when every step was run, 1 when a step is INVALID or the sweep was stopped, 3 when no level meets the
/// --objective.
#[derive(Args)]
pub(crate) struct Sweep {
    /// What to ask for, such as http://127.0.0.1:8080/read?id=1
    url: String,
    /// Send this many requests a second at each step, whatever the server does (an open loop)
    #[arg(
        short,
        long,
        value_name = "LEVELS",
        required_unless_present = "connections"
    )]
    rates: Option<Ladder>,
    /// Connections at each step, in a closed loop; with --rates one number for all steps, 64 if not given
    #[arg(short, long, value_name = "LEVELS")]
    connections: Option<Ladder>,
    /// How the requests of --rates are spread
    #[arg(long, value_enum, default_value_t = Spread::Constant, requires = "rates")]
    arrivals: Spread,
    /// How long to measure at each step, such as 10s, 500ms or 1min
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = Config::duration)]
    duration: Duration,
    /// Send requests for this long before measuring, at each step
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = Config::duration)]
    warmup: Duration,
    /// How often to go through all levels; three or more make the intervals of the fit narrower
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: usize,
    /// Go down again after the top, to see whether the server recovers
    #[arg(long)]
    down: bool,
    /// What the response times must hold, such as '99% < 50ms'; exit status 3 if they do at no level
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<Objective>,
    /// The same seed gives the same random arrivals and the same intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    requests: RequestOptions,
    /// Write the sweep as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a line for each step as comma-separated values; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the sweep as one self-contained HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    calibration: CalibrationOptions,
}

/// The plan of the step that asks most of the client.
fn highest(sweep: &SweepPlan) -> Plan {
    let levels = sweep.ladder.levels().iter().copied().fold(1.0, f64::max);
    Plan {
        connections: match sweep.by {
            By::Connections => levels as usize,
            By::Rate => sweep.plan.connections,
        },
        ..sweep.plan.clone()
    }
}

impl Sweep {
    pub(crate) fn run(self) -> Outcome {
        let mut plan = self.plan()?;
        let tell = self.teller()?;
        let events = Events::listen()?;
        plan.plan.calibration = self.calibration.measure(&highest(&plan), &events.stop)?;
        let mut found = {
            let line = Progress::new();
            let rows = Rows::new(plan.by);
            let mut is_first = true;
            let mut watch = |news: News<'_>| match news {
                News::Progress(progress) => line.show(progress_line(&progress)),
                News::Step(step) => {
                    line.clear();
                    if std::mem::take(&mut is_first) {
                        tell(&rows.head());
                    }
                    tell(&rows.row(step));
                }
            };
            millpond_load::sweep(&plan, Some(&mut watch), &events.stop).map_err(Failure::new)?
        };
        found.command = command_line::typed();
        self.conclude(&found, tell)
    }

    fn plan(&self) -> Outcome<SweepPlan> {
        let mut plan = self.requests.plan(&self.url)?;
        plan.stop = Stop::Duration(self.duration);
        plan.warmup = self.warmup;
        let (ladder, by) = match (&self.rates, &self.connections) {
            (Some(rates), connections) => {
                plan.connections = match connections {
                    None => CONNECTIONS,
                    Some(connections) => single(connections)?,
                };
                (rates.clone(), By::Rate)
            }
            (None, Some(connections)) => (connections.clone(), By::Connections),
            (None, None) => return Err(Failure::new("--rates or --connections is needed")),
        };
        Ok(SweepPlan {
            plan,
            ladder,
            by,
            process: self.arrivals.process(self.seed),
            repeats: self.repeats,
            down: self.down,
            objective: self.objective,
            seed: self.seed,
        })
    }

    /// Where words go: standard output, unless that is for a file.
    fn teller(&self) -> Outcome<fn(&str)> {
        let on_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
        match (on_stdout(&self.json), on_stdout(&self.csv)) {
            (true, true) => {
                let message = "JSON and comma-separated values cannot both go to standard output";
                Err(Failure::new(message).hint("name a file for one of them"))
            }
            (false, false) => Ok(|line| say(line)),
            _ => Ok(|line| note(line)),
        }
    }

    fn conclude(&self, found: &Found, tell: fn(&str)) -> Outcome {
        tell("");
        sweep_findings(found).iter().for_each(|line| tell(line));
        for reason in &found.reasons {
            tell(&format!("{}: {reason}", found.verdict));
        }
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(found).map_err(Failure::new)?;
            write_to(path, &json)?;
        }
        if let Some(path) = &self.csv {
            write_to(path, sweep_csv(found).trim_end())?;
        }
        if let Some(path) = &self.report {
            write_to(path, &sweep_report(found).to_html())?;
        }
        let whole = found.steps.iter().filter(|step| step.complete).count() as u64;
        if found.verdict == Verdict::Invalid || whole < found.planned {
            // The rows and the reasons have said it.
            return Err(Failure::Said);
        }
        match &found.objective {
            Some(attained) if attained.highest.is_none() => Err(Failure::Missed),
            _ => Ok(()),
        }
    }
}

/// The one number of connections of an open loop.
fn single(connections: &Ladder) -> Outcome<usize> {
    match connections.whole().map_err(Failure::new)?[..] {
        [one] => Ok(one),
        _ => Err(Failure::new(
            "with --rates the connections are one number, the same at each step",
        )
        .hint("leave out --rates for a sweep over connections")),
    }
}

fn write_to(path: &Path, text: &str) -> Outcome {
    if path == Path::new("-") {
        return write_out(text);
    }
    fs::write(path, format!("{text}\n"))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

/// The table of steps, a line at a time: its columns are as wide as what they usually hold.
struct Rows {
    by: By,
    columns: Vec<Column>,
}

impl Rows {
    fn new(by: By) -> Self {
        let mut columns = sweep_columns(by);
        for column in &mut columns {
            let width = if column.title == "way" { 4 } else { 9 };
            column.title = format!("{:>width$}", column.title);
        }
        if let Some(last) = columns.last_mut() {
            last.title = last.title.trim().to_owned();
        }
        Self { by, columns }
    }

    fn head(&self) -> String {
        self.table(Vec::new()).trim_end().to_owned()
    }

    fn row(&self, step: &Step) -> String {
        let table = self.table(vec![sweep_row(self.by, step)]);
        table.lines().last().unwrap_or_default().to_owned()
    }

    fn table(&self, rows: Vec<Vec<String>>) -> String {
        text_table(&Table {
            columns: self.columns.clone(),
            rows,
            ..Table::default()
        })
    }
}

fn progress_line(progress: &SweepProgress) -> String {
    let doing = match progress.run.phase {
        Phase::Connecting => "connecting",
        Phase::WarmUp => "warming up",
        Phase::Measuring => "measuring",
    };
    format!(
        "step {} of {}, at {}: {doing}  {}  {} errors  {} s left",
        progress.step,
        progress.steps,
        progress.level,
        number::rate(progress.run.rate),
        number::count(progress.run.errors),
        number::count(progress.remaining.as_secs_f64().ceil() as u64)
    )
}
