//! A sweep as a report and as a table.

use millrace_runs::{By, Direction, Hysteresis, Run, Sweep, SweepStep};
use millrace_stats::{Estimate, Latency, Met, Usl, Verdict};

use crate::measured::{none, sentence};
use crate::number::{count, micros, plain, rate};
use crate::{
    Banner, Column, Figure, Report, Section, Table, Tone, conditions, limits, sweep_charts,
    sweep_curve, sweep_optimum,
};

/// A sweep as a report of its own.
pub fn sweep_report(sweep: &Sweep) -> Report {
    let (kind, levels) = match sweep.by {
        By::Rate if sweep.sessions => ("Open loop", "sessions a second"),
        By::Rate => ("Open loop", "requests a second"),
        By::Connections => ("Closed loop", "connections"),
    };
    let mut report = Report::new(
        "A sweep",
        format!("{kind}, {} {levels} at {}", sweep.ladder, sweep.url),
    );
    report.push(Section::Banner(banner(sweep)));
    report.push(Section::Figures(figures(sweep)));
    if sweep.steps.iter().any(|step| step.complete) {
        report.push(Section::Lines(sweep_charts::throughput(sweep)));
        let curve = sweep_curve::curve_table(sweep).filter(|_| sweep.usl.is_none());
        report.sections.extend(curve.map(Section::Table));
        report.push(Section::Lines(sweep_charts::latency(sweep)));
        report
            .sections
            .extend(sweep_charts::power(sweep).map(Section::Lines));
        if sweep.steps.iter().any(|step| errors(&step.run) > 0) {
            report.push(Section::Lines(sweep_charts::failures(sweep)));
        }
        let curves = sweep_charts::percentiles(sweep);
        report.sections.extend(curves.map(Section::Lines));
        report.push(Section::Lines(sweep_charts::client(sweep)));
    }
    match &sweep.usl {
        Some(usl) => report.push(Section::Table(usl_table(usl))),
        None => report.push(Section::Text(no_fit(sweep) + ".")),
    };
    report.push(Section::Table(sweep_table(sweep)));
    report.sections.extend(limits::sweep_sections(sweep));
    report
        .sections
        .extend(conditions(sweep).map(Section::Table));
    report.push(Section::command(&sweep.command));
    report
}

/// Makes the table of the conditions that all steps have in common. A step may have been ended
/// before its time.
fn conditions(sweep: &Sweep) -> Option<Table> {
    let run = &sweep.steps.first()?.run;
    let lengths = sweep.steps.iter().map(|step| step.run.duration_s);
    let length = conditions::length(lengths.fold(0.0, f64::max), run.warmup_s);
    let mut rows = vec![["a step".to_owned(), length]];
    rows.extend(conditions::machine(&run.host));
    Some(conditions::table(rows))
}

/// The steps as rows, in the order in which they were run.
pub fn sweep_table(sweep: &Sweep) -> Table {
    Table {
        caption: "Steps".to_owned(),
        columns: sweep_columns(sweep.by),
        rows: sweep.steps.iter().map(|step| sweep_row(sweep.by, step)).collect(),
        note: "Times are from the scheduled send in an open loop, else from the actual send. A percentile with fewer \
               than ten samples beyond it is not given."
            .to_owned(),
    }
}

/// The columns of [`sweep_row`].
pub fn sweep_columns(by: By) -> Vec<Column> {
    let level = match by {
        By::Rate => "rate",
        By::Connections => "connections",
    };
    let mut columns = vec![Column::number(level), Column::text("way")];
    if by == By::Rate {
        columns.push(Column::number("offered"));
    }
    let numbers = ["achieved", "errors", "median", "95 %", "99 %"];
    columns.extend(numbers.map(Column::number));
    columns.push(Column::text("verdict"));
    columns
}

/// One step as a row.
pub fn sweep_row(by: By, step: &SweepStep) -> Vec<String> {
    let run = &step.run;
    let time = |of: fn(&Latency) -> Option<f64>| times(run, of).map_or_else(none, micros);
    let way = match step.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let objective = match step.objective {
        Some(Met::Yes) => ", objective met",
        Some(Met::No) => ", objective missed",
        Some(Met::Undecided) => ", objective not decided",
        None => "",
    };
    let stopped = if step.complete { "" } else { ", stopped" };
    let mut row = vec![plain_level(step.level), way.to_owned()];
    if by == By::Rate {
        row.push(run.offered_rate.map_or_else(none, rate));
    }
    row.extend([
        rate(run.achieved_rate),
        count(errors(run)),
        time(|latency| latency.p50),
        time(|latency| latency.p95),
        time(|latency| latency.p99),
        format!("{}{objective}{stopped}", run.verdict),
    ]);
    row
}

/// Lists the findings over all steps, a sentence a line.
pub fn sweep_findings(sweep: &Sweep) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(top) = sweep.top.filter(|top| top.rate > 0.0) {
        lines.push(format!(
            "Maximum throughput: {}, at {}",
            rate(top.rate),
            at(sweep, top.level)
        ));
    }
    if let Some(found) = &sweep.power {
        lines.push(sweep_optimum::power(sweep, found));
    }
    // What reads the same is no difference.
    let differs = |found: &&Hysteresis| rate(found.up) != rate(found.down);
    if let Some(found) = sweep.hysteresis.as_ref().filter(differs) {
        lines.push(format!(
            "Up and down differ most at {}: {} up, {} down",
            at(sweep, found.level),
            rate(found.up),
            rate(found.down)
        ));
    }
    match &sweep.usl {
        Some(usl) => lines.extend(usl_findings(usl)),
        None => lines.push(no_fit(sweep)),
    }
    if let Some(attained) = &sweep.objective {
        lines.extend(grown(sweep));
        lines.extend(sweep_optimum::objective(sweep, attained));
    }
    lines
}

