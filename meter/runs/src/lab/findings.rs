//! The figures and the verdict of each server at each level, from its runs.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{ratio_to, ratio_to_itself};
use super::figure::LabFigure;
use super::outcome::{LabFinding, LabLevel, LabRun, MedianRange};
use super::spec::PASSES;
use millrace_stats::Verdict;

/// The figures of every server at every level that was measured.
pub(super) fn findings(
    runs: &[LabRun],
    servers: &[&str],
    levels: &[LabLevel],
    baseline: Option<&str>,
) -> Vec<LabFinding> {
    let places = levels
        .iter()
        .flat_map(|level| servers.iter().map(move |server| (*server, *level)));
    let finding = |(server, level)| {
        let of = |name: &str| -> Vec<&LabRun> {
            runs.iter()
                .filter(|run| run.server == name && run.level == level)
                .collect()
        };
        let own = of(server);
        let base = baseline.filter(|base| *base != server).map(of);
        (!own.is_empty()).then(|| conclude(&own, base.as_deref()))
    };
    places.filter_map(finding).collect()
}

/// The figures of the runs of one server at one level; there is at least one.
fn conclude(runs: &[&LabRun], base: Option<&[&LabRun]>) -> LabFinding {
    let first = runs[0];
    let counted: Vec<&LabRun> = counting(runs).collect();
    let own = counted_for_figures(&counted);
    // Runs without any good answer are INVALID, and that no request was served is their figure.
    let failed: &[&LabRun] = match own.is_empty() && runs.iter().all(has_failed) {
        true => runs,
        false => &[],
    };
    let spread = |value: fn(&LabRun) -> Option<f64>| {
        MedianRange::of(own.iter().filter_map(|run| value(run)))
    };
    LabFinding {
        server: first.server.clone(),
        level: first.level,
        runs: runs.len(),
        counted: counted.len(),
        verdict: verdict(runs, &counted),
        throughput: spread(|run| Some(run.throughput))
            .or_else(|| MedianRange::of(failed.iter().map(|run| run.throughput))),
        p50_us: spread(|run| run.latency_us?.p50),
        p99_us: spread(|run| run.latency_us?.p99),
        cpu_us: spread(|run| run.cpu_us),
        softirq_us: spread(|run| run.softirq_us),
        core_busy: spread(|run| run.core_busy.map(|busy| busy.min(1.0))),
        client_cpu_us: spread(|run| run.client_cpu_us),
        client_busy: spread(|run| Some(run.client_busy)),
        cpu_ratio: base.and_then(|base| ratio_to(runs, base, |run| run.cpu_us)),
        throughput_ratio: base.and_then(|base| ratio_to(runs, base, |run| Some(run.throughput))),
        cpu_itself: ratio_to_itself(runs, |run| run.cpu_us),
        throughput_itself: ratio_to_itself(runs, |run| Some(run.throughput)),
        idle_bytes: spread(|run| run.idle_bytes),
        figures: match failed {
            [] => spreads(&own, |run| &run.figures),
            _ => {
                let mut figures = spreads(failed, |run| &run.figures);
                figures
                    .retain(|figure, _| matches!(figure, LabFigure::Failed | LabFigure::Timeouts));
                figures
            }
        },
        cores_of: spreads(&own, |run| &run.cores_of),
        limited_by: middle(&own).map_or_else(Vec::new, |run| run.limited_by.clone()),
        other_ratio: MedianRange::of(counted.iter().filter_map(|run| over_other(run))),
    }
}

/// True if no request of a run had a good answer.
fn has_failed(run: &&LabRun) -> bool {
    let failed = run.figures.get(&LabFigure::Failed);
    failed.is_some_and(|share| *share >= 1.0)
}

/// The spread of each figure over some runs.
fn spreads<K: Ord + Clone>(
    runs: &[&LabRun],
    figures: fn(&LabRun) -> &BTreeMap<K, f64>,
) -> BTreeMap<K, MedianRange> {
    let keys: BTreeSet<&K> = runs.iter().flat_map(|run| figures(run).keys()).collect();
    let spread =
        |key: &K| MedianRange::of(runs.iter().filter_map(|run| figures(run).get(key).copied()));
    keys.into_iter()
        .filter_map(|key| Some((key.clone(), spread(key)?)))
        .collect()
}

