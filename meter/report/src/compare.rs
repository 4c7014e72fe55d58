//! A comparison of two servers as a report.

use millrace_runs::Comparison;
use millrace_stats::{Block, Decision, Effect, Metric, Ratio, Verdict};

use crate::measured::{capital, none, sentence};
use crate::number::{count, micros, percent, rate};
use crate::{
    Axis, Banner, Column, Figure, Line, LineChart, Report, Section, Table, Tone, Unit, conditions,
};

/// A comparison as a report of its own.
pub fn compare_report(comparison: &Comparison) -> Report {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let mut report = Report::new(format!("{b} beside {a}"), how(comparison));
    report.push(Section::Banner(banner(comparison)));
    if let Some(effect) = comparison.decisive() {
        report.push(Section::Figures(figures(comparison, effect)));
    }
    report.push(Section::Table(compare_table(comparison)));
    // The metric that decides comes first.
    let mut effects: Vec<&Effect> = comparison.effects.iter().collect();
    effects.sort_by_key(|effect| effect.metric != comparison.metric);
    for effect in effects {
        let chart = blocks(comparison, effect.metric);
        let values = chart.lines.iter().flat_map(|line| &line.points);
        if values.filter(|(_, value)| value.is_some()).count() > 1 {
            report.push(Section::Lines(chart));
        }
    }
    report.push(Section::Table(opinions(comparison)));
    report.push(Section::Table(conditions(comparison)));
    report.push(Section::command(&comparison.command));
    report
}

/// The result of each metric: the spread of A against itself first, then B against A. For a
/// terminal too.
pub fn compare_table(comparison: &Comparison) -> Table {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let row = |effect: &Effect| {
        let value =
            |value: Option<f64>| value.map_or_else(none, |value| written(effect.metric, value));
        vec![
            name(comparison, effect.metric),
            effect.baseline.as_ref().map_or_else(none, interval),
            value(effect.a),
            value(effect.b),
            effect.ratio.map_or_else(none, |ratio| factor(ratio.ratio)),
            effect.ratio.as_ref().map_or_else(none, interval),
            effect
                .detectable
                .map_or_else(none, |share| format!("±\u{a0}{}", percent(share))),
        ]
    };
    Table {
        caption: "What was found".to_owned(),
        columns: vec![
            Column::text(""),
            Column::number("A/A, 95\u{a0}%"),
            Column::number(a.as_str()),
            Column::number(b.as_str()),
            Column::number("B/A"),
            Column::number("B/A, 95\u{a0}%"),
            Column::number("detectable"),
        ],
        rows: comparison.effects.iter().map(row).collect(),
        note: format!(
            "A/A: {a} against itself. B/A: {b} against {a}. → decides. Detectable: found four times out of five."
        ),
    }
}

/// How the runs were made, in one phrase.
fn how(comparison: &Comparison) -> String {
    let kind = comparison
        .offered_rate
        .map_or("closed loop".to_owned(), |offered| {
            let what = if comparison.sessions { " sessions" } else { "" };
            format!("open loop of {}{what}", rate(offered))
        });
    format!(
        "{} blocks of four runs of {}, {kind}, {} connection{}",
        blocks_asked(comparison),
        Unit::Seconds.format(comparison.duration_s),
        count(comparison.connections as u64),
        if comparison.connections == 1 { "" } else { "s" }
    )
}

/// "10", or "60 to 600" where as many are made as it takes.
fn blocks_asked(comparison: &Comparison) -> String {
    let fewest = count(comparison.blocks_asked as u64);
    match comparison.detect {
        Some(detect) => format!("{fewest} to {}", count(detect.most_blocks as u64)),
        None => fewest,
    }
}

fn banner(comparison: &Comparison) -> Banner {
    let bad = comparison.verdict == Verdict::Invalid
        || comparison.within_limit == Some(false)
        || (comparison.limit.is_none() && comparison.decision == Decision::Worse);
    let doubtful =
        comparison.verdict == Verdict::Suspect || comparison.decision == Decision::Undecided;
    let mut reasons = vec![format!("The runs are {}.", comparison.verdict)];
    let told = comparison.reasons.iter().chain(&comparison.notes);
    reasons.extend(told.map(|reason| sentence(reason)));
    Banner {
        tone: match (bad, doubtful) {
            (true, _) => Tone::Bad,
            (false, true) => Tone::Doubtful,
            (false, false) => Tone::Good,
        },
        // The names of servers keep their letters.
        title: if comparison.answer.starts_with("no") || comparison.answer.starts_with("the ") {
            capital(&comparison.answer)
        } else {
            comparison.answer.clone()
        },
        reasons,
    }
}

