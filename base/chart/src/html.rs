//! A report as one HTML file.

use std::fmt::Write as _;

use crate::number::none;
use crate::{
    Align, Axis, Banner, BarChart, CHART_STYLE, COLOURS, Column, Drawing, Escaped, Figure,
    LineChart, PALETTE, PageLink, Report, Scale, Section, Table, Tone, Width, bars, lines,
    prose::prose, stacks,
};

/// The style sheet of a report, without those of the charts.
const STYLE: &str = include_str!("style.css");

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let title = Escaped(&report.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{PALETTE}{STYLE}{CHART_STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>{title}</h1>\n"
    );
    if !report.subtitle.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", Escaped(&report.subtitle));
    }
    html.push_str("</header>\n");
    for section in &report.sections {
        match section {
            Section::Heading(text) => {
                let _ = writeln!(html, "<h2>{}</h2>", Escaped(text));
            }
            Section::Text(text) => {
                let _ = writeln!(html, "<p>{}</p>", Escaped(text));
            }
            Section::Prose(text) => {
                let _ = writeln!(html, "<div class=\"prose\">\n{}</div>", prose(text));
            }
            Section::Links(links) => write_links(&mut html, links),
            Section::Code { caption, text } => {
                let (caption, text) = (Escaped(caption), words(text));
                let _ = writeln!(
                    html,
                    "<figure><figcaption>{caption}</figcaption><pre>{text}</pre></figure>"
                );
            }
            Section::Folded { summary, text } => {
                let (summary, text) = (Escaped(summary), Escaped(text));
                let _ = writeln!(
                    html,
                    "<details><summary>{summary}</summary>\n<pre>{text}</pre></details>"
                );
            }
            Section::Banner(banner) => write_banner(&mut html, banner),
            Section::Figures(figures) => write_figures(&mut html, figures),
            Section::Table(table) => write_table_figure(&mut html, table),
            Section::Bars(chart) => write_bars(&mut html, chart, bars),
            Section::Stacks(chart) => write_bars(&mut html, chart, stacks),
            Section::Lines(chart) => write_lines(&mut html, chart),
        }
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

/// A command with each of its words in one piece; a text of several lines as it is.
fn words(text: &str) -> String {
    if text.contains('\n') {
        return Escaped(text).to_string();
    }
    let word = |word| format!("<span>{}</span>", Escaped(word));
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn write_banner(html: &mut String, banner: &Banner) {
    let class = tone_class(banner.tone);
    let _ = writeln!(
        html,
        "<div class=\"banner {class}\"><strong>{}</strong>",
        Escaped(&banner.title)
    );
    if !banner.reasons.is_empty() {
        html.push_str("<ul>\n");
        for reason in &banner.reasons {
            let _ = writeln!(html, "<li>{}</li>", Escaped(reason));
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</div>\n");
}

fn write_links(html: &mut String, links: &[PageLink]) {
    html.push_str("<ul class=\"links\">\n");
    for link in links {
        let (href, label) = (Escaped(&link.href), Escaped(&link.label));
        let _ = write!(html, "<li><a href=\"{href}\">{label}</a>");
        if !link.verdict.is_empty() {
            let (class, verdict) = (tone_class(link.tone), Escaped(&link.verdict));
            let _ = write!(html, " <strong class=\"{class}\">{verdict}</strong>");
        }
        if !link.note.is_empty() {
            let _ = write!(html, "<p>{}</p>", Escaped(&link.note));
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ul>\n");
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Doubtful => "doubtful",
        Tone::Bad => "bad",
    }
}

fn write_figures(html: &mut String, figures: &[Figure]) {
    html.push_str("<dl class=\"figures\">\n");
    for figure in figures {
        let (label, value) = (Escaped(&figure.label), Escaped(&figure.value));
        let _ = write!(
            html,
            "<div><dt>{label}</dt><dd class=\"value\">{value}</dd>"
        );
        if !figure.note.is_empty() {
            let _ = write!(html, "<dd class=\"note\">{}</dd>", Escaped(&figure.note));
        }
        html.push_str("</div>\n");
    }
    html.push_str("</dl>\n");
}

fn write_table_figure(html: &mut String, table: &Table) {
    html.push_str("<figure>\n");
    write_table(html, table);
    write_note(html, &table.note);
    html.push_str("</figure>\n");
}

/// Letters from which a cell is a sentence: a column on a phone is too narrow for it.
const SENTENCE: usize = 48;
/// Letters of a cell with words, and of a whole row, from which the row is too wide for a phone.
const WIDE: (usize, usize) = (30, 80);

/// True if the cells of a row stand below each other on a phone.
fn is_stacked(table: &Table) -> bool {
    let widest = |n: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(n));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(widest).collect();
    let columns = table.columns.iter().zip(&widths);
    let words = columns.filter(|(column, _)| column.align == Align::Left);
    let words = words.map(|(_, width)| *width).max().unwrap_or(0);
    words > SENTENCE || (words > WIDE.0 && widths.iter().sum::<usize>() > WIDE.1)
}

fn write_table(html: &mut String, table: &Table) {
    let caption = Escaped(&table.caption);
    let is_stacked = is_stacked(table);
    let kind = if is_stacked { " class=\"stacked\"" } else { "" };
    let _ = writeln!(
        html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table{kind}>"
    );
    if !table.caption.is_empty() {
        let _ = writeln!(html, "<caption>{caption}</caption>");
    }
    // A list of names and values needs no head.
    if table.columns.iter().any(|column| !column.title.is_empty()) {
        html.push_str("<thead><tr>");
        for column in &table.columns {
            let _ = write!(
                html,
                "<th scope=\"col\"{}>{}</th>",
                class(column),
                Escaped(&column.title)
            );
        }
        html.push_str("</tr></thead>\n");
    }
    html.push_str("<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (n, column) in table.columns.iter().enumerate() {
            let text = row.get(n).map_or("", String::as_str);
            let (cell, class) = (Escaped(text), class(column));
            let _ = match n {
                0 => write!(html, "<th scope=\"row\"{class}>{cell}</th>"),
                // Where cells stand below each other there is no head.
                _ if is_stacked && text == none() => {
                    write!(html, "<td{class} data-none>{cell}</td>")
                }
                _ if is_stacked && column.align == Align::Right => {
                    let head = Escaped(&column.title);
                    write!(html, "<td{class} data-head=\"{head}\">{cell}</td>")
                }
                _ => write!(html, "<td{class}>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n</div>\n");
}

fn class(column: &Column) -> &'static str {
    match column.align {
        Align::Left => "",
        Align::Right => " class=\"r\"",
    }
}

fn write_note(html: &mut String, note: &str) {
    if !note.is_empty() {
        let _ = writeln!(html, "<p class=\"small\">{}</p>", Escaped(note));
    }
}

fn write_bars(html: &mut String, chart: &BarChart, draw: fn(&BarChart, Width) -> Drawing) {
    let names = chart.series.iter().map(|series| series.name.as_str());
    let columns = std::iter::once(Column::text(""))
        .chain(names.clone().map(Column::number))
        .collect();
    let row = |(group, name): (usize, &String)| {
        let values = chart
            .series
            .iter()
            .map(|series| series.values.get(group).copied().flatten());
        let cells = values.map(|value| value.map_or_else(none, |value| chart.unit.format(value)));
        std::iter::once(name.clone()).chain(cells).collect()
    };
    let rows = chart.groups.iter().enumerate().map(row).collect();
    let table = Table {
        caption: chart.title.clone(),
        columns,
        rows,
        note: String::new(),
    };
    let legend: Vec<(&str, String)> = names
        .enumerate()
        .map(|(n, name)| (name, format!("<i class=\"c{}\"></i>", n % COLOURS)))
        .collect();
    write_chart(html, &chart.title, &chart.note, &legend, &table, |width| {
        draw(chart, width)
    });
}

fn write_lines(html: &mut String, chart: &LineChart) {
    let legend: Vec<(&str, String)> = chart
        .lines
        .iter()
        .enumerate()
        .map(|(n, line)| (line.name.as_str(), stroke(n % COLOURS)))
        .collect();
    write_chart(
        html,
        &chart.title,
        &chart.note,
        &legend,
        &line_table(chart),
        |width| lines(chart, width),
    );
}

/// A short piece of a line, with its colour and its dashes.
fn stroke(colour: usize) -> String {
    format!(
        "<svg viewBox=\"0 0 26 12\" aria-hidden=\"true\"><path class=\"line c{colour}\" d=\"M0 6H26\"/></svg>"
    )
}

/// A figure with both drawings and the same values as a table.
fn write_chart(
    html: &mut String,
    title: &str,
    note: &str,
    legend: &[(&str, String)],
    table: &Table,
    draw: impl Fn(Width) -> Drawing,
) {
    let _ = writeln!(
        html,
        "<figure>\n<figcaption>{}</figcaption>",
        Escaped(title)
    );
    // A single series is named by the title.
    if legend.len() > 1 {
        html.push_str("<ul class=\"legend\">\n");
        for (name, swatch) in legend {
            let _ = writeln!(html, "<li>{swatch}{}</li>", Escaped(name));
        }
        html.push_str("</ul>\n");
    }
    Width::BOTH
        .iter()
        .for_each(|&width| html.push_str(&draw(width).inline(width.class(), title)));
    write_note(html, note);
    html.push_str("<details><summary>The figures as a table</summary>\n");
    write_table(html, table);
    html.push_str("</details>\n</figure>\n");
}

/// The values of all lines, a row for each x.
fn line_table(chart: &LineChart) -> Table {
    let mut xs: Vec<f64> = chart
        .lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(x, _)| *x))
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let names = chart.lines.iter().map(|line| Column::number(&line.name));
    let columns = std::iter::once(Column::number(&chart.x.title))
        .chain(names)
        .collect();
    // The points are in order, so each line is walked once; of several points at one place the last
    // is shown.
    let mut at = vec![0; chart.lines.len()];
    let mut row = |x: f64| {
        let cells = chart.lines.iter().zip(&mut at).map(|(line, at)| {
            let here = line.points[*at..]
                .iter()
                .take_while(|point| point.0.total_cmp(&x).is_le());
            let (count, last) = here.fold((0, None), |(count, _), point| (count + 1, Some(point)));
            *at += count;
            last.map_or_else(String::new, |(_, y)| {
                y.map_or_else(none, |y| chart.y.unit.format(y))
            })
        });
        std::iter::once(x_name(&chart.x, x)).chain(cells).collect()
    };
    Table {
        caption: chart.title.clone(),
        columns,
        rows: xs.into_iter().map(&mut row).collect(),
        note: String::new(),
    }
}

/// Percentiles keep their nines.
fn x_name(axis: &Axis, x: f64) -> String {
    match axis.scale {
        Scale::Percentile if x.is_finite() => format!("{:.3}\u{a0}%", x * 100.0),
        _ => axis.unit.format(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Line, Unit};

    #[test]
    fn a_number_in_a_stacked_row_keeps_its_head_where_there_is_one() {
        let table = |evidence: &str| {
            let limit = |bound: &str| vec!["cores".into(), bound.into(), evidence.into()];
            let mut html = String::new();
            let columns = Column::all("limit|#at most|evidence");
            write_table(
                &mut html,
                &Table {
                    columns,
                    rows: vec![limit("5 /s"), limit("–")],
                    ..Table::default()
                },
            );
            html
        };
        let long = table(&"so and so ".repeat(9));
        assert!(long.contains("<table class=\"stacked\">"));
        assert!(long.contains("<td class=\"r\" data-head=\"at most\">5 /s</td>"));
        assert!(long.contains("<td class=\"r\" data-none>–</td>"));
        let short = table("so");
        assert!(!short.contains("stacked") && short.contains("<td class=\"r\">–</td>"));
    }

    #[test]
    fn a_graphs_table_has_every_line_at_its_place() {
        let line = |points: &[(f64, Option<f64>)]| Line {
            name: String::new(),
            points: points.to_vec(),
        };
        let chart = LineChart {
            title: String::new(),
            note: String::new(),
            x: Axis::linear("x", Unit::Count),
            y: Axis::linear("y", Unit::Count),
            lines: vec![
                line(&[
                    (0.0, Some(1.0)),
                    (2.0, None),
                    (2.0, Some(3.0)),
                    (3.0, Some(4.0)),
                ]),
                line(&[(-0.0, Some(5.0)), (2.0, None)]),
                line(&[]),
            ],
        };
        let rows: Vec<String> = line_table(&chart)
            .rows
            .iter()
            .map(|row| row.join("|"))
            .collect();
        assert_eq!(rows, ["0||5|", "0|1||", "2|3|–|", "3|4||"]);
    }
}
