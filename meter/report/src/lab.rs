//! An experiment with several servers as a report.

use millrace_runs::{Lab, LabFinding, LabLevel, LabServer, MedianRange, Text};
use millrace_stats::{Ratio, Verdict};

use crate::measured::{none, sentence};
use crate::number::{count, micros, percent, rate};
use crate::{
    Banner, Column, Figure, Report, Section, Table, Tone, Unit, conditions, day, lab_charts,
    lab_graphs, lab_levels, lab_limited, lab_limits, lab_time,
};

/// Reasons that are shown in full; the rest is counted.
const REASONS: usize = 12;

/// An experiment as a report of its own.
pub fn lab_report(lab: &Lab) -> Report {
    let mut report = Report::new(lab.title.as_str(), lab.question.as_str());
    report.push(Section::Banner(banner(lab)));
    if let Some(figures) = figures(lab) {
        report.push(Section::Figures(figures));
    }
    if let Some(table) = lab_limits::table(lab) {
        report.push(Section::Table(table));
    }
    let single = lab.levels.len() == 1;
    if !single {
        for table in lab_levels::tables(lab) {
            report.push(Section::Table(table));
        }
    }
    for level in &lab.levels {
        let found = at(lab, *level);
        if found.is_empty() {
            continue;
        }
        if single {
            lab_charts::bars(lab, &found).into_iter().for_each(|chart| {
                report.push(Section::Bars(chart));
            });
        }
        for table in tables(lab, *level, &found) {
            report.push(Section::Table(table));
        }
    }
    if !single {
        for chart in lab_graphs::lines(lab) {
            report.push(Section::Lines(chart));
        }
    }
    for chart in lab_time::lines(lab) {
        report.push(Section::Lines(chart));
    }
    if let Some(table) = lab_limited::table(lab) {
        report.push(Section::Table(table));
    }
    if let Some(table) = cross_check(lab) {
        report.push(Section::Table(table));
    }
    report.push(Section::Table(conditions(lab)));
    report.push(Section::Heading("How each server was run".to_owned()));
    for server in &lab.servers {
        report.push(Section::Folded {
            summary: summary(server),
            text: configuration(server),
        });
    }
    for file in &lab.files {
        report.push(Section::Folded {
            summary: format!("{{work}}/{}", file.path),
            text: file.content.clone(),
        });
    }
    if let Some(Text { path, content }) = &lab.plan {
        report.push(Section::Folded {
            summary: format!("What was asked for: {path}"),
            text: content.clone(),
        });
    }
    report.push(Section::command(&lab.command));
    report
}

/// The figures of every server: two tables for each level, those over several levels, those of the
/// other client, and the limits. For a terminal too.
pub fn lab_tables(lab: &Lab) -> Vec<Table> {
    let mut all = Vec::new();
    for level in &lab.levels {
        let found = at(lab, *level);
        if !found.is_empty() {
            all.extend(tables(lab, *level, &found));
        }
    }
    if lab.levels.len() > 1 {
        all.extend(lab_levels::tables(lab));
    }
    all.extend(cross_check(lab));
    all.extend(lab_limits::table(lab));
    all
}

fn at(lab: &Lab, level: LabLevel) -> Vec<&LabFinding> {
    lab.findings
        .iter()
        .filter(|finding| finding.level == level)
        .collect()
}

pub(crate) fn banner(lab: &Lab) -> Banner {
    let mut reasons: Vec<String> = lab.failure.iter().map(|text| sentence(text)).collect();
    let limits = lab_limits::not_held(lab);
    reasons.extend(limits.clone());
    let shown = lab.reasons.iter().take(REASONS);
    reasons.extend(shown.map(|reason| sentence(reason)));
    if let Some(more) = lab.reasons.len().checked_sub(REASONS + 1) {
        reasons.push(format!("And {} more like these.", more + 1));
    }
    Banner {
        tone: match (lab.verdict, lab.complete) {
            (Verdict::Invalid, _) | (_, false) => Tone::Bad,
            (Verdict::Valid, true) if limits.is_none() => Tone::Good,
            (Verdict::Suspect | Verdict::Valid, true) => Tone::Doubtful,
        },
        title: lab.verdict.to_string(),
        reasons,
    }
}

