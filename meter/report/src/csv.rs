//! Results as comma-separated values (RFC 4180, with line feeds alone), for a spreadsheet or a
//! plot.
//!
//! Times are in microseconds, an unknown value is empty, and each file begins with a line of column
//! names.

use std::fmt::Write as _;

use millrace_runs::{Capacity, Comparison, Diagnosis, Lab, LabFigure, Level, Run};
use millrace_stats::{Block, Side, Stage};

use crate::{StoredResult, summary_csv};

/// A run over time, a line for each interval. Its times are service times. In an open loop they are
/// response times, with service times and send lags in the last columns.
pub fn run_csv(run: &Run) -> String {
    let mut text =
        "at_s,interval_s,requests,errors,p50_us,p99_us,max_us,service_p50_us,service_p99_us,\
                    send_lag_p99_us\n"
            .to_owned();
    for point in &run.series.points {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{}",
            cell(Some(point.at_s)),
            cell(Some(run.series.interval_s)),
            point.requests,
            point.errors,
            cell(point.p50_us),
            cell(point.p99_us),
            cell(point.max_us),
            cell(point.service_p50_us),
            cell(point.service_p99_us),
            cell(point.send_lag_p99_us)
        );
    }
    text
}

/// A search for the capacity, a line for each trial in its order.
pub fn capacity_csv(capacity: &Capacity) -> String {
    let mut text =
        "trial,stage,rate,scheduled,good,share,met,backlog,achieved_rate,p99_us,client_limit,verdict\n"
            .to_owned();
    for (number, trial) in capacity.trials.iter().enumerate() {
        let stage = match trial.stage {
            Stage::Bracket => "bracket",
            Stage::Bisect => "bisect",
            Stage::Refine => "refine",
            Stage::ConfirmLow => "confirm_low",
            Stage::ConfirmHigh => "confirm_high",
        };
        let _ = writeln!(
            text,
            "{},{stage},{},{},{},{:.6},{},{},{},{},{},{}",
            number + 1,
            cell(Some(trial.rate)),
            trial.scheduled,
            trial.good,
            trial.share(),
            trial.meets(&capacity.objective),
            trial.backlog,
            cell(Some(trial.achieved_rate)),
            cell(trial.p99_us),
            trial.client_limit,
            trial.verdict
        );
    }
    text
}

/// An experiment, a line for each run in its order.
pub fn lab_csv(lab: &Lab) -> String {
    let mut text =
        "server,connections,rate,paths,value,repeat,pass,throughput,failed,p50_us,p99_us,server_cpu_us_per_request,\
                    softirq_us_per_request,client_cpu_us_per_request,idle_bytes,other_client_throughput,verdict\n"
            .to_owned();
    for run in &lab.runs {
        let latency = run.latency_us.as_ref();
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            word(&run.server),
            run.level.connections,
            cell(run.level.rate),
            cell(run.level.count.map(|count| count as f64)),
            cell(run.level.value),
            run.repeat,
            run.pass,
            cell(Some(run.throughput)),
            cell(run.figures.get(&LabFigure::Failed).copied()),
            cell(latency.and_then(|times| times.p50)),
            cell(latency.and_then(|times| times.p99)),
            cell(run.cpu_us),
            cell(run.softirq_us),
            cell(run.client_cpu_us),
            cell(run.idle_bytes),
            cell(run.other.as_ref().map(|other| other.throughput)),
            run.verdict
        );
    }
    text
}

/// A diagnosis, a line for the run of each level, as in [`summary_csv`].
pub fn diagnosis_csv(diagnosis: &Diagnosis) -> String {
    let level = |level: &Level| {
        let name = format!("{} in flight", level.in_flight);
        (name, StoredResult::Run(Box::new(level.run.clone())))
    };
    summary_csv(&diagnosis.levels.iter().map(level).collect::<Vec<_>>())
}

/// A comparison, a line for each run of its blocks in their order.
pub fn compare_csv(comparison: &Comparison) -> String {
    let mut text =
        "phase,block,run,server,throughput,p50_us,p99_us,server_cpu_us_per_request,verdict\n"
            .to_owned();
    let a = comparison.a.name.as_str();
    let phases = [
        ("baseline", &comparison.baseline, [a, a]),
        (
            "comparison",
            &comparison.blocks,
            [a, comparison.b.name.as_str()],
        ),
    ];
    for (phase, blocks, names) in phases {
        for (number, block) in blocks.iter().enumerate() {
            block_lines(&mut text, phase, number + 1, block, names);
        }
    }
    text
}

fn block_lines(text: &mut String, phase: &str, number: usize, block: &Block, names: [&str; 2]) {
    for (place, trial) in block.trials.iter().enumerate() {
        let name = match trial.side {
            Side::A => names[0],
            Side::B => names[1],
        };
        let sample = &trial.sample;
        let _ = writeln!(
            text,
            "{phase},{number},{},{},{},{},{},{},{}",
            place + 1,
            word(name),
            cell(sample.throughput),
            cell(sample.p50_us),
            cell(sample.p99_us),
            cell(sample.cpu_us),
            trial.verdict
        );
    }
}

/// The times of a run and the client's CPU time: mean, 50, 90, 95, 99, 99.9 %, longest, CPU for
/// each request.
pub(crate) fn times(run: &Run) -> [Option<f64>; 8] {
    let latency = run.latency_us.response.or(run.latency_us.service);
    let cpu = run.client.cpu_us_per_request;
    latency.map_or([None, None, None, None, None, None, None, cpu], |latency| {
        [
            Some(latency.mean),
            latency.p50,
            latency.p90,
            latency.p95,
            latency.p99,
            latency.p999,
            Some(latency.max),
            cpu,
        ]
    })
}

/// A number to a thousandth.
pub(crate) fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.3}"))
}

/// A word, in quotation marks where it needs them.
pub(crate) fn word(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
