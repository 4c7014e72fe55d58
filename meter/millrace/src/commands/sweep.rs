//! `millrace sweep`: a run at each level of a ladder, and what the runs say together.

use std::time::Duration;

use super::values;
use clap::{ArgGroup, Args};
use millrace_client::{Plan, Schedule, Stop};
use millrace_report::{
    Column, Table, number, sweep_columns, sweep_csv, sweep_curve, sweep_findings,
    sweep_limits_text, sweep_report, sweep_row, text_table,
};
use millrace_runs::{By, Ladder, News, Sweep as Found, SweepPlan, SweepProgress, SweepStep};
use millrace_stats::{Objective, Verdict};

use super::arrivals::ArrivalSpread;
use super::calibration::calibrate;
use super::results::ResultOptions;
use super::single::SingleRunFlags;
use super::workload::{SEED, with_workload};
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::flags::{PlanFlags, SWEEP};
use crate::live::{Live, Steps, ViewPosition, doing, remaining};
use crate::output::note;

/// Connections of an open loop without `--connections`: enough that a request seldom waits for one.
const CONNECTIONS: usize = 64;

/// Measure a server at rising rates or with more and more connections
///
/// Each step has its own warm-up. Levels are written as 50..1500/50 (from 50 to 1500 in steps of
/// 50), as 1..10, or as 1,2,4,8,16. A sweep over connections ends with the Universal Scalability
/// Law, fitted to the steps, or with the reason why they do not carry a fit. Where the server runs
/// on this machine it is sampled at each step, and what limits it is named. Ctrl-C ends the sweep
/// and keeps the steps that are done.
///
/// Exit status: 0 when every step was run, 1 when a step is INVALID or the sweep was stopped, 3
/// when no level meets the --objective.
#[derive(Args)]
#[command(group(ArgGroup::new("levels").args(["rates", "connections"]).required(true).multiple(true)))]
pub(crate) struct Sweep {
    /// The URL to ask for, such as http://127.0.0.1:8080/read?id=1; with --plan only the server
    #[arg(required_unless_present = "plan")]
    url: Option<String>,
    /// Send this many requests a second at each step, however slow the server is (an open loop);
    /// with --session or a workload this many sessions begin
    #[arg(short, long, value_name = "LEVELS")]
    rates: Option<Ladder>,
    /// Connections at each step, in a closed loop; with --rates one number for all steps, 64 if not
    /// given
    #[arg(short, long, value_name = "LEVELS")]
    connections: Option<Ladder>,
    /// How the requests of --rates are spread
    #[arg(long, value_enum, default_value_t = ArrivalSpread::Constant, requires = "rates")]
    arrivals: ArrivalSpread,
    /// How long to measure at each step, such as 10s, 500ms or 1min
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::duration)]
    duration: Duration,
    /// Send requests for this long before measuring, at each step
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::duration)]
    warmup: Duration,
    /// How often to go through all levels; three or more make the intervals of the fit narrower,
    /// and give one for the level with the highest throughput over response time
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: usize,
    /// Go down again after the top, to see whether the server recovers
    #[arg(long)]
    down: bool,
    /// The objective that the response times must hold, such as '99% < 50ms'; exit status 3 if they
    /// do at no level
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<Objective>,
    /// The seed of random arrivals, of the intervals and of a plan's choices [default: the plan's
    /// own, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    flags: PlanFlags<SWEEP>,
    #[command(flatten)]
    results: ResultOptions,
    #[command(flatten)]
    single: SingleRunFlags,
}

/// The plan of the step that needs the most of the client.
fn highest(sweep: &SweepPlan) -> Plan {
    let level = sweep.ladder.levels().iter().copied().fold(1.0, f64::max);
    let plan = sweep.plan.clone();
    match sweep.by {
        By::Connections => plan.with(|plan| plan.load.connections = level as usize),
        By::Rate => {
            plan.with(|plan| plan.load.schedule = Some(Schedule::new(level, sweep.process.clone())))
        }
    }
}

