//! Tables for a terminal.

use std::fmt::Write as _;

use crate::escape::is_format;
use crate::{Align, BarChart, Report, Section, Table, number};

/// The table in columns of a fixed-width font, with its caption above and its remark below. Control
/// characters do not pass: a terminal would obey them.
pub fn text_table(table: &Table) -> String {
    let titles: Vec<String> = table
        .columns
        .iter()
        .map(|column| clean(&column.title))
        .collect();
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            (0..titles.len())
                .map(|n| row.get(n).map_or_else(String::new, |cell| clean(cell)))
                .collect()
        })
        .collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|n| {
            rows.iter()
                .map(|row| width(&row[n]))
                .chain([width(&titles[n])])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    if !table.caption.is_empty() {
        let _ = writeln!(text, "{}", clean(&table.caption));
    }
    // A list of names and values needs no head.
    if titles.iter().any(|title| !title.is_empty()) {
        line(&mut text, &titles, &widths, table);
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        line(&mut text, &rules, &widths, table);
    }
    for row in &rows {
        line(&mut text, row, &widths, table);
    }
    for note in table.note.lines() {
        let _ = writeln!(text, "{}", clean(note));
    }
    text
}

fn line(text: &mut String, cells: &[String], widths: &[usize], table: &Table) {
    let mut line = String::new();
    for ((cell, &room), column) in cells.iter().zip(widths).zip(&table.columns) {
        let space = " ".repeat(room - width(cell));
        let _ = match column.align {
            Align::Left => write!(line, "{cell}{space}  "),
            Align::Right => write!(line, "{space}{cell}  "),
        };
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// Letters of a line of a report.
const WIDTH: usize = 80;
/// Letters of the longest bar.
const BAR: usize = 40;

/// A report without its lines, no line wider than a terminal.
pub(crate) fn report(report: &Report) -> String {
    let mut text = String::new();
    wrap(&mut text, &report.title);
    wrap(&mut text, &report.subtitle);
    for section in &report.sections {
        let table = match section {
            Section::Heading(heading) => {
                let heading = clean(heading).to_uppercase();
                let _ = writeln!(text, "\n{heading}");
                continue;
            }
            Section::Text(sentence) | Section::Prose(sentence) => {
                text.push('\n');
                wrap(&mut text, sentence);
                continue;
            }
            Section::Banner(banner) => {
                text.push('\n');
                std::iter::once(&banner.title)
                    .chain(&banner.reasons)
                    .for_each(|sentence| wrap(&mut text, sentence));
                continue;
            }
            Section::Figures(figures) => {
                let row = |figure: &crate::Figure| {
                    vec![
                        figure.label.clone(),
                        figure.value.clone(),
                        figure.note.clone(),
                    ]
                };
                Table {
                    columns: crate::Column::all("|#|"),
                    rows: figures.iter().map(row).collect(),
                    ..Table::default()
                }
            }
            Section::Bars(chart) => bars(chart),
            Section::Table(table) => table.clone(),
            _ => continue,
        };
        text.push('\n');
        wrap(&mut text, &table.caption);
        let note = table.note.clone();
        text.push_str(&text_table(&narrowed(Table {
            caption: String::new(),
            note: String::new(),
            ..table
        })));
        wrap(&mut text, &note);
    }
    text
}

/// The first series of a chart, with bars of letters.
fn bars(chart: &BarChart) -> Table {
    let values = chart
        .series
        .first()
        .map_or(&[][..], |series| &series.values);
    let greatest = values
        .iter()
        .flatten()
        .copied()
        .fold(f64::MIN_POSITIVE, f64::max);
    let row = |(name, value): (&String, &Option<f64>)| {
        let bar = value.map_or(0.0, |value| value.max(0.0) / greatest * BAR as f64);
        let value = value.map_or_else(number::none, |value| chart.unit.format(value));
        vec![name.clone(), value, "█".repeat(bar.round() as usize)]
    };
    Table {
        caption: chart.title.clone(),
        columns: crate::Column::all("|#|"),
        rows: chart.groups.iter().zip(values).map(row).collect(),
        note: chart.note.clone(),
    }
}

/// Cuts the words of the widest column until a row fits.
fn narrowed(mut table: Table) -> Table {
    let columns = table.columns.iter().enumerate();
    let widths = columns.map(|(n, column)| {
        let cells = table.rows.iter().filter_map(|row| row.get(n));
        cells
            .map(|cell| width(cell))
            .chain([width(&column.title)])
            .max()
            .unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    let words = |n: &usize| table.columns[*n].align == Align::Left;
    let widest = (0..widths.len()).filter(words).max_by_key(|n| widths[*n]);
    if let Some(n) = widest.filter(|_| total > WIDTH) {
        let room = widths[n].saturating_sub(total - WIDTH).max(8);
        for cell in table.rows.iter_mut().filter_map(|row| row.get_mut(n)) {
            if width(cell) > room {
                *cell = cell.chars().take(room - 1).chain(['…']).collect();
            }
        }
    }
    table
}

/// Appends a paragraph; a word that is longer than a line stays whole.
fn wrap(text: &mut String, paragraph: &str) {
    let mut at = 0;
    for word in clean(paragraph).split_whitespace() {
        let space = usize::from(at > 0);
        if at > 0 && at + space + width(word) > WIDTH {
            text.push('\n');
            at = 0;
        } else if space > 0 {
            text.push(' ');
            at += space;
        }
        text.push_str(word);
        at += width(word);
    }
    if at > 0 {
        text.push('\n');
    }
}

/// One line without control and format characters; the spaces of numbers become ones that every
/// terminal font has.
fn clean(text: &str) -> String {
    let plain = |c: char| match c {
        '\u{202f}' | '\u{a0}' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let shown = text.chars().filter(|c| !is_format(*c));
    shown.map(plain).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Column;

    #[test]
    fn columns_line_up() {
        let table = Table {
            caption: "Requests".into(),
            columns: vec![Column::text("page"), Column::number("mean")],
            rows: vec![
                vec!["front".into(), "87.2\u{a0}µs".into()],
                vec!["a long name".into(), "3.40\u{a0}ms".into()],
                vec!["\u{1b}[31m\u{202e}".into()],
            ],
            note: "closed loop\nthree requests".into(),
        };
        expect_test::expect![[r#"
            Requests
            page            mean
            ───────────  ───────
            front        87.2 µs
            a long name  3.40 ms
            �[31m
            closed loop
            three requests
        "#]]
        .assert_eq(&text_table(&table));
    }

    #[test]
    fn a_report_fits_a_terminal() {
        let mut report = Report::new("Requests", "a.log");
        let bars = BarChart {
            title: "By hour".into(),
            note: String::new(),
            unit: crate::Unit::Count,
            scale: crate::Scale::Linear,
            groups: vec!["00:00".into(), "01:00".into()],
            series: vec![crate::Bars {
                name: "requests".into(),
                values: vec![Some(40.0), None],
            }],
        };
        report
            .push(Section::Figures(vec![
                crate::Figure::new("visitors", "1\u{202f}234").with_note("a day"),
            ]))
            .push(Section::Heading("Days".into()))
            .push(Section::Bars(bars))
            .push(Section::Table(Table {
                caption: "so and so ".repeat(10),
                columns: Column::all("address|#requests"),
                rows: vec![vec!["/long/".repeat(20), "7".into()]],
                note: "exact".into(),
            }));
        expect_test::expect![[r#"
            Requests
            a.log

            visitors  1 234  a day

            DAYS

            By hour
            00:00  40  ████████████████████████████████████████
            01:00   –

            so and so so and so so and so so and so so and so so and so so and so so and so
            so and so so and so
            address                                                                 requests
            ──────────────────────────────────────────────────────────────────────  ────────
            /long//long//long//long//long//long//long//long//long//long//long//lo…         7
            exact
        "#]]
        .assert_eq(&report.to_text());
    }

    #[test]
    fn an_empty_table_is_no_panic() {
        assert_eq!(text_table(&Table::default()), "");
    }
}
