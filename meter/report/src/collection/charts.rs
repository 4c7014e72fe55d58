//! Graphs that hold several runs against each other.

use millrace_runs::{Loop, Run};

use crate::sweep_charts::means;
use crate::{Axis, BarChart, Bars, Line, LineChart, Scale, Section, Unit, probed};

/// Lines that can be told apart in one graph.
const MOST: usize = 6;

/// The graphs of two runs or more.
pub(super) fn of_runs(runs: &[(&str, &Run)]) -> Vec<Section> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let mut sections = Vec::new();
    if runs.iter().all(|(_, run)| run.kind == Loop::Open) && levels(runs).len() > 1 {
        sections.push(Section::Lines(throughput(runs)));
        sections.push(Section::Lines(response(runs)));
    } else {
        sections.push(Section::Bars(rates(runs)));
        sections.push(Section::Bars(times(runs)));
    }
    sections.extend(curves(runs).into_iter().map(Section::Lines));
    let named: Vec<(String, &Run)> = runs
        .iter()
        .map(|(name, run)| ((*name).to_owned(), *run))
        .collect();
    sections.extend(probed::cost(&named));
    sections
}

/// The requested rates, the lowest first.
fn levels(runs: &[(&str, &Run)]) -> Vec<f64> {
    let mut levels: Vec<f64> = runs
        .iter()
        .filter_map(|(_, run)| run.offered_rate)
        .collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels
}

fn axis() -> Axis {
    Axis::linear("demanded requests per second", Unit::Rate)
}

/// A line over the demanded rates, the mean of the runs at each.
fn over_rates(runs: &[(&str, &Run)], name: &str, of: impl Fn(&Run) -> Option<f64>) -> Line {
    let point = |(_, run): &(&str, &Run)| Some((run.offered_rate?, of(run)));
    Line {
        name: name.to_owned(),
        points: means(runs.iter().filter_map(point).collect()),
    }
}

fn throughput(runs: &[(&str, &Run)]) -> LineChart {
    LineChart {
        title: "Throughput against demanded rate".to_owned(),
        note: "The mean of the runs at each rate.".to_owned(),
        x: axis(),
        y: Axis::linear("good answers per second", Unit::Rate),
        lines: vec![
            over_rates(runs, "measured", |run| Some(run.good_rate)),
            over_rates(runs, "demanded", |run| run.offered_rate),
        ],
    }
}

fn response(runs: &[(&str, &Run)]) -> LineChart {
    LineChart {
        title: "Response time against demanded rate".to_owned(),
        note: "From the scheduled send to the complete answer; the mean of the runs at each rate."
            .to_owned(),
        x: axis(),
        y: Axis::log("response time", Unit::Micros),
        lines: vec![
            over_rates(runs, "median", |run| run.latency_us.response?.p50),
            over_rates(runs, "95 %", |run| run.latency_us.response?.p95),
            over_rates(runs, "99 %", |run| run.latency_us.response?.p99),
        ],
    }
}

fn names(runs: &[(&str, &Run)]) -> Vec<String> {
    runs.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn rates(runs: &[(&str, &Run)]) -> BarChart {
    BarChart {
        title: "Throughput of each run".to_owned(),
        note: String::new(),
        unit: Unit::Rate,
        scale: Scale::Linear,
        groups: names(runs),
        series: vec![Bars {
            name: "good answers per second".to_owned(),
            values: runs.iter().map(|(_, run)| Some(run.good_rate)).collect(),
        }],
    }
}

fn times(runs: &[(&str, &Run)]) -> BarChart {
    let latency = |run: &Run| run.latency_us.response.or(run.latency_us.service);
    BarChart {
        title: "Response time of each run".to_owned(),
        note: "From the scheduled send in an open loop, else from the actual send.".to_owned(),
        unit: Unit::Micros,
        scale: Scale::Log,
        groups: names(runs),
        series: vec![
            Bars {
                name: "median".to_owned(),
                values: runs.iter().map(|(_, run)| latency(run)?.p50).collect(),
            },
            Bars {
                name: "99th percentile".to_owned(),
                values: runs.iter().map(|(_, run)| latency(run)?.p99).collect(),
            },
        ],
    }
}

/// The percentile curves, as many in a graph as can be told apart.
fn curves(runs: &[(&str, &Run)]) -> Vec<LineChart> {
    let with: Vec<_> = runs
        .iter()
        .filter(|(_, run)| run.percentiles.len() > 1)
        .collect();
    let chart = |(number, some): (usize, &[&(&str, &Run)])| {
        LineChart {
        title: match (number, with.len() > MOST) {
            (_, false) => "Time by percentile".to_owned(),
            (number, true) => format!("Time by percentile, part {}", number + 1),
        },
        note: "Each further nine has the same room. A curve ends where fewer than ten samples lie beyond.".to_owned(),
        x: Axis::percentile("percentile"),
        y: Axis::log("time", Unit::Micros),
        lines: some
            .iter()
            .map(|(name, run)| Line {
                name: (*name).to_owned(),
                points: run.percentiles.iter().map(|point| (point.q, Some(point.us))).collect(),
            })
            .collect(),
    }
    };
    with.chunks(MOST).enumerate().map(chart).collect()
}
