//! The throughput over the levels of a sweep as a table: with bars for a terminal, without on a
//! page, which has a graph.

use millrace_runs::{By, Direction, Sweep};

use crate::measured::none;
use crate::number::{percent, rate};
use crate::sweep::plain_level;
use crate::sweep_charts::means;
use crate::{Column, Table};

/// Levels from which only some are shown: the first, the last, and some at equal distances.
const MOST: usize = 40;
/// Letters that the longest bar takes.
const WIDTH: f64 = 40.0;
/// An eighth of a letter, two eighths, and so on.
const EIGHTHS: [&str; 7] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// The throughput of each level with a bar, for a terminal. Empty for fewer than two levels.
pub fn sweep_curve(sweep: &Sweep) -> Option<Table> {
    let mut table = curve_table(sweep)?;
    let values: Vec<f64> = levels(sweep).into_iter().map(|(_, rate)| rate).collect();
    let highest = values.iter().copied().fold(0.0, f64::max);
    table.columns.push(Column::text(""));
    for (row, value) in table.rows.iter_mut().zip(values) {
        row.push(bar(value / highest.max(f64::MIN_POSITIVE)));
    }
    Some(table)
}

/// The throughput of each level, beside what it would be in proportion.
pub(crate) fn curve_table(sweep: &Sweep) -> Option<Table> {
    let levels = levels(sweep);
    let &(lowest, first) = levels.first().filter(|_| levels.len() > 1)?;
    let (level, of, note) = match sweep.by {
        By::Rate if sweep.sessions => ("sessions a second", "", ""),
        By::Rate => ("demanded", "of demanded", ""),
        By::Connections => (
            "connections",
            "of proportion",
            "Of proportion: 100 % if the throughput rises as the connections do, from the lowest level on.",
        ),
    };
    let mut columns = vec![
        Column::number(level),
        Column::number("good answers a second"),
    ];
    let has_share = !of.is_empty();
    columns.extend(has_share.then(|| Column::number(of)));
    let row = |&(level, value): &(f64, f64)| {
        let full = match sweep.by {
            By::Rate => level,
            By::Connections => first * level / lowest,
        };
        let share = (full > 0.0).then(|| percent(value / full));
        let mut row = vec![plain_level(level), rate(value)];
        row.extend(has_share.then(|| share.unwrap_or_else(none)));
        row
    };
    Some(Table {
        caption: "Throughput at each level".to_owned(),
        rows: levels.iter().map(row).collect(),
        columns,
        note: note.to_owned(),
    })
}

/// The levels of the way up with the mean throughput of their repeats, lowest first.
fn levels(sweep: &Sweep) -> Vec<(f64, f64)> {
    let up = sweep.steps.iter().filter(|step| step.complete);
    let up = up.filter(|step| step.direction == Direction::Up);
    let values = up.map(|step| (step.level, Some(step.run.good_rate)));
    let means = means(values.collect()).into_iter();
    let known: Vec<(f64, f64)> = means
        .filter_map(|(level, mean)| Some((level, mean?)))
        .collect();
    let (every, last) = (known.len().div_ceil(MOST).max(1), known.len());
    let chosen = known.into_iter().enumerate();
    let chosen = chosen.filter(|(n, _)| n % every == 0 || n + 1 == last);
    chosen.map(|(_, level)| level).collect()
}

/// A bar for a share from 0 to 1, in eighths of a letter.
fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * WIDTH * 8.0).round() as usize;
    let rest = (eighths % 8).checked_sub(1).map_or("", |n| EIGHTHS[n]);
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_has_the_length_of_its_share() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0), "█".repeat(40));
        assert_eq!(bar(0.0125), "▌");
        assert_eq!(bar(f64::NAN), "");
        assert_eq!(bar(7.0).chars().count(), 40);
    }
}
