//! The experiment's tables, on a terminal while they grow and as a report.

use std::fmt::Write as _;

use millrace_report::number::{bytes, count, micros, rate, times};
use millrace_report::{BarChart, Bars, Column, Figure, Report, Scale, Section, Table, Unit};
use millrace_runs::{Host, Run};

use crate::measure::{ArticleCost, LoadComparison, REQUESTS, ROUNDS};
use crate::output::say;

/// Letters of a title that have room in a table.
pub(crate) const TITLE: usize = 28;
/// Letters that a time or a rate takes at most.
const VALUE: usize = 8;

/// Prints `table` row by row: first the existing rows, then each row when it is measured. The first
/// column is `room` letters wide.
pub(crate) struct GrowingTable {
    widths: Vec<usize>,
    printed: usize,
}

impl GrowingTable {
    /// Prints the head of `table`.
    pub(crate) fn start(table: &Table, room: usize) -> Self {
        let titles = table.columns.iter().map(|column| column.title.clone());
        let titles: Vec<String> = titles.collect();
        let widths = titles.iter().enumerate();
        let widths = widths
            .map(|(n, title)| match n {
                0 => room,
                _ => title.chars().count().max(VALUE),
            })
            .collect();
        let growing = Self { widths, printed: 0 };
        say(&table.caption);
        growing.line(&titles);
        let rules: Vec<String> = growing.widths.iter().map(|&n| "─".repeat(n)).collect();
        growing.line(&rules);
        growing
    }

    /// Prints the rows of `table` that were not there before.
    pub(crate) fn grow(&mut self, table: &Table) {
        for row in table.rows.iter().skip(self.printed) {
            self.line(row);
        }
        self.printed = table.rows.len();
    }