/// The servers that need least for a request, at the first level.
fn figures(lab: &Lab) -> Option<Vec<Figure>> {
    let mut ranked: Vec<(&LabFinding, f64)> = at(lab, *lab.levels.first()?)
        .into_iter()
        .filter_map(|finding| Some((finding, finding.cpu_us?.median)))
        .collect();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    let figure = |(finding, cpu): &(&LabFinding, f64)| {
        let figure = Figure::new(finding.server.as_str(), micros(*cpu));
        match &finding.cpu_ratio {
            Some(ratio) => figure.with_note(format!(
                "of CPU for a request, {}",
                times_baseline(lab, ratio)
            )),
            None => figure.with_note("of CPU for a request"),
        }
    };
    (!ranked.is_empty()).then(|| ranked.iter().take(4).map(figure).collect())
}

fn times_baseline(lab: &Lab, ratio: &Ratio) -> String {
    format!(
        "{} {}",
        Unit::Times.format(ratio.ratio),
        lab.baseline.as_deref().unwrap_or_default()
    )
}

/// Makes the tables of the answers, and of their cost.
fn tables(lab: &Lab, level: LabLevel, found: &[&LabFinding]) -> [Table; 2] {
    [answers(lab, level, found), costs(lab, level, found)]
}

fn answers(lab: &Lab, level: LabLevel, found: &[&LabFinding]) -> Table {
    let row = |finding: &&LabFinding| {
        let ratio = finding.throughput_ratio.as_ref();
        let ratio = lab
            .baseline
            .as_ref()
            .map(|_| ratio.map_or_else(none, interval));
        let throughput = finding.throughput.map_or_else(none, with_spread);
        let first = [finding.server.clone(), throughput];
        let rest = [
            cell(finding.p50_us, Unit::Micros),
            cell(finding.p99_us, Unit::Micros),
            format!("{}/{}", finding.counted, finding.runs),
            finding.verdict.to_string(),
        ];
        first.into_iter().chain(ratio).chain(rest).collect()
    };
    let ratio = lab
        .baseline
        .as_ref()
        .map(|baseline| Column::number(format!("× {baseline}, 95\u{a0}%")));
    let first = [Column::text(""), Column::number("a second")];
    let rest = [
        Column::number("p50"),
        Column::number("p99"),
        Column::number("runs"),
        Column::text("verdict"),
    ];
    Table {
        caption: format!("Answers, {level}"),
        columns: first.into_iter().chain(ratio).chain(rest).collect(),
        rows: found.iter().map(row).collect(),
        note: "Medians of the runs that are not INVALID; ± is half of the distance between the smallest and the largest."
            .to_owned(),
    }
}

fn costs(lab: &Lab, level: LabLevel, found: &[&LabFinding]) -> Table {
    let has_blocks = found.iter().any(|finding| finding.cpu_itself.is_some());
    let has_idle = found.iter().any(|finding| finding.idle_bytes.is_some());
    let row = |finding: &&LabFinding| {
        let mut row = vec![finding.server.clone(), cell(finding.cpu_us, Unit::Micros)];
        if lab.baseline.is_some() {
            row.push(finding.cpu_ratio.as_ref().map_or_else(none, interval));
        }
        if has_blocks {
            row.push(finding.cpu_itself.as_ref().map_or_else(none, interval));
        }
        if has_idle {
            row.push(cell(finding.idle_bytes, Unit::Bytes));
        }
        row.extend([
            cell(finding.softirq_us, Unit::Micros),
            cell(finding.core_busy, Unit::Percent),
            cell(finding.client_cpu_us, Unit::Micros),
            cell(finding.client_busy, Unit::Percent),
        ]);
        row
    };
    let mut columns = vec![Column::text(""), Column::number("CPU")];
    if let Some(baseline) = &lab.baseline {
        columns.push(Column::number(format!("× {baseline}, 95\u{a0}%")));
    }
    if has_blocks {
        columns.push(Column::number("× itself"));
    }
    if has_idle {
        columns.push(Column::number("an idle connection"));
    }
    columns.extend([
        Column::number("softirq"),
        Column::number("core busy"),
        Column::number("client CPU"),
        Column::number("client busy"),
    ]);
    Table {
        caption: format!("Costs, {level}"),
        columns,
        rows: found.iter().map(row).collect(),
        note: "CPU, softirq and client CPU are for one request. Softirq is counted in ticks of 10 ms on the server’s cores. \
               The interval is Student’s of the log ratios of repeats, and needs three."
            .to_owned(),
    }
}

fn cell(spread: Option<MedianRange>, unit: Unit) -> String {
    spread.map_or_else(none, |spread| unit.format(spread.median))
}