impl Sweep {
    pub(crate) fn run(self) -> CommandResult {
        let mut plan = self.plan()?;
        highest(&plan).notes().into_iter().for_each(note);
        let tell = self.results.teller()?;
        let events = Events::listen()?;
        plan.plan.conditions.calibration = calibrate(
            &self.flags,
            &highest(&plan),
            &self.results.line(),
            &events.stop,
        )?;
        let rows = Rows::new(plan.by);
        let (found, was_screen) = {
            let mut live = self
                .results
                .live(format!("millrace sweep {}", plan.plan.target.url))
                .steps(rows.steps());
            let mut is_first = true;
            let mut watch = |news: News<'_>| match news {
                News::Progress(progress) => show(&mut live, progress),
                News::Step(step) => {
                    let row = sweep_row(plan.by, step);
                    live.step(row, Some((step.level, step.run.good_rate)), || {
                        if std::mem::take(&mut is_first) {
                            tell(&rows.head());
                        }
                        tell(&rows.row(step));
                    });
                }
            };
            let found = millrace_runs::sweep(&plan, Some(&mut watch), &events.stop);
            (found.map_err(Failure::measuring)?, live.finish())
        };
        if was_screen {
            // The rows went away with the screen.
            tell(&rows.head());
            found.steps.iter().for_each(|step| tell(&rows.row(step)));
        }
        self.conclude(&found, tell)
    }

    fn plan(&self) -> CommandResult<SweepPlan> {
        self.single.refuse("--duration")?;
        let mut plan = self.flags.plan(self.url.as_deref().unwrap_or_default())?;
        plan.length.stop = Stop::Duration(self.duration);
        plan.length.warmup = self.warmup;
        let (ladder, by) = match (&self.rates, &self.connections) {
            (Some(rates), connections) => {
                plan.load.connections = match connections {
                    None => CONNECTIONS,
                    Some(connections) => single(connections)?,
                };
                (rates.clone(), By::Rate)
            }
            (None, Some(connections)) => (connections.clone(), By::Connections),
            (None, None) => return Err(Failure::new("--rates or --connections is needed")),
        };
        let [plan] = with_workload(&self.flags, [plan], self.seed)?;
        Ok(SweepPlan {
            plan,
            ladder,
            by,
            process: self.arrivals.process(self.seed.unwrap_or(SEED)),
            repeats: self.repeats,
            down: self.down,
            objective: self.objective,
            seed: self.seed.unwrap_or(SEED),
        })
    }

    fn conclude(&self, found: &Found, tell: fn(&str)) -> CommandResult {
        tell("");
        if let Some(curve) = sweep_curve(found) {
            tell(&text_table(&curve));
        }
        sweep_findings(found).iter().for_each(|line| tell(line));
        if let Some(limits) = sweep_limits_text(found) {
            tell(limits.trim_end());
        }
        for reason in &found.reasons {
            tell(&format!("{}: {reason}", found.verdict));
        }
        self.results.files(found, sweep_csv, sweep_report)?;
        let whole = found.steps.iter().filter(|step| step.complete).count() as u64;
        if found.verdict == Verdict::Invalid || whole < found.planned {
            // The rows and the reasons show why.
            return Err(Failure::Said);
        }
        match &found.objective {
            Some(attained) if attained.highest.is_none() => Err(Failure::Missed),
            _ => Ok(()),
        }
    }
}

/// The one number of connections of an open loop.
fn single(connections: &Ladder) -> CommandResult<usize> {
    match connections.whole().map_err(Failure::new)?[..] {
        [one] => Ok(one),
        _ => Err(Failure::new(
            "with --rates the connections are one number, the same at each step",
        )
        .hint("leave out --rates for a sweep over connections")),
    }
}

/// The table of steps, a line at a time. Columns have the width of their usual content.
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

    /// Makes the columns for a screen.
    fn steps(&self) -> Steps {
        let titles = sweep_columns(self.by).into_iter();
        let level = match self.by {
            By::Rate => "demanded",
            By::Connections => "connections",
        };
        Steps::new(
            titles.map(|column| column.title).collect(),
            [level, "good/s"],
        )
    }

    fn head(&self) -> String {
        self.table(Vec::new()).trim_end().to_owned()
    }

    fn row(&self, step: &SweepStep) -> String {
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

fn show(live: &mut Live, progress: &SweepProgress) {
    let (step, steps) = (progress.step, progress.steps);
    let done = (step.saturating_sub(1)) as f64 + progress.run.fraction;
    let place = ViewPosition {
        part: format!("step {step} of {steps}, at {}", progress.level),
        fraction: done / steps.max(1) as f64,
        remaining: Some(progress.remaining),
    };
    live.show(place, &progress.run, || progress_line(progress));
}

fn progress_line(progress: &SweepProgress) -> String {
    format!(
        "step {} of {}, at {}: {}  {}  {} errors  {} left",
        progress.step,
        progress.steps,
        progress.level,
        doing(progress.run.phase),
        number::rate(progress.run.rate),
        number::count(progress.run.errors),
        remaining(progress.remaining)
    )
}
