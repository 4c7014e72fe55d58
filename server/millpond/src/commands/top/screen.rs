//! The screen of `millpond top`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;

use base_chart::number;

use super::figures::{MetricValues, quantile};

/// A screen for what was added between two readings.
pub(super) struct Screen {
    pub(super) address: SocketAddr,
    /// Time between them.
    pub(super) seconds: f64,
    /// Routes that have a line.
    pub(super) routes: usize,
}

/// Letters of a name that are shown.
const LONGEST_NAME: usize = 60;
const REQUESTS: &str = "millpond_requests_total";
const TIMES: &str = "millpond_request_duration_seconds_bucket";

/// A line of the table.
struct RouteLine {
    name: String,
    rate: f64,
    /// Share of hits among what memory could have answered.
    hits: Option<f64>,
    made: f64,
    failed: f64,
    median: Option<f64>,
    p99: Option<f64>,
}

impl Screen {
    pub(super) fn text(&self, before: &MetricValues, now: &MetricValues) -> String {
        let rate = |name: &str| {
            let value = |values: &MetricValues| values.sum(name, |_| true);
            grown(value(before), value(now)) / self.seconds
        };
        let by_result = |result: &str| {
            let value = |values: &MetricValues| {
                values.sum(REQUESTS, |labels| {
                    labels.get("result").is_some_and(|of| of == result)
                })
            };
            grown(value(before), value(now)) / self.seconds
        };
        let gauge = |name: &str| now.value(name).unwrap_or(0.0);
        let mut text = String::new();
        let (hits, asked) = (by_result("hit"), ["hit", "miss", "waited"].map(by_result));
        let _ = writeln!(
            text,
            "{}   {} requests, {} of pages from memory, {} bytes, {} connections",
            self.address,
            number::rate(rate(REQUESTS)),
            share(hits, asked.iter().sum()),
            byte_rate(rate("millpond_sent_bytes_total")),
            number::count(gauge("millpond_connections") as u64),
        );
        let age = now.value("millpond_feed_age_seconds");
        let _ = writeln!(
            text,
            "pages made {}, running {}, waiting {}, refused {}   feed {}   live streams {}",
            number::rate(rate("millpond_fills_total")),
            gauge("millpond_fills_running"),
            gauge("millpond_fills_waiting"),
            number::rate(
                rate("millpond_fills_refused_total") + rate("millpond_fills_expired_total")
            ),
            age.map_or_else(|| "not heard".to_owned(), number::seconds),
            gauge("millpond_live_streams"),
        );
        let _ = writeln!(
            text,
            "CPU {} of a core, memory {}, of which {} are {} pages and results\n",
            number::percent(rate("process_cpu_seconds_total")),
            number::bytes(gauge("process_resident_memory_bytes")),
            number::bytes(gauge("millpond_store_bytes")),
            number::count(gauge("millpond_store_entries") as u64),
        );
        self.table(&mut text, before, now);
        text
    }

    fn table(&self, text: &mut String, before: &MetricValues, now: &MetricValues) {
        let mut lines = self.lines(before, now);
        lines.sort_by(|one, other| other.rate.total_cmp(&one.rate));
        let left = lines.len().saturating_sub(self.routes);
        lines.truncate(self.routes);
        let cells = lines.iter().map(|line| {
            [
                line.name.clone(),
                number::rate(line.rate),
                line.hits.map_or_else(number::none, number::percent),
                number::rate(line.made),
                number::rate(line.failed),
                line.median.map_or_else(number::none, up_to),
                line.p99.map_or_else(number::none, up_to),
            ]
        });
        let heads = [
            "route",
            "requests",
            "hits",
            "made",
            "failed",
            "median ≤",
            "99 % ≤",
        ];
        let rows: Vec<[String; 7]> = [heads.map(str::to_owned)]
            .into_iter()
            .chain(cells)
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..heads.len()).filter_map(width).collect();
        for row in &rows {
            let _ = write!(text, "{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                let _ = write!(text, "  {cell:>width$}");
            }
            text.push('\n');
        }
        if rows.len() == 1 {
            text.push_str("no request in this time\n");
        }
        if left > 0 {
            let _ = writeln!(text, "and {left} more; --routes N shows more of them");
        }
    }

    /// The routes that were asked for, and what is no page.
    fn lines(&self, before: &MetricValues, now: &MetricValues) -> Vec<RouteLine> {
        let names: BTreeSet<String> = now
            .of(REQUESTS)
            .iter()
            .map(|(labels, _)| name(labels))
            .collect();
        let lines = names.into_iter().map(|route| self.line(route, before, now));
        lines.filter(|line| line.rate > 0.0).collect()
    }

    fn line(&self, route: String, before: &MetricValues, now: &MetricValues) -> RouteLine {
        let rate = |results: &[&str]| {
            let value = |values: &MetricValues| {
                values.sum(REQUESTS, |labels| {
                    let is_wanted = |of: &String| results.is_empty() || results.contains(&&**of);
                    name(labels) == route && labels.get("result").is_some_and(is_wanted)
                })
            };
            grown(value(before), value(now)) / self.seconds
        };
        let (hits, asked) = (rate(&["hit"]), rate(&["hit", "miss", "waited"]));
        let buckets = |values: &MetricValues| values.buckets(TIMES, |labels| name(labels) == route);
        let (was, is) = (buckets(before), buckets(now));
        RouteLine {
            rate: rate(&[]),
            hits: (asked > 0.0).then(|| hits / asked),
            made: rate(&["miss", "private", "bypass"]),
            failed: rate(&["refused", "error"]),
            median: quantile(&was, &is, 0.5),
            p99: quantile(&was, &is, 0.99),
            name: route,
        }
    }
}

/// The name under which requests with these labels are shown.
fn name(labels: &std::collections::BTreeMap<String, String>) -> String {
    let site = labels
        .get("site")
        .map_or_else(String::new, |site| format!("{site}: "));
    let result = labels.get("result").map_or("none", String::as_str);
    let name = match labels.get("route") {
        // A stream lasts as long as its page is looked at.
        Some(route) if result != "live" => format!("{site}{route}"),
        _ => format!("{site}({result})"),
    };
    let shown = name.chars().filter(|letter| !letter.is_control());
    shown.take(LONGEST_NAME).collect()
}

/// Returns how much a count has grown; one that went down has begun anew.
fn grown(before: f64, now: f64) -> f64 {
    if now < before { now } else { now - before }
}

fn share(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => number::percent(part / whole),
        false => number::none(),
    }
}

fn byte_rate(rate: f64) -> String {
    format!("{}/s", number::bytes(rate))
}

/// The edge of a bucket; there is none above the last.
fn up_to(seconds: f64) -> String {
    match seconds.is_finite() {
        true => number::seconds(seconds),
        false => "over 100 s".to_owned(),
    }
}
