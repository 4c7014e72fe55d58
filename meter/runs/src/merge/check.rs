//! Whether runs measure the same thing.

use super::{MergeError, spans::Spans};
use crate::Run;
use millrace_stats::hdr::{FINE, Histograms};

/// Relative difference up to which two settings are the same.
const SAME: f64 = 1e-6;
/// A run of more than thirty years is a mistake.
const LONGEST_S: f64 = 1e9;

pub(super) fn check_same_settings(runs: &[Run], spans: &Spans) -> Result<(), MergeError> {
    for (number, run) in runs.iter().enumerate() {
        check_consistent(number + 1, run)?;
    }
    let first = &runs[0];
    for (number, run) in runs.iter().enumerate().skip(1) {
        if let Some(what) = difference(first, run) {
            let runs = (1, number + 1);
            return Err(MergeError::Unlike { runs, what });
        }
    }
    for (number, run) in runs.iter().enumerate() {
        let is_same = |other: &&Run| {
            other.started_unix_us == run.started_unix_us && other.histograms == run.histograms
        };
        if let Some(before) = runs[..number].iter().position(|other| is_same(&other)) {
            let runs = (before + 1, number + 1);
            return Err(MergeError::Twice { runs });
        }
    }
    repeats(runs, spans)
}

/// Checks that a run has what merging needs, and that its figures fit together.
fn check_consistent(number: usize, run: &Run) -> Result<(), MergeError> {
    let lacks = |what| Err(MergeError::Lacks { run: number, what });
    let Histograms {
        significant_digits,
        response,
        service,
        ..
    } = &run.histograms;
    if *significant_digits != FINE {
        return lacks("its histograms");
    }
    if run.started_unix_us == 0 {
        return lacks("the time at which it began");
    }
    if !(0.0..=LONGEST_S).contains(&run.duration_s) {
        return lacks("a length that can be");
    }
    let good = run.accounting.good;
    for (name, hdr) in [("response", response), ("service", service)] {
        let samples = hdr.as_ref().map_or(good, |hdr| hdr.samples());
        if samples != good {
            let what = format!("{good} good answers, and {samples} in the histogram of {name}");
            return Err(MergeError::Contradiction { run: number, what });
        }
    }
    Ok(())
}

/// A difference that is not allowed, whether runs overlap in time or not.
fn difference(one: &Run, other: &Run) -> Option<String> {
    let differ = |what: &str, one: String, other: String| {
        (one != other).then(|| format!("{what} {one} and {other}"))
    };
    let kind = |run: &Run| format!("{:?}", run.kind).to_lowercase();
    differ("the URLs", one.url.clone(), other.url.clone())
        .or_else(|| differ("loops", kind(one), kind(other)))
        .or_else(|| {
            let protocol = |run: &Run| run.protocol.to_string();
            differ("protocols", protocol(one), protocol(other))
        })
        .or_else(|| {
            let keep = |run: &Run| {
                if run.connections.keep_alive {
                    "kept"
                } else {
                    "closed"
                }
            };
            differ("connections", keep(one).to_owned(), keep(other).to_owned())
        })
        .or_else(|| {
            let client = |run: &Run| {
                if run.client.spin {
                    "that spin"
                } else {
                    "that sleep"
                }
            };
            differ("clients", client(one).to_owned(), client(other).to_owned())
        })
        .or_else(|| {
            let depth = |run: &Run| run.connections.depth.to_string();
            differ("pipelining depths", depth(one), depth(other))
        })
        .or_else(|| {
            let warmup = |run: &Run| format!("{} s", run.warmup_s);
            differ("warm-ups", warmup(one), warmup(other))
        })
        .or_else(|| {
            let ramp = |run: &Run| format!("{} s", run.ramp_down.map_or(0.0, |ramp| ramp.length_s));
            differ("ramp-downs", ramp(one), ramp(other))
        })
        .or_else(|| {
            let classes = |run: &Run| {
                let names = run.classes.iter().map(|class| class.name.as_str());
                format!("[{}]", names.collect::<Vec<_>>().join(", "))
            };
            differ("classes", classes(one), classes(other))
        })
        .or_else(|| {
            let pauses = |run: &Run| {
                let asked = run.pauses.as_ref().map(|pauses| pauses.asked.clone());
                asked.unwrap_or_else(|| "none".to_owned())
            };
            differ("pauses", pauses(one), pauses(other))
        })
}

/// Repeats must have the same settings; generators at the same time may divide the load in any way.
fn repeats(runs: &[Run], spans: &Spans) -> Result<(), MergeError> {
    let sum = |group: &[usize], of: fn(&Run) -> f64| -> f64 {
        group.iter().map(|&run| of(&runs[run])).sum()
    };
    let groups: Vec<&[usize]> = spans.together().collect();
    for pair in groups.windows(2) {
        let differ = |what: &str, of: fn(&Run) -> f64| {
            let (one, other) = (sum(pair[0], of), sum(pair[1], of));
            ((one - other).abs() > SAME * one.abs().max(other.abs()))
                .then(|| format!("one after the other, with {what} of {one} and {other}"))
        };
        let what = differ("rates", |run| run.offered_rate.unwrap_or(0.0))
            .or_else(|| differ("numbers of connections", |run| run.connections.asked as f64));
        if let Some(what) = what {
            let runs = (pair[0][0] + 1, pair[1][0] + 1);
            return Err(MergeError::Unlike { runs, what });
        }
    }
    Ok(())
}