fn figures(comparison: &Comparison, effect: &Effect) -> Vec<Figure> {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let figure = |label: String, ratio: &Option<Ratio>| {
        let figure = Figure::new(label, ratio.map_or_else(none, |ratio| factor(ratio.ratio)));
        match ratio {
            Some(ratio) => figure.with_note(format!("95 %: {}", interval(ratio))),
            None => figure.with_note("too few blocks"),
        }
    };
    let metric = effect.metric.name();
    vec![
        figure(format!("{metric}, {a} / {a}"), &effect.baseline),
        figure(format!("{metric}, {b} / {a}"), &effect.ratio),
        Figure::new(
            "detectable",
            effect
                .detectable
                .map_or_else(none, |share| format!("±\u{a0}{}", percent(share))),
        )
        .with_note("found four times out of five"),
    ]
}

/// The change in each block, A against itself beside B against A.
fn blocks(comparison: &Comparison, metric: Metric) -> LineChart {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
    let line = |name: String, blocks: &[Block]| Line {
        name,
        points: blocks
            .iter()
            .enumerate()
            .filter(|(_, block)| block.is_complete())
            .map(|(n, block)| ((n + 1) as f64, block.ratio(metric).map(|ratio| ratio - 1.0)))
            .collect(),
    };
    LineChart {
        title: format!("Change of {} in each block", in_words(metric)),
        note: "The unevenness of the first line is what the machine does by itself. A difference shows where the second \
               line keeps away from zero by more than that."
            .to_owned(),
        x: Axis::linear("block", Unit::Count),
        y: Axis::linear("change", Unit::Percent),
        lines: vec![
            line(format!("{a} against itself"), &comparison.baseline),
            line(format!("{b} against {a}"), &comparison.blocks),
        ],
    }
}

fn in_words(metric: Metric) -> String {
    match metric {
        Metric::Cpu | Metric::Throughput => metric.name().to_owned(),
        Metric::P50 | Metric::P99 => format!("the {}", metric.name()),
    }
}

/// The spread of single blocks, and the bootstrap beside the interval that decides.
fn opinions(comparison: &Comparison) -> Table {
    let row = |effect: &Effect, of: &str, ratio: Option<Ratio>| {
        let ratio = ratio?;
        Some(vec![
            effect.metric.name().to_owned(),
            of.to_owned(),
            count(ratio.blocks as u64),
            percent(ratio.spread),
            interval(&ratio),
            ratio
                .bootstrap
                .map_or_else(none, |(low, high)| bounds(low, high)),
        ])
    };
    Table {
        caption: "How the interval comes about".to_owned(),
        columns: Column::all("||#blocks|#spread of a block|#Student, 95 %|#bootstrap, 95 %"),
        rows: comparison
            .effects
            .iter()
            .flat_map(|effect| {
                [
                    row(effect, "A/A", effect.baseline),
                    row(effect, "B/A", effect.ratio),
                ]
            })
            .flatten()
            .collect(),
        note: "Student’s interval of the log ratios decides; the studentised bootstrap is a second opinion. One metric decides; the others are not corrected for looking at several.".to_owned(),
    }
}

fn conditions(comparison: &Comparison) -> Table {
    let subject = |subject: &millrace_stats::Subject| {
        let pids: Vec<String> = subject.pids.iter().map(u32::to_string).collect();
        match pids.as_slice() {
            [] => subject.url.clone(),
            _ => format!("{}, process {}", subject.url, pids.join(", ")),
        }
    };
    let whole = |blocks: &[Block]| blocks.iter().filter(|block| block.is_complete()).count();
    let mut rows = vec![
        [comparison.a.name.clone(), subject(&comparison.a)],
        [comparison.b.name.clone(), subject(&comparison.b)],
        [
            "blocks".to_owned(),
            format!(
                "{} of {} against itself, then {} of {} of the two, each in the order A B B A",
                whole(&comparison.baseline),
                blocks_asked(comparison),
                whole(&comparison.blocks),
                blocks_asked(comparison)
            ),
        ],
        [
            "a run".to_owned(),
            conditions::length(comparison.duration_s, comparison.warmup_s)
                + " on connections of its own",
        ],
    ];
    rows.extend(conditions::machine(&comparison.host));
    if let Some(detect) = comparison.detect {
        let asked = format!(
            "a difference of {}, four times out of five",
            percent(detect.share)
        );
        rows.insert(3, ["to be seen".to_owned(), asked]);
    }
    conditions::table(rows)
}

fn name(comparison: &Comparison, metric: Metric) -> String {
    let mark = if metric == comparison.metric {
        "→\u{a0}"
    } else {
        ""
    };
    format!("{mark}{}", metric.name())
}

fn written(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Throughput => rate(value),
        Metric::Cpu | Metric::P50 | Metric::P99 => micros(value),
    }
}

fn interval(ratio: &Ratio) -> String {
    bounds(ratio.low, ratio.high)
}

fn bounds(low: f64, high: f64) -> String {
    format!("{}\u{a0}–\u{a0}{}", factor(low), factor(high))
}

/// A ratio; near 1 the third decimal matters.
fn factor(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        crate::number::plain(ratio)
    }
}
