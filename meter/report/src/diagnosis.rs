//! A diagnosis: its levels, what limits the server, and what the database behind it did.

use millrace_runs::{Diagnosis, Level};
use millrace_stats::Verdict;

use crate::limits::{demands_table, findings_table, levels_text};
use crate::measured::none;
use crate::measured::sentence;
use crate::number::{count, micros, percent, rate};
use crate::{Banner, Column, Report, Section, Table, Tone, postgres_tables, text_table};

/// A diagnosis for a terminal.
pub fn diagnosis_text(diagnosis: &Diagnosis) -> String {
    let Diagnosis {
        bottleneck,
        remarks,
        demands,
        ..
    } = diagnosis;
    let mut text = text_table(&levels_table(diagnosis));
    text += &levels_text(bottleneck, remarks, demands.as_ref());
    for table in of_the_database(diagnosis) {
        text.push('\n');
        text.push_str(&text_table(&table));
    }
    text
}

/// A diagnosis as a report of its own.
pub fn diagnosis_report(diagnosis: &Diagnosis) -> Report {
    let url = diagnosis.levels.first().map_or("", |level| &level.run.url);
    let mut report = Report::new("What limits the server", url);
    report.push(Section::Banner(Banner {
        tone: match diagnosis.verdict {
            Verdict::Valid => Tone::Good,
            Verdict::Suspect => Tone::Doubtful,
            Verdict::Invalid => Tone::Bad,
        },
        title: diagnosis.bottleneck.first().map_or_else(
            || "Nothing shows at these levels".to_owned(),
            |finding| format!("Limited by {}", finding.name),
        ),
        reasons: diagnosis
            .remarks
            .iter()
            .map(|remark| sentence(remark))
            .collect(),
    }));
    if !diagnosis.bottleneck.is_empty() {
        report.push(Section::Table(findings_table(&diagnosis.bottleneck)));
    }
    report.push(Section::Table(levels_table(diagnosis)));
    if let Some(demands) = &diagnosis.demands {
        report.push(Section::Table(demands_table(demands)));
    }
    for table in of_the_database(diagnosis) {
        report.push(Section::Table(table));
    }
    report.push(Section::command(&diagnosis.command));
    report
}

/// Makes the tables of PostgreSQL at the highest throughput, which the demands are of.
fn of_the_database(diagnosis: &Diagnosis) -> Vec<Table> {
    let watched = diagnosis.levels.iter().filter_map(|level| {
        let seen = level.run.postgres.as_ref()?;
        Some((level, seen))
    });
    let fastest =
        watched.max_by(|(a, _), (b, _)| a.run.achieved_rate.total_cmp(&b.run.achieved_rate));
    let Some((level, seen)) = fastest else {
        return Vec::new();
    };
    let mut tables = postgres_tables(seen);
    for table in &mut tables {
        let here = format!(", with {} in flight", count(level.in_flight));
        table.caption.push_str(&here);
    }
    tables
}

fn levels_table(diagnosis: &Diagnosis) -> Table {
    let row = |level: &Level| {
        let summary = level.run.probe.as_ref().and_then(|p| p.summary.as_ref());
        let server = summary.and_then(|summary| {
            Some(summary.server?.cpu_s / summary.span_s / summary.cores.len().max(1) as f64)
        });
        let mean = level.run.latency_us.service.map(|latency| latency.mean);
        vec![
            count(level.in_flight),
            rate(level.run.achieved_rate),
            mean.map_or_else(none, micros),
            server.map_or_else(none, percent),
            level.run.verdict.to_string(),
        ]
    };
    Table {
        caption: "Levels".to_owned(),
        columns: Column::all("#in flight|#rate|#mean time|#server, of all cores|verdict"),
        rows: diagnosis.levels.iter().map(row).collect(),
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use millrace_runs::{Postgres, Run};

    use super::*;

    #[test]
    fn the_database_is_described_at_the_highest_throughput() {
        let level = |in_flight, achieved_rate| Level {
            in_flight,
            run: Run {
                achieved_rate,
                postgres: Some(Box::new(Postgres::default())),
                ..Run::default()
            },
        };
        let mut diagnosis = Diagnosis {
            verdict: Verdict::Valid,
            levels: vec![level(1, 100.0), level(8, 900.0), level(16, 800.0)],
            bottleneck: Vec::new(),
            demands: None,
            remarks: Vec::new(),
            command: String::new(),
        };
        let text = diagnosis_text(&diagnosis);
        assert!(text.contains("PostgreSQL") && text.contains("with 8 in flight"));
        assert!(!text.contains("with 16 in flight"), "{text}");
        let page = diagnosis_report(&diagnosis).to_html();
        assert!(page.contains("with 8 in flight"));
        diagnosis
            .levels
            .iter_mut()
            .for_each(|level| level.run.postgres = None);
        assert!(!diagnosis_text(&diagnosis).contains("PostgreSQL"));
    }
}