/// The rate from which a growing backlog fails the objective, with any times.
fn grown(sweep: &Sweep) -> Option<String> {
    let grown = sweep.steps.iter().filter_map(|step| {
        let backlog = step.run.backlog.filter(|_| step.complete)?;
        Some((step.level, backlog))
    });
    let (level, backlog) = grown.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let at = at(sweep, level);
    Some(format!("At {at} {backlog}, which fails the objective"))
}

fn usl_findings(usl: &Usl) -> Vec<String> {
    let text = |name: &str, estimate: &Estimate| {
        format!(
            "{name} {} ({} to {})",
            plain(estimate.value),
            plain(estimate.low),
            plain(estimate.high)
        )
    };
    let peak = match (&usl.peak_load, usl.peak_throughput) {
        (Some(load), Some(throughput)) => {
            format!("{}, with {}", text("N*", load), rate(throughput))
        }
        _ => format!("N* {}", usl.peak_note),
    };
    vec![
        format!(
            "Universal Scalability Law: {}, {}, {}",
            text("σ", &usl.sigma),
            text("κ", &usl.kappa),
            text("λ", &usl.lambda)
        ),
        format!("Load of the highest throughput by the law: {peak}"),
    ]
}

fn no_fit(sweep: &Sweep) -> String {
    format!("No Universal Scalability Law: {}", sweep.usl_refused)
}

fn banner(sweep: &Sweep) -> Banner {
    let tone = match sweep.verdict {
        Verdict::Valid => Tone::Good,
        Verdict::Suspect => Tone::Doubtful,
        Verdict::Invalid => Tone::Bad,
    };
    let mut reasons: Vec<String> = sweep
        .reasons
        .iter()
        .map(|reason| sentence(reason))
        .collect();
    if reasons.is_empty() {
        reasons.push("Every step passed every check of its figures.".to_owned());
    }
    Banner {
        tone,
        title: sweep.verdict.to_string(),
        reasons,
    }
}

fn figures(sweep: &Sweep) -> Vec<Figure> {
    let whole = sweep.steps.iter().filter(|step| step.complete).count();
    let mut figures = vec![
        Figure::new(
            "maximum throughput",
            sweep.top.map_or_else(none, |top| rate(top.rate)),
        )
        .with_note(
            sweep
                .top
                .map_or_else(String::new, |top| format!("at {}", at(sweep, top.level))),
        ),
        Figure::new(
            "best balance",
            sweep
                .power
                .as_ref()
                .map_or_else(none, |found| plain_level(found.level)),
        )
        .with_note(
            sweep
                .power
                .as_ref()
                .map_or_else(String::new, |found| sweep_optimum::place(sweep, found)),
        ),
        Figure::new("steps", count(whole as u64)).with_note(format!("of {}", count(sweep.planned))),
    ];
    if let Some(usl) = &sweep.usl {
        figures.push(match &usl.peak_load {
            Some(load) => Figure::new("best load by the law", plain(load.value))
                .with_note(format!("{} to {}", plain(load.low), plain(load.high))),
            None => Figure::new("best load by the law", none()).with_note(usl.peak_note.clone()),
        });
    }
    if let Some(attained) = &sweep.objective {
        figures.extend(sweep_optimum::figures(sweep, attained));
    }
    figures
}

fn usl_table(usl: &Usl) -> Table {
    let row = |name: &str, estimate: &Estimate| {
        let values = [estimate.value, estimate.low, estimate.high].map(plain);
        std::iter::once(name.to_owned()).chain(values).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![
        row("σ, contention", &usl.sigma),
        row("κ, crosstalk", &usl.kappa),
        row("λ, requests per second at a load of 1", &usl.lambda),
    ];
    let mut note = "X(N) = λN / (1 + σ(N−1) + κN(N−1)), fitted to the way up.".to_owned();
    match &usl.peak_load {
        Some(load) => rows.push(row("N*, load of the highest throughput", load)),
        None => note.push_str(&format!(" The highest throughput is {}.", usl.peak_note)),
    }
    Table {
        caption: "The Universal Scalability Law".to_owned(),
        columns: std::iter::once(Column::text(""))
            .chain(["fit", "from", "to (95 %)"].map(Column::number))
            .collect(),
        rows,
        note,
    }
}

/// A level with what it counts.
pub(crate) fn at(sweep: &Sweep, level: f64) -> String {
    let plural = if level == 1.0 { "" } else { "s" };
    match sweep.by {
        By::Rate if sweep.sessions => format!("{} session{plural} a second", plain_level(level)),
        By::Rate => format!("{} request{plural} a second", plain_level(level)),
        By::Connections => format!("{} connection{plural}", plain_level(level)),
    }
}

/// A level as it was written.
pub(crate) fn plain_level(level: f64) -> String {
    if level.fract() == 0.0 {
        count(level as u64)
    } else {
        level.to_string()
    }
}

pub(crate) fn times(run: &Run, of: fn(&Latency) -> Option<f64>) -> Option<f64> {
    let latency = run.latency_us.response.as_ref();
    of(latency.or(run.latency_us.service.as_ref())?)
}

/// Requests without a good answer.
pub(crate) fn errors(run: &Run) -> u64 {
    run.accounting.issued.saturating_sub(run.accounting.good)
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
