//! A table for a terminal.

use std::fmt::Write as _;

/// The rows below their titles, in columns of a fixed-width font. A terminal obeys control
/// characters, so the table replaces them.
pub(crate) fn text_table<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let titles = titles.map(str::to_owned);
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(clean)).collect();
    let mut widths = [0; N];
    for row in std::iter::once(&titles).chain(&rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let rules = widths.map(|width| "─".repeat(width));
    let mut text = String::new();
    for row in [&titles, &rules].into_iter().chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn clean(text: &String) -> String {
    let replace = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [
            ["index.sql".to_owned(), "a".to_owned()],
            ["x".to_owned(), "\u{1b}[31m".to_owned()],
        ];
        let expected = "file       query\n\
                        ─────────  ─────\n\
                        index.sql  a\n\
                        x          �[31m\n";
        assert_eq!(text_table(["file", "query"], &rows), expected);
    }
}
