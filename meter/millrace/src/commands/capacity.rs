//! `millrace capacity`: the highest rate at which a server meets an objective.

use std::time::Duration;

use clap::Args;
use millrace_client::{Schedule, Stop, reach};
use millrace_report::{
    capacity_csv, capacity_limits_text, capacity_report, capacity_table, number, text_table,
};
use millrace_runs::{CapacityNews, CapacityPlan, CapacityProgress};
use millrace_stats::{CapacityTrial, Objective, SearchEnd, Stage, Verdict};

use super::arrivals::ArrivalSpread;
use super::calibration::calibrate;
use super::results::ResultOptions;
use super::single::SingleRunFlags;
use super::values;
use super::values::{percentage, whole};
use super::workload::{SEED, with_workload};
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::flags::{CAPACITY, PlanFlags};
use crate::live::{Live, Steps, ViewPosition, remaining};
use crate::output::note;

/// The rate by which the notes before a search without --to judge what it needs, such as source
/// ports.
const USUAL_TOP: f64 = 100_000.0;

/// Find the highest rate at which a server meets an objective, with a 95 % interval
///
/// The rate is doubled until the objective fails, the gap is narrowed, and trials around the
/// crossing are fitted until the interval is as narrow as --precision. Fresh trials at its lower
/// end must then meet the objective, and above its upper end must not. Each trial is an open loop;
/// a request that failed or was never answered is a bad one. Where the server runs on this machine
/// it is sampled, and what limits it at these ends is named. How long the search takes at most is
/// said at its start; Ctrl-C or SIGTERM ends it, and what was found until then is written.
///
/// Exit status: 0 when the rate was found or is above --to, 3 when the objective is not met even at
/// --from or the lower end of the interval is not shown to reach --at-least, 1 when the runs are
/// INVALID, the client is the limit, or the search was stopped.
#[derive(Args)]
pub(crate) struct Capacity {
    /// The URL to ask for, such as http://127.0.0.1:8080/read?id=1; with --plan only the server
    #[arg(required_unless_present = "plan")]
    url: Option<String>,
    /// The objective to meet: the share of all requests that have a good answer within a time, such
    /// as '99% < 50ms'
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Objective,
    /// The lowest rate, in requests a second; with --session or a workload in sessions
    #[arg(long, value_name = "R", default_value_t = 100.0, value_parser = values::number)]
    from: f64,
    /// The highest rate [default: none, as far as the server or the client goes]
    #[arg(long, value_name = "R", value_parser = values::number)]
    to: Option<f64>,
    /// The rate that must be reached; exit status 3 where the lower end of the interval is below it
    #[arg(long, value_name = "R", value_parser = values::number)]
    at_least: Option<f64>,
    /// How narrow the interval is to be: half of it, as a percentage of the rate
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = percentage)]
    precision: f64,
    /// How long each trial measures, such as 30s; longer ones make the interval narrower
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    trial: Duration,
    /// Send requests for this long before each trial
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::duration)]
    warmup: Duration,
    /// How requests are spread over time
    #[arg(long, value_enum, default_value_t = ArrivalSpread::Poisson)]
    arrivals: ArrivalSpread,
    /// The seed of random arrivals and of a plan's choices [default: the plan's own, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Connections, all open at the same time
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = whole::<usize>)]
    connections: usize,
    #[command(flatten)]
    flags: PlanFlags<CAPACITY>,
    #[command(flatten)]
    results: ResultOptions,
    #[command(flatten)]
    single: SingleRunFlags,
}

impl Capacity {
    pub(crate) fn run(self) -> CommandResult {
        let mut plan = self.plan()?;
        self.results.teller()?;
        let events = Events::listen()?;
        let top = Schedule::new(self.to.unwrap_or(USUAL_TOP), plan.process.clone());
        let highest = plan
            .plan
            .clone()
            .with(|trial| trial.load.schedule = Some(top));
        highest.notes().into_iter().for_each(note);
        plan.plan.conditions.calibration =
            calibrate(&self.flags, &highest, &self.results.line(), &events.stop)?;
        plan.check().map_err(Failure::new)?;
        reach(&highest).map_err(Failure::measuring)?;
        if !self.results.is_quiet() {
            note(how_long(&plan));
        }
        let capacity = {
            let title = format!(
                "millrace capacity {}  {}",
                plan.plan.target.url, self.objective
            );
            let mut live = self.results.live(title).steps(steps());
            let mut watch = |news: CapacityNews<'_>| match news {
                CapacityNews::Progress(progress) => show(&mut live, progress),
                CapacityNews::Trial(trial) => {
                    let line = trial_line(trial, &plan.objective);
                    let row = trial_row(trial, &plan.objective);
                    let point = Some((trial.rate, 100.0 * trial.share()));
                    let is_shown = live.is_watching();
                    live.step(row, point, || {
                        if is_shown {
                            note(line);
                        }
                    });
                }
            };
            millrace_runs::capacity(&plan, Some(&mut watch), &events.stop)
                .map_err(Failure::measuring)?
        };
        let text = summary(&capacity);
        self.results
            .write(&capacity, &text, capacity_csv, capacity_report)?;
        conclude(&capacity)
    }

    fn plan(&self) -> CommandResult<CapacityPlan> {
        self.single.refuse("--trial")?;
        let mut plan = self.flags.plan(self.url.as_deref().unwrap_or_default())?;
        plan.load.connections = self.connections;
        plan.length.stop = Stop::Duration(self.trial);
        plan.length.warmup = self.warmup;
        let [plan] = with_workload(&self.flags, [plan], self.seed)?;
        let usual = CapacityPlan::new(plan, self.objective);
        Ok(CapacityPlan {
            process: self.arrivals.process(self.seed.unwrap_or(SEED)),
            from: self.from,
            to: self.to.unwrap_or(usual.to),
            precision: self.precision,
            at_least: self.at_least,
            ..usual
        })
    }
}

