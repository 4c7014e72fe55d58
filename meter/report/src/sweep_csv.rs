//! A sweep as comma-separated values, a line a step, for a spreadsheet or a plot.

use std::fmt::Write as _;

use millrace_runs::{Direction, Sweep, SweepStep};

use crate::csv::{cell, times};

/// The columns, in order. Times are in microseconds, from the scheduled send if there is one; an
/// unknown value is empty.
const COLUMNS: &str = "level,direction,repeat,complete,verdict,offered_rate,achieved_rate,good_rate,requests,issued,\
                       good,errors,mean_us,p50_us,p90_us,p95_us,p99_us,p999_us,max_us,client_cpu_us_per_request";

/// The steps with a head line (RFC 4180, with line feeds alone).
pub fn sweep_csv(sweep: &Sweep) -> String {
    let mut text = format!("{COLUMNS}\n");
    for step in &sweep.steps {
        text.push_str(&line(step));
    }
    text
}

fn line(step: &SweepStep) -> String {
    let run = &step.run;
    let way = match step.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let counts = run.accounting;
    let mut line = format!(
        "{},{way},{},{},{},{},{},{},{},{},{},{}",
        step.level,
        step.repeat,
        step.complete,
        run.verdict,
        cell(run.offered_rate),
        cell(Some(run.achieved_rate)),
        cell(Some(run.good_rate)),
        run.requests,
        counts.issued,
        counts.good,
        counts.issued.saturating_sub(counts.good),
    );
    for time in times(run) {
        let _ = write!(line, ",{}", cell(time));
    }
    line + "\n"
}
