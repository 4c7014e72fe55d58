//! A measured run as a report.

mod charts;
mod merged;
mod words;

pub(crate) use base_chart::number::none;
use millrace_client::Errors;
use millrace_runs::{Loop, Protocol, Run};
use millrace_stats::{Latency, Point, Timeline, Verdict};

use crate::kinds::kind_name;
use crate::number::{bytes, count, micros, percent, plain, rate};
use crate::{
    Banner, Column, Figure, Report, Section, Table, Tone, Unit, calibrated, conditions, probed,
    visits,
};

/// A run as a report of its own.
pub fn run_report(run: &Run) -> Report {
    let subtitle = format!("{} at {}", how(run), run.url);
    Report {
        title: "A measured run".to_owned(),
        subtitle,
        sections: run_sections(run),
    }
}

/// A run as sections of a larger report.
pub fn run_sections(run: &Run) -> Vec<Section> {
    let mut sections = vec![Section::Banner(banner(run)), Section::Figures(figures(run))];
    sections.push(Section::Table(latency_table(run)));
    sections.extend(visits::class_table(run).map(Section::Table));
    if run.percentiles.len() > 1 {
        sections.push(Section::Lines(charts::percentile_curve(run)));
    }
    let points = complete(&run.series, run);
    if points.len() > 1 {
        sections.push(Section::Lines(charts::throughput(run, &points)));
        sections.push(Section::Lines(charts::latency_over_time(run, &points)));
        sections.extend(charts::classes_over_time(run).map(Section::Lines));
    }
    if run.errors.total() > 0 {
        sections.push(Section::Table(errors_table(&run.errors, run)));
    }
    sections.extend(probed::cost(&[("a request".to_owned(), run)]));
    sections.extend(crate::limits::sections(run));
    sections.extend(merged::merged(run).map(Section::Table));
    sections.extend(crate::postgres::sections(run));
    sections.push(Section::Table(conditions(run)));
    sections.push(Section::command(&run.command));
    sections
}

/// The complete intervals of a run or of one of its classes. The last interval and those of late
/// answers are incomplete.
fn complete(series: &Timeline, run: &Run) -> Vec<Point> {
    let ends_in_time =
        |point: &&Point| point.at_s + series.interval_s <= run.duration_s * 1.000_001;
    series.points.iter().filter(ends_in_time).copied().collect()
}

/// The figures of a run in a few rows, for a terminal.
pub fn run_table(run: &Run) -> Table {
    let mut rows = vec![
        vec!["verdict".to_owned(), run.verdict.to_string()],
        vec!["requests".to_owned(), count(run.requests)],
        vec!["rate".to_owned(), achieved(run)],
        vec!["bytes".to_owned(), bytes(run.bytes as f64)],
        vec!["errors".to_owned(), count(run.errors.total())],
    ];
    rows.extend(
        run.errors
            .by_kind
            .iter()
            .filter(|(_, number)| **number > 0)
            .map(|(kind, number)| vec![format!("  {}", kind_name(kind)), count(*number)]),
    );
    if let Some(latency) = main_latency(run) {
        let mut row = |name: &str, value: Option<f64>| {
            rows.push(vec![name.to_owned(), value.map_or_else(none, micros)]);
        };
        row("mean", Some(latency.mean));
        row("median", latency.p50);
        row("90 %", latency.p90);
        row("99 %", latency.p99);
        row("99.9 %", latency.p999);
        row("longest", Some(latency.max));
    }
    rows.extend(words::conforming(&run.connections));
    rows.extend(visits::rows(run).into_iter().map(Vec::from));
    rows.push(vec!["client CPU per request".to_owned(), client_cpu(run)]);
    // What went wrong in words comes before what that does to the verdict.
    let note = words::examples(run, kind_name)
        .chain(calibrated::remarks(run))
        .collect::<Vec<_>>()
        .join("\n");
    Table {
        caption: how(run),
        columns: vec![Column::text(""), Column::text("")],
        rows,
        note,
    }
}

/// Writes the CPU of the client per request; of a client that spins the time between requests is
/// left out.
fn client_cpu(run: &Run) -> String {
    let cost = run.client.cpu_us_per_request.map_or_else(none, micros);
    match run.client.spin {
        true => format!("{cost}, spinning left out"),
        false => cost,
    }
}

/// The rate beside the requested rate.
fn achieved(run: &Run) -> String {
    match run.offered_rate {
        Some(offered) => format!("{} of {}", rate(run.achieved_rate), rate(offered)),
        None => rate(run.achieved_rate),
    }
}

/// How the run was made, in one phrase.
fn how(run: &Run) -> String {
    let connections = &run.connections;
    let kind = match run.kind {
        Loop::Closed => "Closed loop",
        Loop::Open => "Open loop",
    };
    let kind = match run.offered_rate {
        Some(offered) => format!("{kind} at {}", rate(offered)),
        None => kind.to_owned(),
    };
    let plural = if connections.asked == 1 { "" } else { "s" };
    let mut text = format!("{kind}, {} connection{plural}", count(connections.asked));
    if run.protocol != Protocol::Http1 {
        text.push_str(&format!(", {}", run.protocol));
    }
    if !connections.keep_alive {
        text.push_str(", a new one for each request");
    }
    if connections.depth > 1 {
        let depth = connections.depth;
        text.push_str(&format!(", {depth} requests in flight on each"));
    }
    format!("{text}, {}", Unit::Seconds.format(run.duration_s))
}

fn banner(run: &Run) -> Banner {
    let tone = match run.verdict {
        Verdict::Valid => Tone::Good,
        Verdict::Suspect => Tone::Doubtful,
        Verdict::Invalid => Tone::Bad,
    };
    Banner {
        tone,
        title: run.verdict.to_string(),
        reasons: calibrated::sentences(run),
    }
}