/// The text at the end: the trials, the doubts, what limits the server, and the answer last.
fn summary(capacity: &millrace_runs::Capacity) -> String {
    let mut text = text_table(&capacity_table(capacity));
    for reason in &capacity.reasons {
        text.push_str(&format!("{}: {reason}\n", capacity.verdict));
    }
    text.push_str(&capacity_limits_text(capacity).unwrap_or_default());
    text.push_str(&format!("\n{}\n", capacity.answer));
    text
}

fn conclude(capacity: &millrace_runs::Capacity) -> CommandResult {
    let is_whole = !matches!(
        capacity.found,
        SearchEnd::Stopped | SearchEnd::Invalid | SearchEnd::ClientLimit
    );
    // The summary shows why.
    if capacity.verdict == Verdict::Invalid || !is_whole {
        return Err(Failure::Said);
    }
    let missed = capacity.at_least.is_some() && capacity.is_at_least != Some(true);
    match capacity.found {
        SearchEnd::BelowFrom => Err(Failure::Missed),
        _ if missed => Err(Failure::Missed),
        SearchEnd::Undecided => Err(Failure::Said),
        _ => Ok(()),
    }
}

/// How long the search takes, as it is said at its start.
fn how_long(plan: &CapacityPlan) -> String {
    let [fewest, most] = plan.trials();
    let length = plan.trial_length();
    let of =
        |trials: usize| remaining(length.saturating_mul(u32::try_from(trials).unwrap_or(u32::MAX)));
    format!(
        "{fewest} to {most} trials of {length:?}: {} to {}, and for each trial up to {:?} more where its last answers are late; \
         Ctrl-C ends the search and writes what was found",
        of(fewest),
        of(most),
        plan.plan.request.timeout
    )
}

fn progress_line(progress: &CapacityProgress) -> String {
    let doing = match progress.stage {
        Stage::Bracket => "doubling",
        Stage::Bisect => "narrowing",
        Stage::Refine => "refining",
        Stage::ConfirmLow => "confirming the lower end",
        Stage::ConfirmHigh => "confirming the upper end",
    };
    format!(
        "{doing}: {}  trial {} of about {}, {:.0} %, about {} left",
        number::rate(progress.rate),
        progress.done + 1,
        progress.expected,
        progress.run.fraction * 100.0,
        remaining(progress.remaining)
    )
}

fn steps() -> Steps {
    let columns = ["rate", "in time", "99 %", "met", "verdict"].map(str::to_owned);
    Steps::new(columns.to_vec(), ["rate", "% in time"])
}

fn trial_row(trial: &CapacityTrial, objective: &Objective) -> Vec<String> {
    let met = if trial.meets(objective) { "yes" } else { "no" };
    vec![
        number::rate(trial.rate),
        format!("{:.2} %", trial.share() * 100.0),
        trial.p99_us.map_or_else(|| "–".to_owned(), number::micros),
        met.to_owned(),
        trial.verdict.to_string(),
    ]
}

fn show(live: &mut Live, progress: &CapacityProgress) {
    let done = progress.done as f64 + progress.run.fraction;
    let place = ViewPosition {
        part: format!(
            "trial {}, at {}",
            progress.done + 1,
            number::rate(progress.rate)
        ),
        fraction: done / progress.expected.max(1) as f64,
        remaining: Some(progress.remaining),
    };
    live.show(place, &progress.run, || progress_line(progress));
}

fn trial_line(trial: &CapacityTrial, objective: &Objective) -> String {
    let share = trial.share() * 100.0;
    let met = if trial.meets(objective) {
        "met"
    } else {
        "not met"
    };
    format!("{}: {share:.2} % in time, {met}", number::rate(trial.rate))
}
