//! The limits of an experiment: what was demanded, what was found, and whether it holds.

use millrace_runs::{Lab, LabBound, LabInterval, LabLimit, LabMetric, LabOutcome};

use crate::{Column, Table};

/// A sentence where a limit does not hold.
pub(crate) fn not_held(lab: &Lab) -> Option<String> {
    let holding = lab
        .limits
        .iter()
        .filter(|limit| limit.outcome == LabOutcome::Holds)
        .count();
    let all = lab.limits.len();
    (holding < all).then(|| format!("Of {all} limits {holding} are shown to hold."))
}

/// A row for each limit at each level; `None` if the experiment has no limits.
pub(crate) fn table(lab: &Lab) -> Option<Table> {
    let rows: Vec<Vec<String>> = lab.limits.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Limits".to_owned(),
        columns: Column::all("demanded|at|#found, 95\u{a0}%|#against itself|"),
        rows,
        note: "A limit holds where the whole interval is within it. Each block gives one value; the other against itself is \
               its outer runs of each block over the inner ones. Where that reaches further than the limit and than what was \
               found, nothing is decided."
            .to_owned(),
    })
}

fn row(limit: &LabLimit) -> Vec<String> {
    let cell = |found: Option<LabInterval>| {
        found.map_or_else(|| "–".to_owned(), |found| interval(limit.bound, &found))
    };
    vec![
        demand(limit),
        limit.level.to_string(),
        cell(limit.found),
        cell(limit.itself),
        outcome(limit.outcome).to_owned(),
    ]
}

/// "CPU of millpond ≤ 0.67 × nginx", "client CPU at nginx ≤ 1.10 × wrk".
fn demand(limit: &LabLimit) -> String {
    let figure = match limit.metric {
        LabMetric::Cpu => "CPU",
        LabMetric::Throughput => "throughput",
        LabMetric::P50 => "median",
        LabMetric::P99 => "p99",
        LabMetric::Memory => "memory of an idle connection",
        LabMetric::ClientCpu => "client CPU",
        LabMetric::ClientThroughput => "client throughput",
    };
    let (server, other) = (&limit.server, &limit.against);
    let of = match limit.metric.is_of_client() {
        true => "at",
        false => "of",
    };
    let others = match limit.best_of.len() {
        0 | 1 => other.clone(),
        all => format!("{other}, the hardest of {all}"),
    };
    match limit.bound {
        LabBound::AtMost(bound) => format!("{figure} {of} {server} ≤ {bound:.2}\u{a0}× {others}"),
        LabBound::AtLeast(bound) => format!("{figure} {of} {server} ≥ {bound:.2}\u{a0}× {others}"),
        LabBound::MoreAtMostUs(bound) => {
            format!("{figure} {of} {server} ≤ {others} + {bound:.2}\u{a0}µs")
        }
    }
}

fn interval(bound: LabBound, found: &LabInterval) -> String {
    let LabInterval {
        mean, low, high, ..
    } = found;
    match bound {
        LabBound::AtMost(_) | LabBound::AtLeast(_) => {
            format!("{mean:.3} ({low:.3}\u{a0}–\u{a0}{high:.3})")
        }
        LabBound::MoreAtMostUs(_) => {
            format!("{mean:+.3}\u{a0}µs ({low:+.3} to {high:+.3})").replace('-', "−")
        }
    }
}

fn outcome(outcome: LabOutcome) -> &'static str {
    match outcome {
        LabOutcome::Holds => "holds",
        LabOutcome::NotShown => "not shown to hold",
        LabOutcome::Missed => "MISSED",
        LabOutcome::NotDecided => "not decided",
    }
}

#[cfg(test)]
mod tests {
    use millrace_runs::LabLevel;

    use super::*;

    #[test]
    fn a_limit_is_shown_with_the_finding() {
        let found = LabInterval {
            mean: 0.6,
            low: 0.58,
            high: -0.625,
            blocks: 10,
        };
        let limit = LabLimit {
            server: "it".into(),
            against: "peer".into(),
            best_of: vec!["peer".into(), "other".into()],
            metric: LabMetric::Cpu,
            level: LabLevel {
                connections: 32,
                ..LabLevel::default()
            },
            bound: LabBound::AtMost(0.67),
            found: Some(found),
            itself: None,
            outcome: LabOutcome::Holds,
        };
        let plain = |limit: &LabLimit| row(limit).join(" | ").replace('\u{a0}', " ");
        assert_eq!(
            plain(&limit),
            "CPU of it ≤ 0.67 × peer, the hardest of 2 | 32 connections | 0.600 (0.580 – -0.625) | – | holds"
        );
        let client = LabLimit {
            metric: LabMetric::ClientCpu,
            against: "wrk".into(),
            best_of: Vec::new(),
            bound: LabBound::AtMost(1.1),
            ..limit.clone()
        };
        assert!(plain(&client).starts_with("client CPU at it ≤ 1.10 × wrk | 32"));
        let more = LabLimit {
            bound: LabBound::MoreAtMostUs(0.5),
            best_of: Vec::new(),
            outcome: LabOutcome::NotShown,
            ..limit
        };
        assert_eq!(
            plain(&more),
            "CPU of it ≤ peer + 0.50 µs | 32 connections | +0.600 µs (+0.580 to −0.625) | – | not shown to hold"
        );
    }
}
