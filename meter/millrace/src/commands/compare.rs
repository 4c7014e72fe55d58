//! `millrace compare`: is one server better or worse than another, and can that be said at all?

use std::time::Duration;

use clap::{Args, ValueEnum};
use millrace_client::{Schedule, Stop};
use millrace_report::{compare_csv, compare_report, compare_table, text_table};
use millrace_runs::{CompareProgress, Comparison};
use millrace_stats::{BLOCKS, Decision, Detect, MOST_BLOCKS, Metric, Side, Subject, Verdict};

use super::calibration::calibrate;
use super::results::ResultOptions;
use super::single::SingleRunFlags;
use super::values::{self, number, percentage, whole};
use super::workload::with_workload;
use crate::events::Events;
use crate::failure::{CommandResult, Failure};
use crate::flags::{COMPARE, PlanFlags};
use crate::live::{ViewPosition, remaining};
use crate::output::note;

/// Compare two servers: A against itself first, then A and B in alternating runs
///
/// The runs alternate in blocks of four, A B B A, so that what drifts on the machine meets both
/// servers alike. A is measured against itself in the same pattern before, which shows the smallest
/// difference that could be seen. The interval comes from the log ratios of the blocks (Student,
/// 95 %).
///
/// Exit status: 0 when the comparison was carried out and the --limit holds, 1 when a run is
/// INVALID or the comparison was stopped, 3 when the limit is exceeded or could not be shown to
/// hold, or what --detect asks for could not be seen.
#[derive(Args)]
pub(crate) struct Compare {
    /// The server that is compared with, and a name for it: A=http://127.0.0.1:8080/
    #[arg(value_name = "A=URL", value_parser = named)]
    a: (String, String),
    /// The server that is compared: B=http://127.0.0.1:8081/
    #[arg(value_name = "B=URL", value_parser = named)]
    b: (String, String),
    /// Connections of each run, all open at the same time
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>)]
    connections: usize,
    /// Requests a second, at equal distances, however slow the server is; without it the loop is
    /// closed. With --session or a workload R sessions begin
    #[arg(short, long, value_name = "R", value_parser = number, allow_negative_numbers = true)]
    rate: Option<f64>,
    /// How long each run measures, such as 2s or 500ms
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::duration)]
    duration: Duration,
    /// Send requests for this long before each run, on connections of their own
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = values::duration)]
    warmup: Duration,
    /// Blocks of four runs, of A against itself and again of A and B; with --detect the fewest
    #[arg(long, value_name = "N", default_value_t = BLOCKS, value_parser = whole::<usize>)]
    blocks: usize,
    /// The smallest difference that is to be seen, such as 3%: go on until it would be found four
    /// times out of five
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    detect: Option<f64>,
    /// Blocks of each half after which --detect gives up [default: ten times --blocks]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, requires = "detect")]
    most_blocks: Option<usize>,
    /// How many times worse B may be, such as 1.10; exit status 3 where the upper 95 % bound is
    /// over it
    #[arg(long, value_name = "RATIO", value_parser = number)]
    limit: Option<f64>,
    /// The metric that decides; without it cpu where both processes are given, else throughput, or
    /// p50 with --rate
    #[arg(long, value_enum)]
    metric: Option<Choice>,
    /// The processes of server A on this machine, for its CPU time per request: 4711 or 4711,4712
    #[arg(long, value_name = "PID", value_delimiter = ',', requires = "pid_b")]
    pid_a: Vec<u32>,
    /// The processes of server B
    #[arg(long, value_name = "PID", value_delimiter = ',', requires = "pid_a")]
    pid_b: Vec<u32>,
    /// The seed of random choices, the same for both servers [default: the plan's own, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    flags: PlanFlags<COMPARE>,
    #[command(flatten)]
    results: ResultOptions,
    #[command(flatten)]
    single: SingleRunFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    /// CPU time of the server for one request
    Cpu,
    /// Good answers a second, in a closed loop
    Throughput,
    /// Median response time
    P50,
    /// 99th percentile of the response time
    P99,
}

impl From<Choice> for Metric {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Cpu => Self::Cpu,
            Choice::Throughput => Self::Throughput,
            Choice::P50 => Self::P50,
            Choice::P99 => Self::P99,
        }
    }
}

