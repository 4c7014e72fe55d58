//! Figures and counted requests as text: the format 0.0.4 of Prometheus, and OpenMetrics 1.0.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;

use millpond_http::{LATENCY_EDGES, Request, RequestCounts, Version};

use crate::figures::{Figure, FigureValue, RouteLabels};

/// Format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    Prometheus,
    OpenMetrics,
}

impl MetricsFormat {
    /// Returns the format that a client wants: OpenMetrics if its `Accept` names version 1.0.0 of
    /// it, and the other one no more than that.
    pub(crate) fn wanted(request: &Request<'_>) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        let lines = request.fields.get_all("accept");
        let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let (mut weight, mut version) = (1.0, "");
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name {
                    "q" => weight = value.parse().unwrap_or(0.0),
                    "version" => version = value.trim_matches('"'),
                    _ => {}
                }
            }
            match media_type {
                "application/openmetrics-text" if version == "1.0.0" => open = weight,
                "text/plain" => plain = weight,
                _ => {}
            }
        }
        match open > 0.0 && open >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Kind of a family of metrics.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricKind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// The text, as far as it is written.
pub(crate) struct MetricsText {
    text: String,
    format: MetricsFormat,
    /// The family of the last sample.
    family: String,
}

/// Boundaries of the duration of requests in OpenTelemetry, in nanoseconds.
const BOUNDARIES: [u64; 14] = [
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    75_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    7_500_000_000,
    10_000_000_000,
];

/// Every second edge, for times that are short beside those boundaries.
const FINER: usize = 2;

/// Requests with the same labels.
#[derive(Default)]
struct Durations {
    nanos: u64,
    body_bytes: u64,
    /// By [`LATENCY_EDGES`].
    buckets: Vec<u64>,
}

impl Durations {
    fn add(&mut self, counts: &RequestCounts) {
        self.nanos += counts.nanos;
        self.body_bytes += counts.body_bytes;
        self.buckets.resize(counts.buckets.len(), 0);
        for (sum, requests) in self.buckets.iter_mut().zip(counts.buckets) {
            *sum += requests;
        }
    }