/// `text` with a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    // A line that begins with a percent sign reads badly.
    capital(&text.replace(" %", "\u{a0}%")) + "."
}

/// `text` with a capital.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.collect::<String>() + letters.as_str()
}

/// From the schedule where there is one, else from the send.
fn main_latency(run: &Run) -> Option<&Latency> {
    run.latency_us
        .response
        .as_ref()
        .or(run.latency_us.service.as_ref())
}

fn figures(run: &Run) -> Vec<Figure> {
    let latency = main_latency(run);
    let time = |value: Option<f64>| value.map_or_else(none, micros);
    let errors = run.errors.total();
    let share = errors as f64 / run.accounting.issued.max(1) as f64;
    let error_note = if errors > 0 {
        format!("{} of all requests", percent(share))
    } else {
        String::new()
    };
    vec![
        Figure::new("requests per second", rate(run.achieved_rate)).with_note(
            match run.offered_rate {
                Some(offered) => format!("of {} asked for", rate(offered)),
                None => format!("{} in all", count(run.requests)),
            },
        ),
        Figure::new("median", time(latency.and_then(|latency| latency.p50))),
        Figure::new(
            "99th percentile",
            time(latency.and_then(|latency| latency.p99)),
        )
        .with_note(latency.map_or_else(String::new, |latency| {
            format!("{} at the longest", micros(latency.max))
        })),
        Figure::new("errors", count(errors)).with_note(error_note),
    ]
}

fn latency_table(run: &Run) -> Table {
    let latencies = &run.latency_us;
    let kinds = [
        ("from the scheduled send", &latencies.response),
        ("from the actual send", &latencies.service),
        ("send lag", &latencies.send_lag),
        ("… waiting for a connection", &latencies.waiting),
        ("… the client’s own lateness", &latencies.lateness),
        ("connecting", &latencies.connect),
        ("… full TLS handshakes", &latencies.full_handshake),
        ("… resumed TLS handshakes", &latencies.resumed_handshake),
    ];
    let row = |(name, latency): (&str, &Option<Latency>)| {
        let latency = (*latency)?;
        let time = |value: Option<f64>| value.map_or_else(none, micros);
        let Latency {
            mean,
            p50,
            p90,
            p95,
            p99,
            p999,
            max,
            ..
        } = latency;
        let times = [Some(mean), p50, p90, p95, p99, p999, Some(max)].map(time);
        Some(
            [name.to_owned(), count(latency.count)]
                .into_iter()
                .chain(times)
                .collect(),
        )
    };
    let titles = [
        "samples", "mean", "50 %", "90 %", "95 %", "99 %", "99.9 %", "longest",
    ];
    Table {
        caption: "Latency".to_owned(),
        columns: std::iter::once(Column::text(""))
            .chain(titles.map(Column::number))
            .collect(),
        rows: kinds.into_iter().filter_map(row).collect(),
        note: "A percentile with fewer than ten samples beyond it is not given.".to_owned(),
    }
}

fn errors_table(errors: &Errors, run: &Run) -> Table {
    let by_class = run.classes.iter().any(|class| class.errors.total() > 0);
    let row = |(kind, number): (&String, &u64)| {
        let example = run.error_examples.get(kind).cloned().unwrap_or_default();
        let class = by_class.then(|| visits::most_of(kind, run));
        let row = [kind_name(kind), count(*number), example].into_iter();
        (*number > 0).then(|| row.chain(class).collect())
    };
    let class = by_class.then(|| Column::text("of the classes"));
    let columns = [
        Column::text("kind"),
        Column::number("requests"),
        Column::text("for example"),
    ];
    Table {
        caption: "Errors".to_owned(),
        columns: columns.into_iter().chain(class).collect(),
        rows: errors.by_kind.iter().filter_map(row).collect(),
        note: String::new(),
    }
}

fn conditions(run: &Run) -> Table {
    let client = &run.client;
    let mut rows = vec![
        [
            "connections".to_owned(),
            words::connections(&run.connections),
        ],
        ["bytes received".to_owned(), bytes(run.bytes as f64)],
        [
            "client".to_owned(),
            format!(
                "{} thread{}, {} of CPU per request, the busiest thread at {} of a core",
                client.threads,
                if client.threads == 1 { "" } else { "s" },
                client.cpu_us_per_request.map_or_else(none, micros),
                percent(client.busiest_thread)
            ),
        ],
    ];
    if let Some(spun) = client.spun_us {
        let text = format!(
            "its threads never slept; {} of CPU, in which nothing had happened, are left out above",
            Unit::Seconds.format(spun as f64 / 1e6)
        );
        rows.push(["spinning".to_owned(), text]);
    }
    rows.extend(calibrated::row(run));
    if let Some(law) = &run.little {
        let text = format!(
            "{} requests in flight by rate and time, {} by {}, in {} windows",
            plain(law.found),
            plain(law.expected),
            match run.kind {
                Loop::Closed => "the plan",
                Loop::Open => "count",
            },
            count(law.windows)
        );
        rows.push(["Little’s law".to_owned(), text]);
    }
    rows.extend(visits::rows(run));
    if run.warmup_s > 0.0 {
        rows.push(["warm-up".to_owned(), Unit::Seconds.format(run.warmup_s)]);
    }
    if let Some(ramp) = run.ramp_down {
        let text = format!(
            "{}, {} requests that nothing else counts",
            Unit::Seconds.format(ramp.length_s),
            count(ramp.requests)
        );
        rows.push(["ramp-down".to_owned(), text]);
    }
    rows.extend(conditions::machine(&run.host));
    conditions::table(rows)
}
