//! An experiment of a study in one table: each server where it has most good answers.

use millrace_runs::{Lab, LabFigure, LabFinding};

use crate::measured::none;
use crate::{Column, Table, Unit, lab_graphs, lab_limited};

/// Figures in the columns besides the throughput.
const SHOWN: [(LabFigure, &str); 4] = [
    (LabFigure::P50, "p50"),
    (LabFigure::P90, "p90"),
    (LabFigure::Cpu, "CPU a request"),
    (LabFigure::Memory, "memory"),
];

/// A row for each server that was measured.
pub(crate) fn table(lab: &Lab) -> Table {
    let is_ladder = lab.levels.len() > 1;
    let servers = lab.servers.iter().filter(|server| server.measured);
    let found: Vec<&LabFinding> = servers
        .filter_map(|server| lab_limited::fullest(lab, &server.name))
        .collect();
    let has = |figure: LabFigure| found.iter().any(|found| figure.of(found).is_some());
    let shown: Vec<(LabFigure, &str)> = SHOWN
        .into_iter()
        .filter(|(figure, _)| has(*figure))
        .collect();
    let mut columns = vec![Column::text(""), Column::number("answers/s")];
    if is_ladder {
        columns.push(Column::number("at"));
    }
    columns.extend(shown.iter().map(|(_, name)| Column::number(*name)));
    columns.push(Column::number(if is_ladder {
        "failed at last"
    } else {
        "failed"
    }));
    let row = |found: &&LabFinding| {
        let mut row = vec![found.server.clone(), cell(LabFigure::Throughput, found)];
        if is_ladder {
            row.push(lab_graphs::head(lab, found.level));
        }
        row.extend(shown.iter().map(|(figure, _)| cell(*figure, found)));
        let mut own = lab
            .findings
            .iter()
            .filter(|other| other.server == found.server);
        row.push(
            own.next_back()
                .map_or_else(none, |last| cell(LabFigure::Failed, last)),
        );
        row
    };
    Table {
        caption: match is_ladder {
            true => "Each server where it has most good answers".to_owned(),
            false => "Figures".to_owned(),
        },
        columns,
        rows: found.iter().map(row).collect(),
        note: note(lab, is_ladder),
    }
}

fn note(lab: &Lab, is_ladder: bool) -> String {
    let has_rates = lab.levels.iter().any(|level| level.rate.is_some());
    let times = match has_rates || lab.replay.is_some() {
        true => "p50 and p90 are response times, from when a request was due.",
        false => "p50 and p90 are service times, from the send to the whole answer.",
    };
    match is_ladder {
        true => format!(
            "The lowest level with 99 % of a server’s highest rate of good answers. {times} The last column is at the \
             highest level."
        ),
        false => times.to_owned(),
    }
}

fn cell(figure: LabFigure, found: &LabFinding) -> String {
    let (_, unit): (_, Unit) = lab_graphs::words(figure);
    figure
        .of(found)
        .map_or_else(none, |spread| unit.format(spread.median))
}
