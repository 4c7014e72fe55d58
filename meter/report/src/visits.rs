//! Sessions, pauses and classes of a run, and what the statistics decided.

use millrace_runs::{ClassFigures, Run};
use millrace_stats::Latency;

use crate::number::{bytes, count, micros, percent, plain, rate, seconds};
use crate::{Column, Table};

/// Classes that are named beside a kind of error.
const NAMED: usize = 3;

/// A row for each class of a workload, if there are several.
pub fn class_table(run: &Run) -> Option<Table> {
    if run.classes.is_empty() {
        return None;
    }
    let is_open = run.classes.iter().any(|class| class.response_us.is_some());
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), micros);
    let row = |class: &ClassFigures| {
        let latency = class.response_us.or(class.service_us);
        let p99 = |times: Option<Latency>| time(times.and_then(|times| times.p99));
        let beside = [p99(class.service_us), p99(class.send_lag_us)];
        let row = vec![
            class.name.clone(),
            count(class.issued),
            count(class.good),
            count(class.issued.saturating_sub(class.good)),
            rate(class.good as f64 / run.duration_s.max(f64::MIN_POSITIVE)),
            bytes(class.bytes as f64),
            time(latency.map(|latency| latency.mean)),
            time(latency.and_then(|latency| latency.p50)),
            time(latency.and_then(|latency| latency.p99)),
            time(latency.map(|latency| latency.max)),
        ];
        let beside = beside.into_iter().filter(|_| is_open);
        row.into_iter().chain(beside).collect()
    };
    let titles = [
        "requests", "good", "not good", "good", "bytes", "mean", "50 %", "99 %", "longest",
    ];
    // Where response times are the main ones, the two that they consist of stand beside them.
    let beside = ["99 % service", "99 % send lag"].into_iter();
    let titles = titles
        .into_iter()
        .chain(beside.filter(|_| is_open))
        .map(Column::number);
    let what = if is_open { "Response" } else { "Service" };
    Some(Table {
        caption: "Classes".to_owned(),
        columns: std::iter::once(Column::text("")).chain(titles).collect(),
        rows: run.classes.iter().map(row).collect(),
        note: format!("{what} times of good answers."),
    })
}

/// The classes that have most of the errors of a kind, with their numbers.
pub(crate) fn most_of(kind: &str, run: &Run) -> String {
    let counts = run
        .classes
        .iter()
        .map(|class| (class.errors.count(kind), &class.name));
    let mut counts: Vec<_> = counts.filter(|(number, _)| *number > 0).collect();
    counts.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let named = counts.iter().take(NAMED);
    let mut text = named
        .map(|(number, name)| format!("{name} {}", count(*number)))
        .collect::<Vec<_>>()
        .join(", ");
    if counts.len() > NAMED {
        text.push_str(&format!(", {} more", counts.len() - NAMED));
    }
    text
}

/// Names and values for what only some runs have.
pub(crate) fn rows(run: &Run) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    if let Some(sessions) = &run.sessions {
        let offered = sessions
            .offered_rate
            .map_or_else(String::new, |offered| format!(" at {}", rate(offered)));
        rows.push([
            "sessions".to_owned(),
            format!(
                "{} begun{offered}, {} completed, {} broken off",
                count(sessions.started),
                count(sessions.completed),
                count(sessions.broken_off)
            ),
        ]);
    }
    if run.accounting.abandoned > 0 {
        let text = format!("{} requests of them", count(run.accounting.abandoned));
        rows.push(["abandoned".to_owned(), text]);
    }
    if let Some(streams) = &run.streams {
        rows.push([
            "streams".to_owned(),
            format!(
                "{} of {} opened, {} ended, {} events missed, {} besides",
                count(streams.opened),
                count(streams.asked),
                count(streams.ended),
                count(streams.missed),
                count(streams.others)
            ),
        ]);
        let (good, failed) = (count(streams.writes), count(streams.failed_writes));
        rows.push(["writes".to_owned(), format!("{good}, {failed} failed")]);
        if let Some(times) = streams.event_us {
            let of = |name, time: Option<f64>| time.map(|time| format!("{name} {}", micros(time)));
            let shown = [
                of("median", times.p50),
                of("99 %", times.p99),
                of("longest", Some(times.max)),
            ];
            let shown: Vec<_> = shown.into_iter().flatten().collect();
            rows.push(["write to event".to_owned(), shown.join(", ")]);
        }
    }
    if let Some(pauses) = &run.pauses {
        let missed = match pauses.missed_cycles {
            0 => String::new(),
            missed => format!(", {} missed", count(missed)),
        };
        // Only a closed loop has pauses before its requests; in an open loop the schedule holds the
        // pauses.
        let mean = match pauses.mean_us > 0.0 {
            true => format!("; {} on average", micros(pauses.mean_us)),
            false => String::new(),
        };
        rows.push([
            "pauses".to_owned(),
            format!("{}{mean}{missed}", pauses.asked),
        ]);
    }
    if let Some(auto) = &run.auto {
        let width = |half: Option<f64>| match half {
            Some(half) => format!("±{}", percent(half)),
            None => "unknown".to_owned(),
        };
        rows.push([
            "decided".to_owned(),
            format!(
                "warm after {}, measured for {}; mean time {}, rate {} ({} % confidence)",
                seconds(auto.warmup_s),
                seconds(auto.measured_s),
                width(auto.half_width_response),
                width(auto.half_width_rate),
                plain(95.0)
            ),
        ]);
    }
    rows
}
