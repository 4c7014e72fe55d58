//! What was seen of a PostgreSQL server during a run, as tables.

use millrace_runs::{MeanMax, Postgres, Run};

use crate::number::{bytes, count, micros, plain, seconds};
use crate::{Column, Section, Table};

/// Waits that are shown; the JSON has all.
const WAITS: usize = 8;

/// The tables as sections of a run's page; none where no server was watched.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let tables = run.postgres.iter().flat_map(|seen| postgres_tables(seen));
    tables.map(Section::Table).collect()
}

/// Sessions and waits, and what a request cost the database.
pub fn postgres_tables(seen: &Postgres) -> Vec<Table> {
    let mut tables = vec![sessions(seen), per_request(seen)];
    tables.retain(|table| !table.rows.is_empty());
    // Nothing may look complete that is not.
    match tables.last_mut() {
        Some(last) => last.note = join(&last.note, &missing(seen)),
        None => tables.push(Table {
            caption: title(seen),
            columns: vec![Column::text("")],
            rows: vec![vec!["nothing was seen in the measured time".to_owned()]],
            note: missing(seen),
        }),
    }
    tables
}

fn title(seen: &Postgres) -> String {
    format!("PostgreSQL {}", seen.probe.server.version)
}

fn sessions(seen: &Postgres) -> Table {
    let summary = &seen.summary;
    let mut rows = Vec::new();
    let mut row = |name: String, gauge: Option<MeanMax>| {
        let gauge = gauge.map(|gauge| vec![name, plain(gauge.mean), count(gauge.max)]);
        rows.extend(gauge);
    };
    row("connections".to_owned(), summary.connections);
    for (state, gauge) in &summary.states {
        row(format!("  {state}"), Some(*gauge));
    }
    row(
        "lock requests not granted".to_owned(),
        summary.locks_waiting,
    );
    for wait in summary.waits.iter().take(WAITS) {
        let name = match wait.event.as_str() {
            "none" => "at work, not waiting".to_owned(),
            event => format!("waiting for {event}"),
        };
        row(name, Some(wait.waiting));
    }
    for (slot, retained) in &summary.slots {
        rows.push(vec![
            format!("WAL kept by slot {slot}"),
            String::new(),
            bytes(*retained as f64),
        ]);
    }
    if let Some(longest) = summary.longest_transaction_s {
        rows.push(vec![
            "longest transaction".to_owned(),
            String::new(),
            seconds(longest),
        ]);
    }
    Table {
        caption: format!(
            "{}: {} samples, at most {} connections allowed",
            title(seen),
            count(summary.samples),
            count(seen.probe.server.max_connections)
        ),
        columns: Column::all("|#mean|#most"),
        rows,
        note: String::new(),
    }
}

fn per_request(seen: &Postgres) -> Table {
    let (totals, summary) = (&seen.summary.totals, &seen.summary);
    let each = summary.per_request.unwrap_or_default();
    let counts = [
        ("commits", totals.commits, each.commits),
        ("rollbacks", totals.rollbacks, each.rollbacks),
        ("blocks read", totals.blocks_read, each.blocks_read),
        ("blocks found in memory", totals.blocks_hit, each.blocks_hit),
        ("rows read", totals.rows_read, each.rows_read),
        ("rows written", totals.rows_written, each.rows_written),
        ("full pages in the WAL", totals.wal_full_pages, None),
        ("deadlocks", totals.deadlocks, None),
        ("checkpoints", totals.checkpoints, None),
    ];
    let size = |total: u64| bytes(total as f64);
    let cpu = totals.cpu_ns.map(|cpu| micros(cpu as f64 / 1e3));
    let others = [
        ("WAL", totals.wal_bytes.map(size), each.wal_bytes.map(bytes)),
        ("temporary files", totals.temp_bytes.map(size), None),
        ("CPU of its processes", cpu, each.cpu_us.map(micros)),
    ];
    let counts = counts.map(|(name, total, each)| (name, total.map(count), each.map(plain)));
    let rows = counts.into_iter().chain(others);
    let rows = rows.filter_map(|(name, total, each)| {
        Some(vec![name.to_owned(), total?, each.unwrap_or_default()])
    });
    let note = format!(
        "Over {} between samples, in which {} requests ended. Transactions, blocks and rows are those of the database {} \
         and reach the server's views up to a second late.",
        seconds(summary.covered_s),
        count(summary.requests.round() as u64),
        seen.probe.server.database
    );
    Table {
        caption: format!("{}: what it did", title(seen)),
        columns: Column::all("|#in all|#per request"),
        rows: rows.collect(),
        note,
    }
}

/// Gaps, and what could not be seen.
fn missing(seen: &Postgres) -> String {
    let gaps = seen.probe.gaps.iter().map(|gap| {
        format!(
            "Not watched from {:.1} to {:.1} s: {}.",
            gap.from_s, gap.to_s, gap.reason
        )
    });
    let unavailable = seen.probe.unavailable.iter();
    let unavailable = unavailable.map(|(what, why)| format!("Not available: {what} ({why})."));
    gaps.chain(unavailable).collect::<Vec<_>>().join(" ")
}

fn join(one: &str, other: &str) -> String {
    format!("{one} {other}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use millrace_runs::{PgCounters, PgGap, PgPerRequest, PgProbe, PgSummary, PgWait};

    use super::*;
    use crate::text_table;

    #[test]
    fn missing_values_are_named_and_have_no_row() {
        let mut probe = PgProbe {
            gaps: vec![PgGap {
                from_s: 2.0,
                to_s: 3.5,
                reason: "connection closed".to_owned(),
            }],
            ..PgProbe::default()
        };
        probe
            .unavailable
            .insert("CPU".to_owned(), "another machine".to_owned());
        let summary = PgSummary {
            samples: 3,
            covered_s: 2.0,
            requests: 200.0,
            connections: Some(MeanMax { mean: 2.5, max: 4 }),
            waits: vec![PgWait {
                event: "Lock:tuple".to_owned(),
                waiting: MeanMax { mean: 1.0, max: 3 },
            }],
            totals: PgCounters {
                commits: Some(400),
                ..PgCounters::default()
            },
            per_request: Some(PgPerRequest {
                commits: Some(2.0),
                ..PgPerRequest::default()
            }),
            ..PgSummary::default()
        };
        let tables = postgres_tables(&Postgres { summary, probe });
        let text: String = tables.iter().map(text_table).collect();
        for word in [
            "waiting for Lock:tuple",
            "commits",
            "Not watched from 2.0 to 3.5 s",
            "another machine",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("CPU of its processes") && !text.contains("rollbacks"));
    }

    #[test]
    fn a_server_without_samples_has_a_table_that_says_so() {
        let tables = postgres_tables(&Postgres::default());
        assert!(text_table(&tables[0]).contains("nothing was seen"));
    }
}
