//! A table of a study's source: drawn if it is a ladder of numbers, else as a table.

use millrace_runs::OriginalTable;

use crate::{Axis, Column, Line, LineChart, Section, Table, Unit};

/// Rows from which a table is drawn.
const DRAWN: usize = 4;

/// The section that shows a table of the source.
pub(crate) fn section(original: &OriginalTable) -> Section {
    match drawn(original) {
        Some(chart) => Section::Lines(chart),
        None => Section::Table(table(original)),
    }
}

fn title(original: &OriginalTable) -> String {
    format!("The source’s figures: {}", original.title)
}

/// Lines over the first column, if that rises and every cell is a number or missing.
fn drawn(original: &OriginalTable) -> Option<LineChart> {
    let rows: Vec<Vec<Option<f64>>> = original
        .rows
        .iter()
        .map(|row| numbers(row))
        .collect::<Option<_>>()?;
    let xs: Vec<f64> = rows
        .iter()
        .map(|row| *row.first()?)
        .collect::<Option<_>>()?;
    let rises = xs.windows(2).all(|pair| pair[0] < pair[1]);
    if rows.len() < DRAWN || !rises || original.columns.len() < 2 {
        return None;
    }
    let line = |(n, name): (usize, &String)| Line {
        name: name.clone(),
        points: xs
            .iter()
            .zip(&rows)
            .map(|(x, row)| (*x, row.get(n).copied().flatten()))
            .collect(),
    };
    Some(LineChart {
        title: title(original),
        note: original.note.clone(),
        x: Axis::linear(original.columns[0].as_str(), Unit::Plain),
        y: Axis::linear("", Unit::Plain),
        lines: original
            .columns
            .iter()
            .enumerate()
            .skip(1)
            .map(line)
            .collect(),
    })
}

/// The cells of a row; `None` if one is neither a number nor missing.
fn numbers(row: &[String]) -> Option<Vec<Option<f64>>> {
    let number = |cell: &String| match cell.trim() {
        "" | "–" | "-" => Some(None),
        text => text
            .replace(',', "")
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(Some),
    };
    row.iter().map(number).collect()
}

fn table(original: &OriginalTable) -> Table {
    let begins_with_digit = |cell: &String| {
        let cell = cell.trim();
        cell.is_empty()
            || cell == "–"
            || cell.starts_with(|c: char| c.is_ascii_digit() || "<>~+-".contains(c))
    };
    let column = |(n, name): (usize, &String)| {
        let mut cells = original.rows.iter().filter_map(|row| row.get(n));
        match n > 0 && cells.all(begins_with_digit) {
            true => Column::number(name),
            false => Column::text(name),
        }
    };
    Table {
        caption: title(original),
        columns: original.columns.iter().enumerate().map(column).collect(),
        rows: original.rows.clone(),
        note: original.note.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(rows: &[[&str; 2]]) -> OriginalTable {
        OriginalTable {
            title: "T".into(),
            columns: vec!["requests/s".into(), "cached".into()],
            rows: rows
                .iter()
                .map(|row| row.map(str::to_owned).to_vec())
                .collect(),
            ..OriginalTable::default()
        }
    }

    #[test]
    fn a_ladder_of_numbers_is_drawn() {
        let ladder = [
            ["50", "49.5"],
            ["100", "–"],
            ["150", "150"],
            ["1,500", "150"],
        ];
        let chart = drawn(&original(&ladder)).unwrap();
        let expected = [
            (50.0, Some(49.5)),
            (100.0, None),
            (150.0, Some(150.0)),
            (1500.0, Some(150.0)),
        ];
        assert_eq!(chart.lines[0].points, expected);
        assert!(drawn(&original(&ladder[..3])).is_none(), "too few rows");
        let words = [
            ["50", "3 ms"],
            ["100", "4 ms"],
            ["150", "5 ms"],
            ["200", "6 ms"],
        ];
        assert!(drawn(&original(&words)).is_none(), "cells with units");
        let back = [["50", "1"], ["40", "2"], ["60", "3"], ["70", "4"]];
        assert!(drawn(&original(&back)).is_none(), "not in order");
    }
}