    fn line(&self, cells: &[String]) {
        let mut line = String::new();
        for (n, (cell, &width)) in cells.iter().zip(&self.widths).enumerate() {
            // Titles come from others' files: a terminal would obey a control character.
            let cell: String = cell.chars().map(plain).collect();
            let _ = match n {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        say(line.trim_end());
    }
}

fn plain(c: char) -> char {
    match c {
        '\u{202f}' | '\u{a0}' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

pub(crate) fn costs_table(costs: &[ArticleCost]) -> Table {
    let row = |cost: &ArticleCost| {
        vec![
            cost.article.title.chars().take(TITLE).collect(),
            bytes(cost.bytes as f64),
            cost.database_us.map_or_else(|| "–".to_owned(), micros),
            micros(cost.uncached_us),
            micros(cost.cached_us),
            times(cost.uncached_us / cost.cached_us),
        ]
    };
    Table {
        caption: "One request at a time".to_owned(),
        columns: std::iter::once(Column::text("article"))
            .chain(
                ["page", "database", "uncached", "cached", "faster"].map(Column::number),
            )
            .collect(),
        rows: costs.iter().map(row).collect(),
        note: "Medians, from the request’s first byte to the answer’s last; “database” is what the server says of its \
               queries."
            .to_owned(),
    }
}

/// How many requests a second.
pub(crate) fn comparisons_table(comparisons: &[LoadComparison]) -> Table {
    let row = |comparison: &LoadComparison| {
        vec![
            comparison.page.to_owned(),
            comparison.connections.to_string(),
            rate(comparison.uncached.achieved_rate),
            rate(comparison.cached.achieved_rate),
            times(ratio(comparison)),
            latency(&comparison.uncached),
            latency(&comparison.cached),
        ]
    };
    let columns = [
        "connections",
        "uncached",
        "cached",
        "more",
        "median uncached",
        "median cached",
    ];
    Table {
        caption: format!("{} requests for one page", count(REQUESTS)),
        columns: std::iter::once(Column::text("page"))
            .chain(columns.map(Column::number))
            .collect(),
        rows: comparisons.iter().map(row).collect(),
        note: format!(
            "The run with the median rate of {ROUNDS}, uncached and cached in turn; keep-alive."
        ),
    }
}

fn ratio(comparison: &LoadComparison) -> f64 {
    comparison.cached.achieved_rate / comparison.uncached.achieved_rate
}

fn latency(run: &Run) -> String {
    let median = run.latency_us.service.and_then(|latency| latency.p50);
    median.map_or_else(|| "–".to_owned(), micros)
}

/// The whole experiment as one HTML file. `about` describes the content of the site, `command` how
/// the demo was started.
pub(crate) fn report(
    costs: &[ArticleCost],
    comparisons: &[LoadComparison],
    about: &str,
    workers: usize,
    command: &str,
) -> String {
    let mut report = Report::new(
        "What a page costs, with the database and without",
        format!("Millpond serving {about}"),
    );
    report
        .push(Section::Figures(figures(costs, comparisons)))
        .push(Section::Heading("One request at a time".to_owned()))
        .push(Section::Table(costs_table(costs)))
        .push(Section::Bars(costs_chart(costs)))
        .push(Section::Heading("Under load".to_owned()))
        .push(Section::Table(comparisons_table(comparisons)))
        .push(Section::Bars(comparisons_chart(comparisons)))
        .push(Section::Heading("How it was measured".to_owned()))
        .push(Section::Text(how(workers)))
        .push(Section::Table(machine()))
        .push(Section::Code {
            caption: "The command".to_owned(),
            text: command.to_owned(),
        });
    report.to_html()
}

fn figures(costs: &[ArticleCost], comparisons: &[LoadComparison]) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some(middle) = costs.get(costs.len() / 2) {
        figures.push(
            Figure::new("an article, uncached", micros(middle.uncached_us))
                .with_note(format!("“{}”", middle.article.title)),
        );
        figures.push(
            Figure::new("the same, cached", micros(middle.cached_us))
                .with_note(times(middle.uncached_us / middle.cached_us) + " faster"),
        );
    }
    if let Some(best) = comparisons
        .iter()
        .max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    {
        figures.push(
            Figure::new("requests a second, cached", rate(best.cached.achieved_rate)).with_note(
                format!(
                    "{}, {} connections: {} the rate of the uncached",
                    best.page,
                    best.connections,
                    times(ratio(best))
                ),
            ),
        );
    }
    figures
}

fn costs_chart(costs: &[ArticleCost]) -> BarChart {
    let bars = |name: &str, of: fn(&ArticleCost) -> Option<f64>| Bars {
        name: name.to_owned(),
        values: costs.iter().map(of).collect(),
    };
    BarChart {
        title: "Time for one request".to_owned(),
        note: "Shorter is better; the axis is logarithmic.".to_owned(),
        unit: Unit::Micros,
        scale: Scale::Log,
        groups: costs
            .iter()
            .map(|cost| cost.article.title.chars().take(TITLE).collect())
            .collect(),
        series: vec![
            // The same order as in the other chart, so that a colour means the same in both.
            bars("uncached", |cost| Some(cost.uncached_us)),
            bars("cached", |cost| Some(cost.cached_us)),
            bars("database", |cost| cost.database_us),
        ],
    }
}

fn comparisons_chart(comparisons: &[LoadComparison]) -> BarChart {
    let bars = |name: &str, of: fn(&LoadComparison) -> f64| Bars {
        name: name.to_owned(),
        values: comparisons
            .iter()
            .map(|comparison| Some(of(comparison)))
            .collect(),
    };
    let group = |comparison: &LoadComparison| {
        let plural = if comparison.connections == 1 { "" } else { "s" };
        format!(
            "{}, {} connection{plural}",
            comparison.page, comparison.connections
        )
    };
    BarChart {
        title: "Requests a second".to_owned(),
        note: "Longer is better; the axis is logarithmic.".to_owned(),
        unit: Unit::Rate,
        scale: Scale::Log,
        groups: comparisons.iter().map(group).collect(),
        series: vec![
            bars("uncached", |comparison| comparison.uncached.achieved_rate),
            bars("cached", |comparison| comparison.cached.achieved_rate),
        ],
    }
}

fn how(workers: usize) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    format!(
        "The same site was served twice on one database, by two processes of `millpond serve`: with the cache, and with \
         `--no-cache`, with {workers} worker thread{plural} each. The client of the first table sent one request after the \
         other; the load of the second came from `millrace load` on one thread. All of it went over loopback, and nothing was \
         pinned to a core. Client and servers share the machine, so the rates are lower than a server alone would reach, and \
         the cached ones lose the most by it. A closed loop: each connection sends its next request when it has the last \
         answer. The compared pages differ in nothing else: same queries, same templates, same bytes."
    )
}

fn machine() -> Table {
    let host = Host::here();
    let cpu = if host.cpu.is_empty() {
        host.machine.clone()
    } else {
        host.cpu
    };
    Table {
        caption: "The machine".to_owned(),
        columns: vec![Column::text(""), Column::text("")],
        rows: vec![
            vec!["processor".to_owned(), cpu],
            vec!["cores for this process".to_owned(), host.cores.to_string()],
            vec![
                "system".to_owned(),
                format!("{}, {}", host.kernel, host.machine),
            ],
        ],
        note: String::new(),
    }
}
