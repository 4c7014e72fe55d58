//! Several results as comma-separated values: a line for each run, step or trial.

use millrace_runs::{Comparison, Lab, LabRun, Loop, Run};
use millrace_stats::{CapacityTrial, Latency, Side, Trial, Verdict};

use super::StoredResult;
use crate::csv::{cell, times, word};

const COLUMNS: &str = "result,kind,part,url,loop,verdict,started_unix_us,duration_s,offered_rate,achieved_rate,good_rate,\
                       requests,issued,good,errors,bytes,mean_us,p50_us,p90_us,p95_us,p99_us,p999_us,max_us,\
                       client_cpu_us_per_request";

/// One line for each run: of a sweep for each step, of a search for each trial, of a diagnosis for
/// each level, of a comparison or an experiment for each run. Missing values are empty. Times are
/// in microseconds, from the scheduled send in an open loop.
pub fn summary_csv(found: &[(String, StoredResult)]) -> String {
    let mut text = format!("{COLUMNS}\n");
    for (name, one) in found {
        for (part, row) in rows(one) {
            let names = [word(name), one.kind().to_owned(), word(&part)];
            text.push_str(&names.join(","));
            text.push_str(&row.cells());
        }
    }
    text
}

/// Cells of a line; `None` is empty.
struct SummaryRow<'a> {
    url: &'a str,
    is_open: bool,
    verdict: Verdict,
    /// Length, and rates offered, achieved and good.
    rates: [Option<f64>; 4],
    /// Start, requests, issued, good, errors, bytes.
    counts: [Option<u64>; 6],
    times: [Option<f64>; 8],
}

impl SummaryRow<'_> {
    fn cells(&self) -> String {
        let kind = if self.is_open { "open" } else { "closed" };
        let whole = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
        let [start, counts @ ..] = self.counts.map(whole);
        let head = [
            word(self.url),
            kind.to_owned(),
            self.verdict.to_string(),
            start,
        ];
        let cells = head
            .into_iter()
            .chain(self.rates.map(cell))
            .chain(counts)
            .chain(self.times.map(cell));
        cells.fold(String::new(), |line, cell| line + "," + &cell) + "\n"
    }
}

/// The lines of one result with the name of each.
fn rows(found: &StoredResult) -> Vec<(String, SummaryRow<'_>)> {
    match found {
        StoredResult::Run(run) => vec![(String::new(), of_run(run))],
        StoredResult::Sweep(sweep) => {
            let steps = sweep.steps.iter().enumerate();
            steps
                .map(|(number, step)| (format!("step {}", number + 1), of_run(&step.run)))
                .collect()
        }
        StoredResult::Capacity(capacity) => {
            let trials = capacity.trials.iter().enumerate();
            let row = |trial| of_trial(trial, &capacity.url, capacity.duration_s);
            trials
                .map(|(number, trial)| (format!("trial {}", number + 1), row(trial)))
                .collect()
        }
        StoredResult::Comparison(comparison) => of_comparison(comparison),
        StoredResult::Diagnosis(diagnosis) => {
            let levels = diagnosis.levels.iter();
            levels
                .map(|level| (format!("{} in flight", level.in_flight), of_run(&level.run)))
                .collect()
        }
        StoredResult::Lab(lab) => {
            let has_passes = lab.runs.iter().any(|run| run.pass > 1);
            let part = |run: &LabRun| match has_passes {
                true => format!(
                    "{}, {}, repeat {}, pass {}",
                    run.server, run.level, run.repeat, run.pass
                ),
                false => format!("{}, {}, repeat {}", run.server, run.level, run.repeat),
            };
            let runs = lab.runs.iter();
            runs.map(|run| (part(run), of_lab(lab, run))).collect()
        }
    }
}

fn of_run(run: &Run) -> SummaryRow<'_> {
    let counts = run.accounting;
    let started = (run.started_unix_us > 0).then_some(run.started_unix_us);
    SummaryRow {
        url: &run.url,
        is_open: run.kind == Loop::Open,
        verdict: run.verdict,
        rates: [
            Some(run.duration_s),
            run.offered_rate,
            Some(run.achieved_rate),
            Some(run.good_rate),
        ],
        counts: [
            started,
            Some(run.requests),
            Some(counts.issued),
            Some(counts.good),
            Some(counts.issued.saturating_sub(counts.good)),
            Some(run.bytes),
        ],
        times: times(run),
    }
}

/// A trial keeps only these figures of its run. Its good answers are those in time, a smaller count
/// than that of a run.
fn of_trial<'a>(trial: &CapacityTrial, url: &'a str, seconds: f64) -> SummaryRow<'a> {
    SummaryRow {
        url,
        is_open: true,
        verdict: trial.verdict,
        rates: [
            Some(seconds),
            Some(trial.rate),
            Some(trial.achieved_rate),
            None,
        ],
        counts: [None, None, Some(trial.scheduled), None, None, None],
        times: [None, None, None, None, trial.p99_us, None, None, None],
    }
}

fn of_comparison(comparison: &Comparison) -> Vec<(String, SummaryRow<'_>)> {
    let (a, b) = (&comparison.a, &comparison.b);
    let phases = [
        ("baseline", &comparison.baseline, [a, a]),
        ("comparison", &comparison.blocks, [a, b]),
    ];
    let mut rows = Vec::new();
    for (phase, blocks, subjects) in phases {
        for (number, block) in blocks.iter().enumerate() {
            for trial in &block.trials {
                let subject = match trial.side {
                    Side::A => subjects[0],
                    Side::B => subjects[1],
                };
                let part = format!("{phase} {} {}", number + 1, subject.name);
                rows.push((part, of_side(comparison, trial, &subject.url)));
            }
        }
    }
    rows
}

fn of_side<'a>(comparison: &Comparison, trial: &Trial, url: &'a str) -> SummaryRow<'a> {
    let sample = &trial.sample;
    SummaryRow {
        url,
        is_open: comparison.offered_rate.is_some(),
        verdict: trial.verdict,
        rates: [
            Some(comparison.duration_s),
            comparison.offered_rate,
            None,
            sample.throughput,
        ],
        counts: [None; 6],
        times: [
            None,
            sample.p50_us,
            None,
            None,
            sample.p99_us,
            None,
            None,
            None,
        ],
    }
}

/// An experiment keeps its servers by name, and a new port each time.
fn of_lab<'a>(lab: &'a Lab, run: &'a LabRun) -> SummaryRow<'a> {
    let time = |of: fn(&Latency) -> Option<f64>| run.latency_us.as_ref().and_then(of);
    SummaryRow {
        url: "",
        is_open: run.level.rate.is_some(),
        verdict: run.verdict,
        rates: [
            Some(run.duration_s.unwrap_or(lab.duration_s)),
            run.level.rate,
            None,
            Some(run.throughput),
        ],
        counts: [None, Some(run.requests), None, None, Some(run.errors), None],
        times: [
            time(|latency| Some(latency.mean)),
            time(|latency| latency.p50),
            time(|latency| latency.p90),
            time(|latency| latency.p95),
            time(|latency| latency.p99),
            time(|latency| latency.p999),
            time(|latency| Some(latency.max)),
            run.client_cpu_us,
        ],
    }
}