/// The run with the median throughput.
fn middle<'a>(runs: &[&'a LabRun]) -> Option<&'a LabRun> {
    let mut ordered = runs.to_vec();
    ordered.sort_by(|a, b| a.throughput.total_cmp(&b.throughput));
    ordered.get(ordered.len() / 2).copied()
}

/// Throughput as a multiple of the other client's, of a run beside which the other client ran.
fn over_other(run: &LabRun) -> Option<f64> {
    let other = run.other.filter(|other| other.throughput > 0.0)?;
    Some(run.throughput / other.throughput)
}

/// The runs that make a server's figures. Passes with the other client are longer, so they count
/// only if there are no others.
fn counted_for_figures<'a>(counted: &[&'a LabRun]) -> Vec<&'a LabRun> {
    let own = counted.iter().copied().filter(|run| run.pass <= PASSES);
    let own: Vec<&LabRun> = own.collect();
    if own.is_empty() {
        counted.to_vec()
    } else {
        own
    }
}

fn counting<'a>(runs: &'a [&'a LabRun]) -> impl Iterator<Item = &'a LabRun> {
    let counts = |run: &&LabRun| run.verdict != Verdict::Invalid;
    runs.iter().copied().filter(counts)
}

fn verdict(runs: &[&LabRun], counted: &[&LabRun]) -> Verdict {
    let all_good = runs.iter().all(|run| run.verdict == Verdict::Valid);
    match (counted.is_empty(), all_good) {
        (true, _) => Verdict::Invalid,
        (false, true) => Verdict::Valid,
        (false, false) => Verdict::Suspect,
    }
}

impl MedianRange {
    /// The range of some values; `None` without values.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let half = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[half - 1], values[half])
        } else {
            values[half]
        };
        Some(Self { median, min, max })
    }
}

/// Reasons against the findings, the gravest first, and the verdict of all.
pub(super) fn judge(findings: &[LabFinding], runs: &[LabRun]) -> (Verdict, Vec<String>) {
    let (mut bad, mut doubts) = (Vec::new(), Vec::new());
    for finding in findings {
        let of_it = |run: &&LabRun| run.server == finding.server && run.level == finding.level;
        let not_valid: Vec<&LabRun> = runs
            .iter()
            .filter(of_it)
            .filter(|run| run.verdict != Verdict::Valid)
            .collect();
        let Some(worst) = not_valid
            .iter()
            .find(|run| run.verdict == Verdict::Invalid)
            .or(not_valid.first())
        else {
            continue;
        };
        let sentence = format!(
            "{} of {} runs of {} with {} {}: {}",
            not_valid.len(),
            finding.runs,
            finding.server,
            finding.level,
            worst.verdict,
            worst.reasons.join("; ")
        );
        match finding.verdict {
            Verdict::Invalid => bad.push(sentence),
            _ => doubts.push(sentence),
        }
    }
    let verdict = match (bad.is_empty(), doubts.is_empty()) {
        (false, _) => Verdict::Invalid,
        (true, false) => Verdict::Suspect,
        (true, true) => Verdict::Valid,
    };
    bad.append(&mut doubts);
    (verdict, bad)
}

impl std::fmt::Display for LabLevel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.connections == 1 { "" } else { "s" };
        write!(out, "{} connection{plural}", self.connections)?;
        if let Some(rate) = self.rate {
            write!(out, ", {rate}/s")?;
        }
        if let Some(count) = self.count {
            write!(out, ", {count} paths")?;
        }
        match self.value {
            Some(value) => write!(out, ", at {value}"),
            None => Ok(()),
        }
    }
}