impl Compare {
    pub(crate) fn run(self) -> CommandResult {
        let mut compare = self.comparison()?;
        self.results.teller()?;
        let events = Events::listen()?;
        let one = compare.plan_of(Side::A);
        one.notes().into_iter().for_each(note);
        compare.plan.conditions.calibration =
            calibrate(&self.flags, &one, &self.results.line(), &events.stop)?;
        let comparison = {
            let names = [compare.a.name.clone(), compare.b.name.clone()];
            let [a, b] = &names;
            let mut live = self.results.live(format!("millrace compare {a} {b}"));
            let mut show = |progress: &CompareProgress| {
                let place = ViewPosition {
                    part: part(progress, &names),
                    fraction: (progress.done as f64 + progress.run.fraction)
                        / progress.runs.max(1) as f64,
                    remaining: Some(progress.remaining),
                };
                live.show(place, &progress.run, || progress_line(progress, &names));
            };
            millrace_runs::compare(&compare, Some(&mut show), &events.stop)
                .map_err(Failure::measuring)?
        };
        let text = summary(&comparison);
        self.results
            .write(&comparison, &text, compare_csv, compare_report)?;
        conclude(&comparison)
    }

    /// Returns the number of blocks at which `--detect` gives up without `--most-blocks`.
    fn most_blocks_without_word(&self) -> usize {
        self.blocks
            .saturating_mul(10)
            .min(MOST_BLOCKS)
            .max(self.blocks)
    }

    fn comparison(&self) -> CommandResult<millrace_runs::Compare> {
        self.single.refuse("--duration")?;
        let subject = |(name, url): &(String, String), pids: &[u32]| Subject {
            name: name.clone(),
            url: url.clone(),
            pids: pids.to_vec(),
        };
        let mut plan = self.flags.plan(&self.a.1)?;
        plan.load.connections = self.connections;
        plan.load.schedule = self.rate.map(Schedule::constant);
        plan.length.stop = Stop::Duration(self.duration);
        plan.length.warmup = self.warmup;
        let other = plan.clone().with(|plan| plan.target.url = self.b.1.clone());
        let both = with_workload(&self.flags, [plan.clone(), other], self.seed)?;
        let [a, b] = both.map(|plan| plan.request.workload);
        Ok(millrace_runs::Compare {
            workloads: a.zip(b).map(|(a, b)| [a, b]),
            blocks: self.blocks,
            detect: self.detect.map(|share| Detect {
                share,
                most_blocks: self
                    .most_blocks
                    .unwrap_or_else(|| self.most_blocks_without_word()),
            }),
            metric: self.metric.map(Metric::from),
            limit: self.limit,
            ..millrace_runs::Compare::new(
                subject(&self.a, &self.pid_a),
                subject(&self.b, &self.pid_b),
                plan,
            )
        })
    }
}

/// The text at the end: the answer with its verdict, a table of the noise floor and the figures,
/// and the doubts.
fn summary(comparison: &Comparison) -> String {
    let mut text = format!("{}: {}\n\n", comparison.verdict, comparison.answer);
    text.push_str(&text_table(&compare_table(comparison)));
    for reason in &comparison.reasons {
        text.push_str(&format!("{}: {reason}\n", comparison.verdict));
    }
    for note in &comparison.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn conclude(comparison: &Comparison) -> CommandResult {
    // The summary shows why.
    if comparison.verdict == Verdict::Invalid || !comparison.complete {
        return Err(Failure::Said);
    }
    let unseen = comparison.detect.is_some() && comparison.decision == Decision::Undecided;
    match (comparison.limit, comparison.within_limit) {
        (Some(_), Some(false) | None) => Err(Failure::Missed),
        _ if unseen => Err(Failure::Missed),
        _ => Ok(()),
    }
}

/// The current block, and its servers.
fn part(progress: &CompareProgress, names: &[String; 2]) -> String {
    let [a, b] = names;
    let (other, server) = match (progress.is_baseline, progress.server) {
        (true, _) => (a, a),
        (false, Side::A) => (b, a),
        (false, Side::B) => (b, b),
    };
    format!(
        "{a} and {other}, block {} of {}: {server}",
        progress.block, progress.blocks
    )
}

fn progress_line(progress: &CompareProgress, names: &[String; 2]) -> String {
    format!(
        "{}  {:.0} %, {} left",
        part(progress, names),
        100.0 * progress.done as f64 / progress.runs.max(1) as f64,
        remaining(progress.remaining)
    )
}

/// `NAME=URL`. Only the URL may have more equals signs.
fn named(text: &str) -> Result<(String, String), String> {
    let (name, url) = text
        .split_once('=')
        .filter(|(name, _)| !name.contains("://"))
        .ok_or("a server is written as NAME=URL, such as A=http://127.0.0.1:8080/")?;
    let (name, url) = (name.trim(), url.trim());
    if name.is_empty() {
        return Err("the name before = is missing".to_owned());
    }
    if url.is_empty() {
        return Err("the URL after = is missing".to_owned());
    }
    Ok((name.to_owned(), url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_name_and_a_url() {
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(named("nginx=http://h/?a=1"), pair("nginx", "http://h/?a=1"));
        for bad in ["http://h/", "http://h/?a=1", "=http://h/", "A="] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
