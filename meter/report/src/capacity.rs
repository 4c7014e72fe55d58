//! A search for the capacity as a report.

use millrace_runs::Capacity;
use millrace_stats::{CapacityTrial, SearchEnd, Stage, Verdict};

use crate::measured::{capital, none};
use crate::number::{count, micros, percent, rate};
use crate::{
    Axis, Banner, Column, Figure, Line, LineChart, Report, Section, Table, Tone, Unit, conditions,
};

/// Points of the fitted curve and of the interval's line.
const POINTS: usize = 40;
/// Ratio of rates up to which trials are drawn as one point.
const NEAR: f64 = 1.02;

/// A search for the capacity as a report of its own.
pub fn capacity_report(capacity: &Capacity) -> Report {
    let mut report = Report::new(
        format!("Capacity for {}", capacity.objective),
        format!(
            "{}, {} connection{}, trials of {}",
            capacity.url,
            count(capacity.connections as u64),
            if capacity.connections == 1 { "" } else { "s" },
            Unit::Seconds.format(capacity.duration_s)
        ),
    );
    report.push(Section::Banner(banner(capacity)));
    report.push(Section::Figures(figures(capacity)));
    if capacity.trials.len() > 1 {
        report.push(Section::Lines(shares(capacity)));
    }
    if capacity.curve.is_some() {
        report.push(Section::Lines(near(capacity)));
    }
    report.push(Section::Table(capacity_table(capacity)));
    let limits = crate::limits::capacity_sections(capacity);
    report.sections.extend(limits);
    report.push(Section::Table(conditions(capacity)));
    report.push(Section::command(&capacity.command));
    report
}

/// Every trial in its order. For a terminal too.
pub fn capacity_table(capacity: &Capacity) -> Table {
    let row = |trial: &CapacityTrial| {
        vec![
            stage(trial.stage).to_owned(),
            rate(trial.rate),
            count(trial.scheduled),
            share(trial.share()),
            trial.p99_us.map_or_else(none, micros),
            match (trial.meets(&capacity.objective), trial.backlog) {
                (true, _) => "yes",
                (false, true) => "no: a backlog grew",
                (false, false) => "no",
            }
            .to_owned(),
            trial.verdict.to_string(),
        ]
    };
    Table {
        caption: "The trials".to_owned(),
        columns: Column::all("for|#rate|#requests|#good in time|#p99|met|verdict"),
        rows: capacity.trials.iter().map(row).collect(),
        note:
            "Beyond its capacity a server is not stationary, so trials there are SUSPECT by nature."
                .to_owned(),
    }
}

fn banner(capacity: &Capacity) -> Banner {
    let bad = capacity.verdict == Verdict::Invalid
        || capacity.found == SearchEnd::BelowFrom
        || capacity.is_at_least == Some(false);
    let mut reasons = vec![format!("The search is {}.", capacity.verdict)];
    if let (Some(least), Some(met)) = (capacity.at_least, capacity.is_at_least) {
        let word = if met { "is" } else { "is not" };
        reasons.push(format!("At least {} {word} reached.", rate(least)));
    }
    reasons.extend(
        capacity
            .reasons
            .iter()
            .map(|reason| format!("{}.", capital(reason))),
    );
    Banner {
        tone: match (bad, capacity.verdict) {
            (true, _) => Tone::Bad,
            (false, Verdict::Valid) => Tone::Good,
            (false, _) => Tone::Doubtful,
        },
        title: capital(&capacity.answer),
        reasons,
    }
}

fn figures(capacity: &Capacity) -> Vec<Figure> {
    let confirmed = match (capacity.met_at_low, capacity.failed_above_high) {
        (Some(true), Some(true)) => "both ends",
        (Some(true), _) => "lower end",
        (_, Some(true)) => "upper end",
        _ => "no",
    };
    let lowest = Figure::new("met at", capacity.low.map_or_else(none, rate));
    match (capacity.rate, capacity.low, capacity.high) {
        (Some(crossing), Some(low), Some(high)) => vec![
            Figure::new("capacity", rate(crossing)).with_note(format!(
                "± {} at 95 %",
                percent((high - low) / 2.0 / crossing)
            )),
            Figure::new("at least", rate(low)).with_note("lower end of the interval"),
            Figure::new("at most", rate(high)).with_note("upper end of the interval"),
            Figure::new("confirmed", confirmed).with_note("by fresh trials"),
        ],
        _ => vec![
            lowest.with_note("the highest rate that met it"),
            Figure::new("trials", count(capacity.trials.len() as u64)),
        ],
    }
}

/// Draws the share of each trial, over all rates.
fn shares(capacity: &Capacity) -> LineChart {
    let (first, last) = ends(capacity.trials.iter().map(|trial| trial.rate));
    LineChart {
        title: "Share of good answers in time, all trials".to_owned(),
        note: "Trials within 2 % of the same rate are taken together; the table has each of them."
            .to_owned(),
        x: Axis::log("rate", Unit::Rate),
        y: Axis::linear("good in time", Unit::Percent),
        lines: vec![
            Line {
                name: "trials".to_owned(),
                points: measured(&capacity.trials, |_| true),
            },
            level("objective", capacity.objective.share, first, last),
        ],
    }
}

