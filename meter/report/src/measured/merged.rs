//! The runs that a run was merged from.

use millrace_runs::{MergedRun, Run};

use super::none;
use crate::number::{count, rate};
use crate::{Column, Table, Unit};

/// A row for each of them, if there are any.
pub(super) fn merged(run: &Run) -> Option<Table> {
    let first = run
        .merged_from
        .iter()
        .map(|part| part.started_unix_us)
        .min()?;
    let row = |(number, part): (usize, &MergedRun)| {
        let host = &part.host;
        let machine = match (host.cpu.as_str(), host.machine.as_str()) {
            ("", "") => none(),
            ("", machine) => machine.to_owned(),
            (cpu, _) => cpu.to_owned(),
        };
        vec![
            count(number as u64 + 1),
            Unit::Seconds.format((part.started_unix_us - first) as f64 / 1e6),
            Unit::Seconds.format(part.duration_s),
            count(part.requests),
            rate(part.achieved_rate),
            part.verdict.to_string(),
            machine,
            part.command.clone(),
        ]
    };
    let columns = ["run", "began after", "length", "requests", "rate"].map(Column::number);
    Some(Table {
        caption: "Merged from".to_owned(),
        columns: columns
            .into_iter()
            .chain(["verdict", "client", "command"].map(Column::text))
            .collect(),
        rows: run.merged_from.iter().enumerate().map(row).collect(),
        note: "Rates of runs at the same time are added, those of runs one after the other averaged by their length."
            .to_owned(),
    })
}
