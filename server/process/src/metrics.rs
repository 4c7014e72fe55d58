//! Figures and counted requests as text: the format 0.0.4 of Prometheus, and OpenMetrics 1.0.

use std::fmt::{Display, Write as _};

use millpond_http::Request;

use crate::figures::{Figure, FigureValue};
use crate::request_tables::{RequestFamily, RequestFamilyKind, RequestTables};

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
        let labels = labels(figure.label.as_slice());
        match figure.value {
            FigureValue::Count(count) => self.sample(figure.metric, &labels, count),
            FigureValue::Number(number) => self.sample(figure.metric, &labels, number),
        }
    }

    /// Writes the requests.
    pub(crate) fn requests(&mut self, tables: &RequestTables) {
        for family in tables.families() {
            match &family.kind {
                RequestFamilyKind::Histogram(boundaries) => self.histograms(&family, boundaries),
                RequestFamilyKind::Counter(of) => {
                    self.begin(family.metric, MetricKind::Counter, family.help);
                    for (all, durations) in family.series {
                        self.sample(family.metric, &labels(all), of(durations));
                    }
                }
            }
        }
    }

    fn histograms(&mut self, family: &RequestFamily<'_>, boundaries: &[u64]) {
        let metric = family.metric;
        self.begin(metric, MetricKind::Histogram, family.help);
        let (bucket, sum, count) = ["_bucket", "_sum", "_count"]
            .map(|part| format!("{metric}{part}"))
            .into();
        for (all, durations) in family.series {
            let labels = labels(all);
            let comma = if labels.is_empty() { "" } else { "," };
            let mut below = 0;
            for (boundary, requests) in boundaries.iter().zip(durations.between(boundaries)) {
                below += requests;
                let seconds = *boundary as f64 / 1e9;
                let le = match self.format {
                    MetricsFormat::Prometheus => format!("{seconds}"),
                    MetricsFormat::OpenMetrics => format!("{seconds:?}"),
                };
                self.sample(&bucket, &format!("{labels}{comma}le=\"{le}\""), below);
            }
            let requests = durations.requests();
            self.sample(&bucket, &format!("{labels}{comma}le=\"+Inf\""), requests);
            self.sample(&sum, &labels, durations.nanos as f64 / 1e9);
            self.sample(&count, &labels, requests);
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
fn labels<V: AsRef<str>>(labels: &[(&str, V)]) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        let comma = if text.is_empty() { "" } else { "," };
        let value = value
            .as_ref()
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let _ = write!(text, "{comma}{name}=\"{value}\"");
    }
    text
}
