//! What sampling the machine beside a run adds to the figures of an experiment.

use std::time::Duration;

use base_probe::Summary;

use super::figure::LabFigure;
use crate::Run;
use millrace_client::{Plan, ProbePlan, Stop};

/// The usual distance between two samples, and the least.
const INTERVALS: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(100)];
/// Samples that even a short run should have.
const SAMPLES: u32 = 8;
/// Limits that are stored.
const LIMITS: usize = 3;

/// Samples of the processes `pids` beside a run of `plan`. A server with a process for each
/// connection has some that end before they are looked at.
pub(super) fn probe(plan: &Plan, pids: &[u32]) -> ProbePlan {
    let [usual, least] = INTERVALS;
    let interval = match plan.length.stop {
        Stop::Duration(duration) => (duration / SAMPLES).clamp(least, usual),
        Stop::Requests(_) => least,
    };
    ProbePlan {
        interval,
        pids: pids
            .iter()
            .filter_map(|pid| i32::try_from(*pid).ok())
            .collect(),
        required: false,
        ..ProbePlan::default()
    }
}

fn summary(run: &Run) -> Option<&Summary> {
    let summary = run.probe.as_ref()?.summary.as_ref()?;
    (summary.span_s > 0.0).then_some(summary)
}

/// CPU time of the server for one request in microseconds, even if threads ended meanwhile.
pub(super) fn cpu_us(run: &Run) -> Option<f64> {
    (run.achieved_rate > 0.0).then(|| cores(run).map(|cores| cores * 1e6 / run.achieved_rate))?
}

/// How many cores the server used.
pub(super) fn cores(run: &Run) -> Option<f64> {
    let summary = summary(run)?;
    Some(summary.server?.cpu_s / summary.span_s)
}

/// Lists the limits of the server, the likeliest first: each limit with its first piece of
/// evidence.
pub(super) fn limits(run: &Run) -> Vec<String> {
    let found = run.bottleneck.iter().flatten().take(LIMITS);
    found
        .map(|limit| match limit.evidence.first() {
            Some(evidence) => format!("{}: {evidence}", limit.name),
            None => limit.name.to_string(),
        })
        .collect()
}

/// Idle cores, the network, and counters of the processor.
pub(super) fn figures(run: &Run) -> Vec<(LabFigure, f64)> {
    let Some(summary) = summary(run) else {
        return Vec::new();
    };
    let idle: f64 = summary
        .cores
        .iter()
        .map(|core| core.idle + core.iowait)
        .sum();
    let network = summary.network.as_ref().map(|network| {
        let counts = &network.counts;
        counts.received_bytes + counts.sent_bytes + counts.loopback_bytes
    });
    let counter = |name: &str| summary.perf.get(name).map(|count| *count as f64);
    let answers = run.achieved_rate * summary.span_s;
    let all = [
        (
            LabFigure::Idle,
            (!summary.cores.is_empty()).then(|| idle / summary.cores.len() as f64),
        ),
        (
            LabFigure::Network,
            network.map(|bytes| bytes as f64 / summary.span_s),
        ),
    ];
    all.into_iter()
        .filter_map(|(figure, value)| Some((figure, value?)))
        .chain(processor(counter, Some(answers)))
        .collect()
}

/// Calculates figures of the processor for these answers from its counters, by their names. A
/// figure whose counters the machine lacks, or that would be divided by nothing, is left out.
pub(super) fn processor(
    count: impl Fn(&str) -> Option<f64>,
    answers: Option<f64>,
) -> impl Iterator<Item = (LabFigure, f64)> {
    let ratio = |part: Option<f64>, whole: Option<f64>| {
        let whole = whole.filter(|whole| *whole > 0.0);
        part.zip(whole).map(|(part, whole)| part / whole)
    };
    let all = [
        (
            LabFigure::Ipc,
            ratio(count("instructions"), count("cycles")),
        ),
        (
            LabFigure::CacheMisses,
            ratio(count("cache_misses"), answers),
        ),
        (
            LabFigure::BranchMisses,
            ratio(count("branch_misses"), answers),
        ),
    ];
    all.into_iter()
        .filter_map(|(figure, value)| Some((figure, value?)))
}
