//! Tables for a terminal.

use std::fmt::Write as _;

use crate::{Align, Table};

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

/// One line without control characters; the spaces of numbers become ones that every terminal font
/// has.
fn clean(text: &str) -> String {
    let plain = |c: char| match c {
        '\u{202f}' | '\u{a0}' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(plain).collect()
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
                vec!["\u{1b}[31m".into()],
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
    fn an_empty_table_is_no_panic() {
        assert_eq!(text_table(&Table::default()), "");
    }
}
