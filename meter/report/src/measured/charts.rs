//! The graphs of a run.

use millrace_runs::{Loop, Run};
use millrace_stats::Point;

use super::complete;
use base_chart::COLOURS;

use crate::{Axis, Line, LineChart, Unit};

/// Names the time that the curves of a run are of.
fn name_of_time(run: &Run) -> &'static str {
    match run.kind {
        Loop::Closed => "Service time",
        Loop::Open => "Response time",
    }
}

pub(super) fn percentile_curve(run: &Run) -> LineChart {
    LineChart {
        title: format!("{} by percentile", name_of_time(run)),
        note: "Each further nine has the same room. The curve ends where fewer than ten samples lie beyond.".to_owned(),
        x: Axis::percentile("percentile"),
        y: Axis::log("time", Unit::Micros),
        lines: vec![Line {
            name: "time".to_owned(),
            points: run.percentiles.iter().map(|point| (point.q, Some(point.us))).collect(),
        }],
    }
}

pub(super) fn throughput(run: &Run, points: &[Point]) -> LineChart {
    let line = |name: &str, of: fn(&Point) -> u64| Line {
        name: name.to_owned(),
        points: points
            .iter()
            .map(|point| (point.at_s, Some(of(point) as f64 / run.series.interval_s)))
            .collect(),
    };
    let mut lines = vec![line("finished", |point| point.requests)];
    if run.errors.total() > 0 {
        lines.push(line("errors", |point| point.errors));
    }
    LineChart {
        title: "Requests over time".to_owned(),
        note: format!(
            "In intervals of {}.",
            Unit::Seconds.format(run.series.interval_s)
        ),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::linear("requests per second", Unit::Rate),
        lines,
    }
}

pub(super) fn latency_over_time(run: &Run, points: &[Point]) -> LineChart {
    let line = |name: &str, of: fn(&Point) -> Option<f64>| Line {
        name: name.to_owned(),
        points: points.iter().map(|point| (point.at_s, of(point))).collect(),
    };
    let has_service = points.iter().any(|point| point.service_p50_us.is_some());
    let note = match has_service {
        true => {
            "Service times count from the actual send: where response times leave them, requests waited to be sent."
        }
        false => "",
    };
    LineChart {
        title: format!("{} over time", name_of_time(run)),
        note: note.to_owned(),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::log("time", Unit::Micros),
        // Short intervals of a slow run have too few samples for a percentile.
        lines: [
            line("median", |point| point.p50_us),
            line("99th percentile", |point| point.p99_us),
            line("longest", |point| point.max_us),
            line("median service time", |point| point.service_p50_us),
            line("99th percentile of service", |point| point.service_p99_us),
        ]
        .into_iter()
        .filter(|line| line.points.iter().any(|(_, time)| time.is_some()))
        .collect(),
    }
}

/// The medians of each class, or of those with most answers where there are more than colours.
pub(super) fn classes_over_time(run: &Run) -> Option<LineChart> {
    let mut classes: Vec<_> = run.classes.iter().collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.good));
    let lines = classes.into_iter().map(|class| Line {
        name: class.name.clone(),
        points: complete(&class.series, run)
            .iter()
            .map(|point| (point.at_s + class.series.interval_s / 2.0, point.p50_us))
            .collect(),
    });
    let has_medians = |line: &Line| {
        line.points
            .iter()
            .filter(|(_, time)| time.is_some())
            .count()
            > 1
    };
    let mut lines: Vec<Line> = lines.filter(has_medians).collect();
    lines.truncate(COLOURS);
    let longest = run.classes.iter().map(|class| class.series.interval_s);
    let longest = Unit::Seconds.format(longest.fold(0.0, f64::max));
    let left_out = match (run.classes.len(), lines.len()) {
        (all, drawn) if all == drawn => String::new(),
        (all, drawn) => format!(
            " Drawn: {drawn} of {all} classes, those with most good answers that have medians."
        ),
    };
    (!lines.is_empty()).then(|| LineChart {
        title: format!(
            "Median {} of each class over time",
            name_of_time(run).to_lowercase()
        ),
        note: format!("In the middle of intervals of up to {longest}.{left_out}"),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::log("time", Unit::Micros),
        lines,
    })
}
