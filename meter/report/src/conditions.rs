//! What figures were found under: a table of names and values at the end of a report.

use millrace_runs::Host;

use crate::{Column, Table, Unit};

pub(crate) fn table(rows: Vec<[String; 2]>) -> Table {
    Table {
        caption: "Conditions".to_owned(),
        columns: vec![Column::text(""), Column::text("")],
        rows: rows.into_iter().map(Vec::from).collect(),
        note: String::new(),
    }
}

/// The length of a run, or of something else with a warm-up.
pub(crate) fn length(duration_s: f64, warmup_s: f64) -> String {
    let [length, warmup] = [duration_s, warmup_s].map(|time| Unit::Seconds.format(time));
    format!("{length}, after a warm-up of {warmup}")
}

/// The client's machine.
pub(crate) fn machine(host: &Host) -> Vec<[String; 2]> {
    let cpu = if host.cpu.is_empty() {
        &host.machine
    } else {
        &host.cpu
    };
    let row = |name: &str, value: String| [name.to_owned(), value];
    vec![
        row(
            "machine",
            format!("{cpu}, {} cores for the client", host.cores),
        ),
        row("system", format!("{}, {}", host.kernel, host.machine)),
    ]
}