    fn requests(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Requests by their labels, as they are written.
type ByLabels = BTreeMap<String, Durations>;

impl MetricsText {
    pub(crate) fn new(format: MetricsFormat) -> Self {
        let mut metrics = Self {
            text: String::new(),
            format,
            family: String::new(),
        };
        metrics.begin("target_info", MetricKind::Info, "The program.");
        let version = env!("CARGO_PKG_VERSION");
        let labels = labels(&[("service_name", "millpond"), ("service_version", version)]);
        metrics.sample("target_info", &labels, 1);
        metrics
    }

    /// Begins a family, unless it is the present one.
    fn begin(&mut self, metric: &str, kind: MetricKind, help: &str) {
        if self.family == metric {
            return;
        }
        metric.clone_into(&mut self.family);
        let is_open = self.format == MetricsFormat::OpenMetrics;
        let (suffix, name) = match kind {
            MetricKind::Counter => ("_total", "counter"),
            MetricKind::Gauge => ("", "gauge"),
            MetricKind::Histogram => ("", "histogram"),
            MetricKind::Info if is_open => ("_info", "info"),
            MetricKind::Info => ("", "gauge"),
        };
        let family = match is_open {
            true => metric.strip_suffix(suffix).unwrap_or(metric),
            false => metric,
        };
        let help = help.trim().replace('\\', "\\\\");
        let _ = writeln!(self.text, "# HELP {family} {help}");
        let _ = writeln!(self.text, "# TYPE {family} {name}");
        let mut units = ["seconds", "bytes"].into_iter();
        let unit = units.find(|unit| family.ends_with(&format!("_{unit}")));
        if let Some(unit) = unit.filter(|_| is_open) {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            labels => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    /// Writes a figure.
    pub(crate) fn figure(&mut self, figure: &Figure<'_>) {
        let kind = match figure.metric.ends_with("_total") {
            true => MetricKind::Counter,
            false => MetricKind::Gauge,
        };
        self.begin(figure.metric, kind, figure.help);
        let labels = figure
            .label
            .map_or_else(String::new, |label| labels(&[label]));
        match figure.value {
            FigureValue::Count(count) => self.sample(figure.metric, &labels, count),
            FigureValue::Number(number) => self.sample(figure.metric, &labels, number),
        }
    }

    /// Writes the requests, whose labels `route` explains.
    pub(crate) fn requests(
        &mut self,
        counts: &[RequestCounts],
        route: impl Fn(u32) -> RouteLabels,
    ) {
        let (mut of_http, mut of_route, mut of_client) =
            (ByLabels::new(), ByLabels::new(), ByLabels::new());
        for counts in counts {
            let route = match counts.label {
                RequestCounts::MERGED => RouteLabels {
                    route: Some(Arc::from("other")),
                    result: "other",
                    ..RouteLabels::default()
                },
                // The connection answered by itself.
                0 => RouteLabels {
                    result: match counts.status {
                        429 | 503 => "refused",
                        400.. => "error",
                        _ => "none",
                    },
                    ..RouteLabels::default()
                },
                label => route(label),
            };
            of_http
                .entry(http_labels(counts, &route))
                .or_default()
                .add(counts);
            of_route
                .entry(route_labels(&route, false))
                .or_default()
                .add(counts);
            of_client
                .entry(route_labels(&route, true))
                .or_default()
                .add(counts);
        }
        let metric = "http_server_request_duration_seconds";
        let help = "Time from the last byte of a request to the last byte of its response.";
        self.histograms(metric, help, &of_http, &BOUNDARIES);
        let finer: Vec<u64> = LATENCY_EDGES.into_iter().step_by(FINER).collect();
        let metric = "millpond_request_duration_seconds";
        let help = "The same time, finer, by route and result.";
        self.histograms(metric, help, &of_route, &finer);
        let metric = "millpond_requests_total";
        let help = "Requests that were answered or given up.";
        self.counters(metric, help, &of_client, Durations::requests);
        let metric = "millpond_response_body_bytes_total";
        let help = "Bytes of responses without their heads.";
        self.counters(metric, help, &of_client, |durations| durations.body_bytes);
    }

    fn counters(&mut self, metric: &str, help: &str, all: &ByLabels, of: fn(&Durations) -> u64) {
        self.begin(metric, MetricKind::Counter, help);
        for (labels, durations) in all {
            self.sample(metric, labels, of(durations));
        }
    }

    fn histograms(&mut self, metric: &str, help: &str, all: &ByLabels, boundaries: &[u64]) {
        self.begin(metric, MetricKind::Histogram, help);
        let (bucket, sum, count) = ["_bucket", "_sum", "_count"]
            .map(|part| format!("{metric}{part}"))
            .into();
        for (labels, durations) in all {
            let comma = if labels.is_empty() { "" } else { "," };
            let (mut below, mut at) = (0, 0);
            for boundary in boundaries {
                while LATENCY_EDGES.get(at).is_some_and(|edge| edge <= boundary) {
                    below += durations.buckets[at];
                    at += 1;
                }
                let seconds = *boundary as f64 / 1e9;
                let le = match self.format {
                    MetricsFormat::Prometheus => format!("{seconds}"),
                    MetricsFormat::OpenMetrics => format!("{seconds:?}"),
                };
                self.sample(&bucket, &format!("{labels}{comma}le=\"{le}\""), below);
            }
            let requests = durations.requests();
            self.sample(&bucket, &format!("{labels}{comma}le=\"+Inf\""), requests);
            self.sample(&sum, labels, durations.nanos as f64 / 1e9);
            self.sample(&count, labels, requests);
        }
    }

    /// Ends the text.
    pub(crate) fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Labels as they are written.
fn labels(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        let comma = if text.is_empty() { "" } else { "," };
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(text, "{comma}{name}=\"{value}\"");
    }
    text
}

/// Labels by the conventions of OpenTelemetry. A request that got no response has no status.
fn http_labels(counts: &RequestCounts, route: &RouteLabels) -> String {
    let status = counts.status.to_string();
    let mut all = vec![
        ("http_request_method", counts.method),
        (
            "url_scheme",
            if counts.is_secure { "https" } else { "http" },
        ),
    ];
    if counts.status != 0 {
        all.push(("http_response_status_code", &status));
    }
    if let Some(route) = &route.route {
        all.push(("http_route", route));
    }
    if let Some(version) = counts.version {
        let version = match version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
        };
        all.push(("network_protocol_version", version));
    }
    if counts.status >= 500 {
        all.push(("error_type", &status));
    }
    if let Some(site) = &route.site {
        all.push(("site", site));
    }
    labels(&all)
}

fn route_labels(route: &RouteLabels, with_client: bool) -> String {
    let mut all = Vec::new();
    if let Some(site) = &route.site {
        all.push(("site", &**site));
    }
    if let Some(route) = &route.route {
        all.push(("route", route));
    }
    let result = if route.result.is_empty() {
        "none"
    } else {
        route.result
    };
    all.push(("result", result));
    if with_client {
        all.push(("crawler", if route.is_crawler { "true" } else { "false" }));
    }
    labels(&all)
}
