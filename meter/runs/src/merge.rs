//! Several runs as one: generators that ran at the same time on several machines, or repeats one
//! after the other.
//!
//! Counts and histograms add up, so the merged run is the run of all samples together, histogram
//! for histogram; percentiles are computed again from the sum. Rates are counts over the time in
//! which at least one run was measuring: rates of generators at the same time add up, rates of
//! repeats are averaged by their length. The wall-clock start times of the runs decide which case
//! it is.

mod check;
mod spans;
mod timeline;
mod visits;

use std::collections::BTreeMap;
use std::fmt;

use crate::figures::MergedRun;
use crate::run::{ClientFigures, Connections, Loop, Run};
use millrace_client::Errors;
use millrace_stats::hdr::Histograms;
use millrace_stats::latency::{buckets, quantiles};
use millrace_stats::{Accounting, Little, Timeline, Verdict};
use spans::Spans;

/// Why runs cannot be one. The numbers of runs count from 1, in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no run to merge.
    Nothing,
    /// A run was stored without what merging needs.
    Lacks {
        /// Number of the run.
        run: usize,
        /// The missing part.
        what: &'static str,
    },
    /// Two runs are not of the same thing.
    Unlike {
        /// Numbers of the runs.
        runs: (usize, usize),
        /// In what they differ, with both values.
        what: String,
    },
    /// One run is given twice.
    Twice {
        /// Numbers of the runs.
        runs: (usize, usize),
    },
    /// A run contradicts itself, so its file was changed.
    Contradiction {
        /// Number of the run.
        run: usize,
        /// The contradiction.
        what: String,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("there is no run to merge"),
            Self::Lacks { run, what } => write!(
                out,
                "run {run} cannot be merged: it was stored without {what}"
            ),
            Self::Unlike {
                runs: (one, other),
                what,
            } => write!(
                out,
                "runs {one} and {other} are not of the same thing: {what}"
            ),
            Self::Twice { runs: (one, other) } => {
                write!(out, "runs {one} and {other} are the same run")
            }
            Self::Contradiction { run, what } => {
                write!(out, "run {run} contradicts itself: {what}")
            }
        }
    }
}

impl std::error::Error for MergeError {}

impl Run {
    /// One run of the samples of several, in any order; `command` is the command line that merges
    /// them.
    ///
    /// # Errors
    /// The runs cannot be merged: they have different URLs, loops, warm-ups or kinds of connection;
    /// repeats have different rates or numbers of connections; or a run lacks its histograms or its
    /// time, or is given twice.
    pub fn merge(runs: &[Self], command: &str) -> Result<Self, MergeError> {
        let [first, rest @ ..] = runs else {
            return Err(MergeError::Nothing);
        };
        if rest.is_empty() {
            let command = command.to_owned();
            return Ok(Self {
                command,
                ..first.clone()
            });
        }
        let spans = Spans::of(runs);
        check::check_same_settings(runs, &spans)?;
        let seconds = spans.total_s();
        let rate = |of: fn(&Self) -> f64| spans.per_second(runs, |run| Some(of(run)));
        let (verdict, reasons) = judged(runs, &spans);
        let series: Vec<&Timeline> = runs.iter().map(|run| &run.series).collect();
        let histograms: Vec<&Histograms> = runs.iter().map(|run| &run.histograms).collect();
        let histograms = Histograms::merge(&histograms);
        let main = match first.kind {
            Loop::Open => &histograms.response,
            Loop::Closed => &histograms.service,
        };
        let times = main.as_ref().map(|hdr| hdr.histogram());
        let accounting = accounting(runs);
        Ok(Self {
            verdict,
            reasons,
            client_at_fault: verdict == Verdict::Invalid
                && runs
                    .iter()
                    .all(|run| run.verdict != Verdict::Invalid || run.client_at_fault),
            kind: first.kind,
            protocol: first.protocol,
            url: first.url.clone(),
            duration_s: seconds,
            warmup_s: first.warmup_s,
            requests: accounting.answered,
            accounting,
            offered_rate: spans.per_second(runs, |run| run.offered_rate),
            backlog: runs
                .iter()
                .filter_map(|run| run.backlog)
                .max_by(|a, b| a.to.total_cmp(&b.to)),
            achieved_rate: rate(|run| run.achieved_rate).unwrap_or(0.0),
            good_rate: rate(|run| run.good_rate).unwrap_or(0.0),
            bytes: sum(runs, |run| run.bytes),
            errors: errors(runs.iter().map(|run| &run.errors)),
            error_examples: examples(runs),
            latency_us: histograms.latencies(),
            connections: connections(runs, &spans),
            client: client(runs, &spans),
            little: little(runs, &spans),
            host: first.host.clone(),
            command: command.to_owned(),
            series: timeline::merge(&series, &spans),
            histogram: times.as_ref().map(buckets).unwrap_or_default(),
            percentiles: times.as_ref().map(quantiles).unwrap_or_default(),
            started_unix_us: runs
                .iter()
                .map(|run| run.started_unix_us)
                .min()
                .unwrap_or(0),
            histograms,
            merged_from: runs.iter().flat_map(parts).collect(),
            // Probes of different machines and times do not merge; each stays with its own run.
            probe: None,
            postgres: None,
            streams: None,
            bottleneck: None,
            classes: visits::classes(runs, &spans),
            sessions: visits::sessions(runs, &spans),
            pauses: visits::pauses(runs),
            ramp_down: visits::ramp_down(runs),
            // Decisions and ceilings belong to one client; they do not add up.
            auto: None,
            calibration: None,
            notes: notes(runs),
        })
    }
}

