//! An experiment with several levels at a glance: servers down, levels across.

use millrace_runs::{Lab, LabFinding, LabLevel};
use millrace_stats::Ratio;

use crate::{Column, Table, Unit, lab_graphs};

/// CPU and throughput of every server at every level, relative to the baseline where there is one.
pub(crate) fn tables(lab: &Lab) -> Vec<Table> {
    let relative = |what: &str, ratio: fn(&LabFinding) -> Option<Ratio>| {
        let baseline = lab.baseline.as_deref().unwrap_or_default();
        let caption = format!("{what}, × {baseline}");
        let cell = move |finding: &LabFinding| {
            let ratio = ratio(finding).map(|ratio| format!("{:.2}", ratio.ratio));
            ratio.or_else(|| (finding.server == baseline).then(|| "1".to_owned()))
        };
        table(lab, caption, cell)
    };
    let mut tables = vec![
        table(lab, "Server CPU for a request".to_owned(), |finding| {
            Some(Unit::Micros.format(finding.cpu_us?.median))
        }),
        table(lab, "Good answers a second".to_owned(), |finding| {
            Some(Unit::Rate.format(finding.throughput?.median))
        }),
    ];
    if lab.baseline.is_some() {
        tables.push(relative("Server CPU for a request", |finding| {
            finding.cpu_ratio
        }));
        tables.push(relative("Good answers a second", |finding| {
            finding.throughput_ratio
        }));
    }
    tables
}

fn table(lab: &Lab, caption: String, cell: impl Fn(&LabFinding) -> Option<String>) -> Table {
    let at = |server: &str, level: LabLevel| {
        let mut found = lab.findings.iter();
        let finding = found.find(|found| found.server == server && found.level == level);
        finding.and_then(&cell).unwrap_or_else(|| "–".to_owned())
    };
    let servers = lab.servers.iter().filter(|server| server.measured);
    let row = |name: &String| {
        let cells = lab.levels.iter().map(|level| at(name, *level));
        std::iter::once(name.clone()).chain(cells).collect()
    };
    let head = |level: &LabLevel| Column::number(lab_graphs::head(lab, *level));
    let is = |of: fn(&LabLevel) -> bool| lab.levels.iter().any(of);
    let first = match (is(|level| level.count.is_some()), lab.variable.is_some()) {
        (true, _) => "paths",
        (_, true) => "",
        _ if is(|level| level.rate.is_some()) => "",
        _ => "connections",
    };
    Table {
        caption,
        columns: std::iter::once(Column::text(first))
            .chain(lab.levels.iter().map(head))
            .collect(),
        rows: servers.map(|server| row(&server.name)).collect(),
        note: String::new(),
    }
}