/// This client's throughput beside the other client's.
fn cross_check(lab: &Lab) -> Option<Table> {
    let rows: Vec<Vec<String>> = lab
        .findings
        .iter()
        .filter_map(|finding| {
            let ratio = finding.other_ratio?;
            let place = match lab.levels.len() {
                1 => finding.server.clone(),
                _ => format!("{}, {}", finding.server, finding.level),
            };
            Some(vec![
                place,
                format!("{:.3}", ratio.median),
                format!("{:.3}\u{a0}–\u{a0}{:.3}", ratio.min, ratio.max),
            ])
        })
        .collect();
    // Results from before the other client had a choice of name are wrk's.
    let other = lab.cross_check.as_deref().unwrap_or("wrk");
    (!rows.is_empty()).then(|| Table {
        caption: format!("Throughput over {other}’s"),
        columns: Column::all("|#median|#range"),
        rows,
        note: format!(
            "{other} ran in the same turn with the same connections on the same cores, before or after in alternation."
        ),
    })
}

fn conditions(lab: &Lab) -> Table {
    let row = |name: &str, value: String| [name.to_owned(), value];
    let lengths = lab.runs.iter().filter_map(|run| run.duration_s);
    let longer = lengths
        .max_by(f64::total_cmp)
        .filter(|longest| *longest > 1.01 * lab.duration_s);
    let mut rows = vec![
        row(
            "a run",
            format!(
                "{}{}, after a warm-up of {} on connections of its own; {}, requests in flight on a connection: {}",
                Unit::Seconds.format(lab.duration_s),
                longer.map_or(String::new(), |longer| format!(
                    ", in passes beside {} {}",
                    lab.cross_check.as_deref().unwrap_or("another client"),
                    Unit::Seconds.format(longer)
                )),
                Unit::Seconds.format(lab.warmup_s),
                lab.protocol,
                count(lab.depth as u64)
            ),
        ),
        row(
            "repeats",
            format!(
                "{}, {} runs made",
                count(lab.repeats as u64),
                count(lab.runs.len() as u64)
            ),
        ),
        row("the client’s cores", client_cores(lab)),
    ];
    if !lab.client_habits.is_empty() {
        rows.push(row("the client", lab.client_habits.join("; ")));
    }
    if let Some(day) = day::of(lab.started_unix_s) {
        let took = Unit::Seconds.format(lab.took_s);
        rows.push(row("date", format!("{day} (UTC), {took} in all")));
    }
    rows.extend(conditions::machine(&lab.host));
    if let Some(Text { path, .. }) = &lab.plan {
        let asked = format!("the sessions of {path}; rates are of sessions");
        rows.insert(0, row("asked for", asked));
    }
    conditions::table(rows)
}

fn client_cores(lab: &Lab) -> String {
    let cores = cores(&lab.client_cores);
    match lab.runs.iter().any(|run| run.client_spin) {
        true => format!(
            "{cores}; its threads never slept, and the time in which nothing had happened is in none of its figures"
        ),
        false => cores,
    }
}

fn cores(cores: &[usize]) -> String {
    match cores {
        [] => "any".to_owned(),
        _ => {
            let names: Vec<String> = cores.iter().map(usize::to_string).collect();
            names.join(", ")
        }
    }
}

fn summary(server: &LabServer) -> String {
    let mut summary = server.name.clone();
    for more in [&server.about, &server.version] {
        if !more.is_empty() {
            summary.push_str(&format!(" · {more}"));
        }
    }
    summary
}

/// The command, where it ran, and every file, as one text.
fn configuration(server: &LabServer) -> String {
    let mut text = format!("$ {}\n# cores: {}\n", server.command, cores(&server.cores));
    if !server.with.is_empty() {
        text.push_str(&format!("# with: {}\n", server.with.join(", ")));
    }
    if !server.addresses.is_empty() {
        text.push_str(&format!(
            "# connections go in turn to: {}\n",
            server.addresses.join(", ")
        ));
    }
    for Text { path, content } in &server.files {
        text.push_str(&format!("\n--- {path}\n{}\n", content.trim_end()));
    }
    text
}

fn with_spread(spread: MedianRange) -> String {
    let half = (spread.max - spread.min) / 2.0 / spread.median.max(f64::MIN_POSITIVE);
    format!("{}\u{a0}±\u{a0}{}", rate(spread.median), percent(half))
}

fn interval(ratio: &Ratio) -> String {
    format!(
        "{:.2} ({:.2}\u{a0}–\u{a0}{:.2})",
        ratio.ratio, ratio.low, ratio.high
    )
}