/// The sum over all runs. Stored numbers may be of any size, so the sum saturates.
fn sum(runs: &[Run], of: impl Fn(&Run) -> u64) -> u64 {
    runs.iter().map(of).fold(0, u64::saturating_add)
}

/// Sums an optional figure, if every run has it.
fn all_of(runs: &[Run], of: impl Fn(&Run) -> Option<u64>) -> Option<u64> {
    runs.iter()
        .try_fold(0, |sum: u64, run| Some(sum.saturating_add(of(run)?)))
}

/// A run that was merged before gives its own parts.
fn parts(run: &Run) -> Vec<MergedRun> {
    if !run.merged_from.is_empty() {
        return run.merged_from.clone();
    }
    vec![MergedRun {
        command: run.command.clone(),
        started_unix_us: run.started_unix_us,
        duration_s: run.duration_s,
        requests: run.requests,
        achieved_rate: run.achieved_rate,
        verdict: run.verdict,
        host: run.host.clone(),
    }]
}

fn notes(runs: &[Run]) -> Vec<String> {
    let named = |(number, run): (usize, &Run)| {
        let of = move |note: &String| format!("run {}: {note}", number + 1);
        run.notes.iter().map(of).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(named).collect()
}

/// The worst verdict, with every reason and the number of its run.
fn judged(runs: &[Run], spans: &Spans) -> (Verdict, Vec<String>) {
    let rank = |verdict: Verdict| match verdict {
        Verdict::Valid => 0,
        Verdict::Suspect => 1,
        Verdict::Invalid => 2,
    };
    let mut verdict = runs
        .iter()
        .map(|run| run.verdict)
        .max_by_key(|verdict| rank(*verdict))
        .unwrap_or(Verdict::Valid);
    let mut reasons: Vec<(u8, String)> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let named = |reason| {
            (
                2 - rank(run.verdict),
                format!("run {}: {reason}", number + 1),
            )
        };
        reasons.extend(run.reasons.iter().map(named));
    }
    if let Some(reason) = spans.overlap_doubt() {
        if verdict == Verdict::Valid {
            verdict = Verdict::Suspect;
        }
        reasons.push((1, reason));
    }
    // The gravest first, as in every run.
    reasons.sort_by_key(|(rank, _)| *rank);
    let reasons = reasons.into_iter().map(|(_, reason)| reason).collect();
    (verdict, reasons)
}

fn accounting(runs: &[Run]) -> Accounting {
    let all = |of: fn(&Accounting) -> u64| sum(runs, |run| of(&run.accounting));
    Accounting {
        issued: all(|counts| counts.issued),
        answered: all(|counts| counts.answered),
        good: all(|counts| counts.good),
        failed: all(|counts| counts.failed),
        shed: all(|counts| counts.shed),
        abandoned: all(|counts| counts.abandoned),
        in_flight: all(|counts| counts.in_flight),
        resent: all(|counts| counts.resent),
    }
}

fn errors<'a>(all: impl Iterator<Item = &'a Errors>) -> Errors {
    let mut by_kind: BTreeMap<String, u64> = BTreeMap::new();
    for (kind, count) in all.flat_map(|errors| &errors.by_kind) {
        let sum = by_kind.entry(kind.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    Errors { by_kind }
}

/// The first example of each kind.
fn examples(runs: &[Run]) -> BTreeMap<String, String> {
    let all = runs.iter().rev().flat_map(|run| &run.error_examples);
    all.map(|(kind, example)| (kind.clone(), example.clone()))
        .collect()
}

/// Connections at the same time add up; for repeats it is the greatest number.
fn connections(runs: &[Run], spans: &Spans) -> Connections {
    let most = |of: fn(&Connections) -> u64| spans.most(|run| of(&runs[run].connections));
    let first = &runs[0].connections;
    Connections {
        asked: most(|connections| connections.asked),
        established: most(|connections| connections.established),
        opened: sum(runs, |run| run.connections.opened),
        keep_alive: first.keep_alive,
        depth: first.depth,
        conforming: all_of(runs, |run| run.connections.conforming),
    }
}

fn client(runs: &[Run], spans: &Spans) -> ClientFigures {
    let finished = |run: &Run| (run.accounting.answered + run.accounting.failed) as f64;
    let all: f64 = runs.iter().map(finished).sum();
    let cpu: Option<f64> = runs
        .iter()
        .filter(|run| finished(run) > 0.0)
        .map(|run| Some(run.client.cpu_us_per_request? * finished(run)))
        .sum();
    ClientFigures {
        cpu_us_per_request: cpu.filter(|_| all > 0.0).map(|cpu| cpu / all),
        busiest_thread: runs
            .iter()
            .map(|run| run.client.busiest_thread)
            .fold(0.0, f64::max),
        threads: spans.most(|run| runs[run].client.threads),
        throttled_us: all_of(runs, |run| run.client.throttled_us),
        run_delay_us: all_of(runs, |run| run.client.run_delay_us),
        turns: all_of(runs, |run| run.client.turns),
        spin: runs.iter().all(|run| run.client.spin),
        spun_us: all_of(runs, |run| run.client.spun_us),
        // Clocks of several machines, or several moments of one.
        started_ns: 0,
    }
}

/// Both sides of Little's law as time-weighted sums, if every run has them. Tolerances are added,
/// which is right if all errors have the same direction.
fn little(runs: &[Run], spans: &Spans) -> Option<Little> {
    let weigh = |of: fn(&Little) -> f64| spans.per_second(runs, |run| run.little.as_ref().map(of));
    Some(Little {
        expected: weigh(|law| law.expected)?,
        found: weigh(|law| law.found)?,
        tolerance: weigh(|law| law.tolerance)?,
        windows: sum(runs, |run| run.little.map_or(0, |law| law.windows)),
    })
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
