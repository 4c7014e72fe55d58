//! Figures and counted requests for a collector: OTLP, in its JSON encoding
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).
//!
//! Names are those of `/metrics` without their ends for kind and unit, which OTLP has as fields; a
//! collector that writes for Prometheus puts them back.

use std::sync::Arc;

use millpond_http::WorkerGroup;
use serde_json::{Value, json};

use crate::figures::{Figure, FigureValue, Figures};
use crate::own_figures::OwnFigures;
use crate::request_tables::{Labels, RequestFamilyKind, RequestTables};

/// Sums count from the start of the process.
const CUMULATIVE: u8 = 2;

/// Names that OpenTelemetry has for what Prometheus writes with underscores.
const NAMES: [(&str, &str); 7] = [
    (
        "http_server_request_duration",
        "http.server.request.duration",
    ),
    ("http_request_method", "http.request.method"),
    ("url_scheme", "url.scheme"),
    ("http_response_status_code", STATUS),
    ("http_route", "http.route"),
    ("network_protocol_version", "network.protocol.version"),
    ("error_type", "error.type"),
];
/// The attribute that is a number.
const STATUS: &str = "http.response.status_code";

/// Returns what `/metrics` has as the body of a request to a collector. The times are when the
/// process began to count and now, in nanoseconds since 1970.
#[must_use]
pub fn otlp(served: &WorkerGroup, parts: &impl Figures, times: (u64, u64)) -> Value {
    let point = |labels: &Labels| {
        json!({
            "attributes": attributes(labels),
            "startTimeUnixNano": times.0.to_string(),
            "timeUnixNano": times.1.to_string(),
        })
    };
    let mut metrics = Vec::new();
    let tables = RequestTables::new(&served.requests(), |label| parts.route(label));
    for family in tables.families() {
        let series = family.series.iter();
        let (kind, points): (_, Vec<Value>) = match family.kind {
            RequestFamilyKind::Counter(of) => {
                let points =
                    series.map(|(labels, durations)| with(point(labels), count(of(durations))));
                ("sum", points.collect())
            }
            RequestFamilyKind::Histogram(boundaries) => {
                let bounds: Vec<f64> = boundaries.iter().map(|nanos| *nanos as f64 / 1e9).collect();
                let points = series.map(|(labels, durations)| {
                    let counts = durations.between(&boundaries).into_iter();
                    let value = json!({
                        "count": durations.requests().to_string(),
                        "sum": durations.nanos as f64 / 1e9,
                        "bucketCounts": counts.map(|count| count.to_string()).collect::<Vec<_>>(),
                        "explicitBounds": bounds,
                    });
                    with(point(labels), value)
                });
                ("histogram", points.collect())
            }
        };
        metrics.push(metric(family.metric, family.help, kind, points));
    }
    let mut add = |figure: &Figure<'_>| {
        let label = figure
            .label
            .map(|(name, value)| json!({"key": name, "value": {"stringValue": value}}));
        let value = match figure.value {
            FigureValue::Count(value) => count(value),
            FigureValue::Number(value) => json!({ "asDouble": value }),
        };
        let mut point = with(point(&Labels::new()), value);
        point["attributes"] = label.into_iter().collect();
        let kind = match figure.metric.ends_with("_total") {
            true => "sum",
            false => "gauge",
        };
        let made = metric(figure.metric, figure.help, kind, vec![point]);
        match metrics.last_mut() {
            // Figures of one name follow each other.
            Some(last) if last["name"] == made["name"] => {
                if let Some(points) = last[kind]["dataPoints"].as_array_mut() {
                    points.push(made[kind]["dataPoints"][0].clone());
                }
            }
            _ => metrics.push(made),
        }
    };
    served.stats().each(&mut add);
    parts.each(&mut add);
    OwnFigures.each(&mut add);
    let version = env!("CARGO_PKG_VERSION");
    let system = rustix::system::uname();
    let host = &*system.nodename().to_string_lossy();
    let instance = format!("{host}-{}-{}", std::process::id(), times.0);
    let of_program: Labels = vec![
        ("service.name", "millpond".into()),
        ("service.version", version.into()),
        // The counts of another process, here or elsewhere, are other series.
        ("service.instance.id", instance.into()),
        ("host.name", host.into()),
    ];
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&of_program)},
        "scopeMetrics": [{"scope": {"name": "millpond", "version": version}, "metrics": metrics}],
    }]})
}

/// A metric by its name for Prometheus.
fn metric(name: &str, help: &str, kind: &str, points: Vec<Value>) -> Value {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let units = [("_seconds", "s"), ("_bytes", "By")];
    let found = units
        .iter()
        .find_map(|(end, unit)| Some((name.strip_suffix(end)?, *unit)));
    let (name, unit) = found.unwrap_or((name, ""));
    let mut data = json!({});
    data["dataPoints"] = points.into();
    if kind != "gauge" {
        data["aggregationTemporality"] = CUMULATIVE.into();
    }
    if kind == "sum" {
        data["isMonotonic"] = true.into();
    }
    // A number of things has none: collectors would take the unit `1` for a ratio.
    json!({"name": renamed(name), "description": help.trim(), "unit": unit, kind: data})
}

/// A whole number; in JSON those of 64 bits are texts.
fn count(value: u64) -> Value {
    json!({ "asInt": value.to_string() })
}

/// A point with its value.
fn with(mut point: Value, value: Value) -> Value {
    if let (Value::Object(point), Value::Object(value)) = (&mut point, value) {
        point.extend(value);
    }
    point
}

fn renamed(name: &str) -> &str {
    let known = NAMES.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, name)| name)
}

fn attributes(labels: &Labels) -> Value {
    let attribute = |(name, value): &(&'static str, Arc<str>)| {
        let name = renamed(name);
        let kind = if name == STATUS {
            "intValue"
        } else {
            "stringValue"
        };
        json!({"key": name, "value": {kind: &**value}})
    };
    labels.iter().map(attribute).collect()
}
