//! What limited each server of an experiment, if the machine was sampled.

use millrace_runs::{Lab, LabFinding};

use crate::{Column, Table, lab_graphs};

/// The share of the highest throughput that the lowest level with the highest throughput has at
/// least.
const AS_HIGH: f64 = 0.99;

/// The level from which on a server had no more good answers: the lowest with 99 % of its highest
/// throughput.
pub(crate) fn fullest<'a>(lab: &'a Lab, server: &str) -> Option<&'a LabFinding> {
    let own = || lab.findings.iter().filter(|found| found.server == server);
    let throughput = |found: &LabFinding| found.throughput.map_or(0.0, |spread| spread.median);
    let highest = own().map(throughput).reduce(f64::max)?;
    own().find(|found| throughput(found) >= AS_HIGH * highest)
}

/// A row for each server with a limit; `None` if no limit was found.
pub(crate) fn table(lab: &Lab) -> Option<Table> {
    let servers = lab.servers.iter().filter(|server| server.measured);
    let row = |name: &String| {
        let found = fullest(lab, name)?;
        let limit = found.limited_by.first()?;
        let at = lab_graphs::head(lab, found.level);
        Some(vec![name.clone(), at, limit.clone()])
    };
    let rows: Vec<Vec<String>> = servers.filter_map(|server| row(&server.name)).collect();
    (!rows.is_empty()).then(|| Table {
        caption: "What limits each server where it has most good answers".to_owned(),
        columns: vec![
            Column::text(""),
            Column::number("at"),
            Column::text("limit"),
        ],
        rows,
        note: "The likeliest limit that the samples of the machine show, with the evidence."
            .to_owned(),
    })
}
