//! The graphs of a sweep: what happens over its levels.

use millrace_runs::{By, Direction, LevelPower, Run, Sweep, SweepStep};
use millrace_stats::Estimate;

use crate::sweep::{errors, times};
use crate::{Axis, Line, LineChart, Unit};

/// Percentile curves in one graph.
const CURVES: usize = 5;

/// Achieved against demanded rate, or throughput against connections with the fitted curve.
pub(crate) fn throughput(sweep: &Sweep) -> LineChart {
    let mut lines = ways(sweep, "measured", |run| Some(run.good_rate));
    let mut note = "The mean of the repeats at each level.".to_owned();
    if sweep.by == By::Rate {
        // A session is more than one request, and how many a plan's are is only known from the run.
        let demanded = |step: &SweepStep| {
            let requests = step.run.offered_rate.filter(|_| sweep.sessions);
            (step.level, requests.or(Some(step.level)))
        };
        lines.push(Line {
            name: "demanded".to_owned(),
            points: means(sweep.steps.iter().map(demanded).collect()),
        });
    }
    if let Some(usl) = &sweep.usl {
        let curve = |name: &str, of: fn(&Estimate) -> f64| Line {
            name: name.to_owned(),
            points: usl
                .curve
                .iter()
                .map(|point| (point.load, Some(of(&point.throughput))))
                .collect(),
        };
        lines.push(curve("fitted law", |estimate| estimate.value));
        lines.push(curve("its lower end", |estimate| estimate.low));
        lines.push(curve("its upper end", |estimate| estimate.high));
        note.push_str(" The fitted curve is the Universal Scalability Law, with the ends of its 95 % interval.");
    }
    LineChart {
        title: over(sweep.by, "Throughput"),
        note,
        x: level_axis(sweep),
        y: Axis::linear("good answers per second", Unit::Rate),
        lines,
    }
}

pub(crate) fn latency(sweep: &Sweep) -> LineChart {
    let mut lines = ways(sweep, "median", |run| times(run, |latency| latency.p50));
    lines.extend(ways(sweep, "95 %", |run| times(run, |latency| latency.p95)));
    lines.extend(ways(sweep, "99 %", |run| times(run, |latency| latency.p99)));
    LineChart {
        title: over(sweep.by, "Response time"),
        note: match sweep.by {
            By::Rate => "From the scheduled send to the complete answer.",
            By::Connections => "From the send to the complete answer.",
        }
        .to_owned(),
        x: level_axis(sweep),
        y: Axis::log("response time", Unit::Micros),
        lines,
    }
}

/// Throughput over mean response time, with the highest of all as the measure.
pub(crate) fn power(sweep: &Sweep) -> Option<LineChart> {
    let found = sweep.power.as_ref()?;
    let point = |at: &LevelPower| (at.level, Some(at.value / found.value));
    Some(LineChart {
        title: over(sweep.by, "Throughput over mean response time"),
        note: "The way up, as a share of the highest; the geometric mean of the climbs. Right of the highest a percent more \
               throughput costs more than a percent more response time."
            .to_owned(),
        x: level_axis(sweep),
        y: Axis::linear("share of the highest", Unit::Percent),
        lines: vec![Line {
            name: "throughput over mean response time".to_owned(),
            points: found.levels.iter().map(point).collect(),
        }],
    })
}

pub(crate) fn failures(sweep: &Sweep) -> LineChart {
    let share = |run: &Run| Some(errors(run) as f64 / run.accounting.issued.max(1) as f64);
    LineChart {
        title: over(sweep.by, "Errors"),
        note: "Requests without a good answer.".to_owned(),
        x: level_axis(sweep),
        y: Axis::linear("share of all requests", Unit::Percent),
        lines: ways(sweep, "errors", share),
    }
}

/// Percentile curves of some levels of the way up: the lowest, the highest, and some between.
pub(crate) fn percentiles(sweep: &Sweep) -> Option<LineChart> {
    let mut steps: Vec<&SweepStep> = sweep
        .steps
        .iter()
        .filter(|step| step.complete && step.direction == Direction::Up)
        .filter(|step| step.repeat == 1 && step.run.percentiles.len() > 1)
        .collect();
    steps.sort_by(|a, b| a.level.total_cmp(&b.level));
    let last = steps.len().checked_sub(1)?;
    let mut chosen: Vec<usize> = (0..CURVES).map(|n| n * last / (CURVES - 1)).collect();
    chosen.dedup();
    let line = |step: &SweepStep| Line {
        name: crate::sweep::at(sweep, step.level),
        points: step
            .run
            .percentiles
            .iter()
            .map(|point| (point.q, Some(point.us)))
            .collect(),
    };
    Some(LineChart {
        title: "Response time by percentile".to_owned(),
        note:
            "Some levels of the first climb. A curve ends where fewer than ten samples lie beyond."
                .to_owned(),
        x: Axis::percentile("percentile"),
        y: Axis::log("response time", Unit::Micros),
        lines: chosen.into_iter().map(|n| line(steps[n])).collect(),
    })
}

/// CPU time of the client for each request over the levels.
pub(crate) fn client(sweep: &Sweep) -> LineChart {
    LineChart {
        title: "CPU time of the client for each request".to_owned(),
        note: "The measuring client’s own, user and system. The busiest of its threads is in the conditions of each run."
            .to_owned(),
        x: level_axis(sweep),
        y: Axis::linear("CPU time per request", Unit::Micros),
        lines: ways(sweep, "client", |run| run.client.cpu_us_per_request),
    }
}

/// A line over the levels for the way up, and one for the way down if there was one; the mean of
/// the repeats.
pub(crate) fn ways(sweep: &Sweep, name: &str, of: impl Fn(&Run) -> Option<f64>) -> Vec<Line> {
    let goes_down = sweep
        .steps
        .iter()
        .any(|step| step.direction == Direction::Down);
    let mut lines = Vec::new();
    for (direction, way) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        let steps = sweep
            .steps
            .iter()
            .filter(|step| step.complete && step.direction == direction);
        let points = means(steps.map(|step| (step.level, of(&step.run))).collect());
        // A percentile that no step reaches is no line, only a name.
        if points.iter().any(|(_, value)| value.is_some()) {
            lines.push(Line {
                name: if goes_down {
                    format!("{name}, {way}")
                } else {
                    name.to_owned()
                },
                points,
            });
        }
    }
    lines
}

/// One point for each level, in order: the mean of those at it.
pub(crate) fn means(mut values: Vec<(f64, Option<f64>)>) -> Vec<(f64, Option<f64>)> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    values.chunk_by(|a, b| a.0 == b.0).map(mean).collect()
}

/// The mean at one level of those that have a value.
fn mean(same: &[(f64, Option<f64>)]) -> (f64, Option<f64>) {
    let known: Vec<f64> = same.iter().filter_map(|(_, value)| *value).collect();
    let mean = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
    (same[0].0, mean)
}

/// A title with what the graph is drawn against.
pub(crate) fn over(by: By, what: &str) -> String {
    match by {
        By::Rate => format!("{what} against demanded rate"),
        By::Connections => format!("{what} against connections"),
    }
}

pub(crate) fn level_axis(sweep: &Sweep) -> Axis {
    match sweep.by {
        By::Rate if sweep.sessions => Axis::linear("demanded sessions per second", Unit::Rate),
        By::Rate => Axis::linear("demanded requests per second", Unit::Rate),
        By::Connections => Axis::linear("connections", Unit::Count),
    }
}