/// The crossing, by the share of bad requests: the objective is a line in the middle, not at the
/// upper edge.
fn near(capacity: &Capacity) -> LineChart {
    let is_near = |trial: &CapacityTrial| trial.stage == Stage::Refine;
    let trials = measured(&capacity.trials, is_near);
    let ends_of = [capacity.low, capacity.high].into_iter().flatten();
    let (first, last) = ends(trials.iter().map(|(rate, _)| *rate).chain(ends_of));
    let step = (last - first) / (POINTS - 1) as f64;
    let at = |n: usize| first + step * n as f64;
    let curve = |rate: f64| capacity.curve.map(|curve| 1.0 - curve.share(rate));
    let bad = 1.0 - capacity.objective.share;
    let mut lines = vec![
        Line {
            name: "trials".to_owned(),
            points: trials
                .into_iter()
                // A share of nothing has no place on a logarithmic axis.
                .map(|(rate, share)| {
                    (
                        rate,
                        share.map(|share| 1.0 - share).filter(|bad| *bad > 0.0),
                    )
                })
                .collect(),
        },
        Line {
            name: "fitted".to_owned(),
            points: (0..POINTS).map(|n| (at(n), curve(at(n)))).collect(),
        },
        level("allowed", bad, first, last),
    ];
    if let (Some(low), Some(high)) = (capacity.low, capacity.high) {
        lines.push(level("95 % interval", bad * 1.15, low, high));
    }
    let center = capacity.rate.unwrap_or(first);
    for point in lines.iter_mut().flat_map(|line| &mut line.points) {
        point.0 = point.0 / center - 1.0;
    }
    LineChart {
        title: "Share of bad requests around the crossing".to_owned(),
        note: "The capacity is where the fitted curve crosses what is allowed; the interval, drawn just above that line, \
               comes from how the trials differ. Trials within 2 % are taken together; where none had a bad request there is a gap."
            .to_owned(),
        x: Axis::linear("rate, from the capacity", Unit::Percent),
        y: Axis::log("bad", Unit::Percent),
        lines,
    }
}

/// Rates in order with the share of good answers, trials at nearly the same rate taken together.
fn measured(
    trials: &[CapacityTrial],
    choose: impl Fn(&CapacityTrial) -> bool,
) -> Vec<(f64, Option<f64>)> {
    let mut chosen: Vec<&CapacityTrial> = trials.iter().filter(|trial| choose(trial)).collect();
    chosen.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    // Single trials near the crossing scatter so much that a line through them shows nothing else.
    let mut groups: Vec<Vec<&CapacityTrial>> = Vec::new();
    for trial in chosen {
        match groups.last_mut() {
            Some(group) if trial.rate <= group[0].rate * NEAR => group.push(trial),
            _ => groups.push(vec![trial]),
        }
    }
    groups
        .iter()
        .map(|trials| {
            let sum =
                |of: fn(&CapacityTrial) -> u64| trials.iter().map(|trial| of(trial)).sum::<u64>();
            let scheduled = sum(|trial| trial.scheduled).max(1);
            let good = sum(|trial| trial.good);
            let rates: f64 = trials.iter().map(|trial| trial.rate).sum();
            (
                rates / trials.len() as f64,
                Some(good as f64 / scheduled as f64),
            )
        })
        .collect()
}

fn level(name: &str, y: f64, first: f64, last: f64) -> Line {
    Line {
        name: name.to_owned(),
        points: vec![(first, Some(y)), (last, Some(y))],
    }
}

fn ends(rates: impl Iterator<Item = f64>) -> (f64, f64) {
    rates.fold((f64::INFINITY, 0.0), |(first, last), rate| {
        (f64::min(first, rate), f64::max(last, rate))
    })
}

fn conditions(capacity: &Capacity) -> Table {
    let row = |name: &str, value: String| [name.to_owned(), value];
    let sessions = if capacity.sessions {
        "; every rate is one of sessions"
    } else {
        ""
    };
    let mut rows = vec![
        row(
            "searched",
            format!(
                "from {} to {}{sessions}",
                rate(capacity.from),
                rate(capacity.to)
            ),
        ),
        row(
            "a trial",
            conditions::length(capacity.duration_s, capacity.warmup_s),
        ),
        row(
            "precision",
            format!("± {} asked for", percent(capacity.precision)),
        ),
    ];
    rows.extend(conditions::machine(&capacity.host));
    conditions::table(rows)
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Bracket => "doubling",
        Stage::Bisect => "narrowing",
        Stage::Refine => "the fit",
        Stage::ConfirmLow => "the lower end",
        Stage::ConfirmHigh => "above the upper end",
    }
}

/// A share of which the part that is missing matters.
fn share(share: f64) -> String {
    format!("{:.2}\u{a0}%", share * 100.0)
}