/// A run for tests, with 8 connections.
#[cfg(test)]
pub(super) fn run_of(server: &str, repeat: usize, cpu: f64) -> LabRun {
    LabRun {
        server: server.to_owned(),
        level: LabLevel {
            connections: 8,
            ..LabLevel::default()
        },
        repeat,
        pass: 1,
        duration_s: None,
        verdict: Verdict::Valid,
        reasons: vec!["because".to_owned()],
        again: None,
        requests: 1000,
        errors: 0,
        throughput: 1e6 / cpu,
        latency_us: None,
        cpu_us: Some(cpu),
        softirq_us: None,
        core_busy: Some(1.0),
        client_cpu_us: None,
        client_busy: 0.5,
        client_turns: None,
        client_core_busy: None,
        client_spin: false,
        idle_bytes: None,
        figures: BTreeMap::new(),
        cores_of: BTreeMap::new(),
        limited_by: Vec::new(),
        over_time: Vec::new(),
        other: Some(super::outcome::CrossCheck {
            throughput: 0.9e6 / cpu,
            errors: 0,
            cpu_us: Some(cpu),
            core_busy: Some(0.9),
            client: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL: LabLevel = LabLevel {
        connections: 8,
        rate: None,
        count: None,
        value: None,
    };

    fn run(server: &str, repeat: usize, cpu: f64, verdict: Verdict) -> LabRun {
        LabRun {
            verdict,
            ..run_of(server, repeat, cpu)
        }
    }

    #[test]
    fn ratios_are_of_pairs_and_invalid_runs_do_not_count() {
        let mut runs = Vec::new();
        // The machine gets slower all the time, which does not matter in pairs.
        for repeat in 1..=4 {
            let drift = repeat as f64;
            runs.push(run("floor", repeat, 5.0 * drift, Verdict::Valid));
            runs.push(run("it", repeat, 10.0 * drift, Verdict::Valid));
        }
        runs.push(run("it", 5, 1e6, Verdict::Invalid));
        let found = findings(
            &runs,
            &["floor", "it", "unmeasured"],
            &[LEVEL],
            Some("floor"),
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].cpu_ratio.is_none(), "itself");
        let it = &found[1];
        let ratio = it.cpu_ratio.unwrap();
        assert!((ratio.ratio - 2.0).abs() < 1e-9 && ratio.high - ratio.low < 1e-9);
        assert_eq!((it.runs, it.counted, it.verdict), (5, 4, Verdict::Suspect));
        assert_eq!(
            it.cpu_us.unwrap(),
            MedianRange {
                median: 25.0,
                min: 10.0,
                max: 40.0
            }
        );
        assert!((it.other_ratio.unwrap().median - 1.0 / 0.9).abs() < 1e-9);
        // Longer passes with the other client count if there are no others.
        let beside = |repeat, cpu| LabRun {
            pass: PASSES + 1,
            ..run("it", repeat, cpu, Verdict::Valid)
        };
        let median = |runs: &[LabRun]| {
            let runs: Vec<&LabRun> = runs.iter().collect();
            conclude(&runs, None).cpu_us.unwrap().median
        };
        let alone = [beside(1, 90.0)];
        let both = [run("it", 1, 10.0, Verdict::Valid), beside(1, 90.0)];
        assert_eq!((median(&alone), median(&both)), (90.0, 10.0));
        let (verdict, reasons) = judge(&found, &runs);
        assert_eq!(verdict, Verdict::Suspect);
        assert_eq!(
            reasons,
            ["1 of 5 runs of it with 8 connections INVALID: because"]
        );
    }

    #[test]
    fn a_server_that_serves_no_request_has_that_figure() {
        let mut none = run("a", 1, 1.0, Verdict::Invalid);
        none.throughput = 0.0;
        none.figures = [(LabFigure::Failed, 1.0), (LabFigure::Mean, 5.0)].into();
        let found = conclude(&[&none], None);
        assert_eq!(found.verdict, Verdict::Invalid);
        assert_eq!(found.throughput.unwrap().median, 0.0);
        let figures: Vec<LabFigure> = found.figures.keys().copied().collect();
        assert_eq!(figures, [LabFigure::Failed]);
        let good = run("a", 2, 1.0, Verdict::Valid);
        let found = conclude(&[&none, &good], None);
        assert!((found.throughput.unwrap().median - 1e6).abs() < 1.0);
    }

    #[test]
    fn without_runs_there_is_nothing() {
        assert_eq!(findings(&[], &["a"], &[LEVEL], None), []);
        assert_eq!(judge(&[], &[]), (Verdict::Valid, Vec::new()));
        let only = [run("a", 1, 1.0, Verdict::Invalid)];
        let found = findings(&only, &["a"], &[LEVEL], Some("a"));
        assert!(found[0].throughput.is_none());
        assert_eq!(judge(&found, &only).0, Verdict::Invalid);
    }
}
