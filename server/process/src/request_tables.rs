//! The counted requests by what tells them apart, as families of metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use millpond_http::{LATENCY_EDGES, RequestCounts, Version};

use crate::figures::RouteLabels;

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
pub(crate) struct Durations {
    pub(crate) nanos: u64,
    pub(crate) body_bytes: u64,
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

    pub(crate) fn requests(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the requests up to each boundary and above the one before; at last those above all.
    pub(crate) fn between(&self, boundaries: &[u64]) -> Vec<u64> {
        let mut between = vec![0; boundaries.len() + 1];
        let edges = LATENCY_EDGES.into_iter().chain([u64::MAX]);
        for (edge, requests) in edges.zip(&self.buckets) {
            between[boundaries.partition_point(|boundary| *boundary < edge)] += requests;
        }
        between
    }
}

/// Names and values of labels.
pub(crate) type Labels = Vec<(&'static str, Arc<str>)>;

/// Requests by their labels.
type ByLabels = BTreeMap<Labels, Durations>;

/// The counted requests, three times: by the conventions of OpenTelemetry, by route and result, and
/// by kind of client too.
#[derive(Default)]
pub(crate) struct RequestTables {
    of_http: ByLabels,
    of_route: ByLabels,
    of_client: ByLabels,
}

/// A metric of requests, with a series for each combination of labels.
pub(crate) struct RequestFamily<'t> {
    pub(crate) metric: &'static str,
    pub(crate) help: &'static str,
    pub(crate) series: &'t ByLabels,
    pub(crate) kind: RequestFamilyKind,
}

/// Kind of a metric of requests.
pub(crate) enum RequestFamilyKind {
    /// Of times, with these boundaries in nanoseconds.
    Histogram(Vec<u64>),
    /// Of what this gives.
    Counter(fn(&Durations) -> u64),
}

impl RequestTables {
    /// The requests, whose labels `route` explains.
    pub(crate) fn new(counts: &[RequestCounts], route: impl Fn(u32) -> RouteLabels) -> Self {
        let mut tables = Self::default();
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
            for (table, labels) in [
                (&mut tables.of_http, http_labels(counts, &route)),
                (&mut tables.of_route, route_labels(&route, false)),
                (&mut tables.of_client, route_labels(&route, true)),
            ] {
                table.entry(labels).or_default().add(counts);
            }
        }
        tables
    }

    /// Returns the metrics.
    pub(crate) fn families(&self) -> [RequestFamily<'_>; 4] {
        let finer = LATENCY_EDGES.into_iter().step_by(FINER).collect();
        [
            RequestFamily {
                metric: "http_server_request_duration_seconds",
                help: "Time from the last byte of a request to the last byte of its response.",
                series: &self.of_http,
                kind: RequestFamilyKind::Histogram(BOUNDARIES.to_vec()),
            },
            RequestFamily {
                metric: "millpond_request_duration_seconds",
                help: "The same time, finer, by route and result.",
                series: &self.of_route,
                kind: RequestFamilyKind::Histogram(finer),
            },
            RequestFamily {
                metric: "millpond_requests_total",
                help: "Requests that were answered or given up.",
                series: &self.of_client,
                kind: RequestFamilyKind::Counter(Durations::requests),
            },
            RequestFamily {
                metric: "millpond_response_body_bytes_total",
                help: "Bytes of responses without their heads.",
                series: &self.of_client,
                kind: RequestFamilyKind::Counter(|durations| durations.body_bytes),
            },
        ]
    }
}

/// Labels by the conventions of OpenTelemetry. A request that got no response has no status.
fn http_labels(counts: &RequestCounts, route: &RouteLabels) -> Labels {
    let scheme = if counts.is_secure { "https" } else { "http" };
    let status = Arc::<str>::from(counts.status.to_string());
    let mut all: Labels = vec![
        ("http_request_method", counts.method.into()),
        ("url_scheme", scheme.into()),
    ];
    if counts.status != 0 {
        all.push(("http_response_status_code", status.clone()));
    }
    if let Some(route) = &route.route {
        all.push(("http_route", route.clone()));
    }
    if let Some(version) = counts.version {
        let version = match version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
        };
        all.push(("network_protocol_version", version.into()));
    }
    if counts.status >= 500 {
        all.push(("error_type", status));
    }
    if let Some(site) = &route.site {
        all.push(("site", site.clone()));
    }
    all
}

fn route_labels(route: &RouteLabels, with_client: bool) -> Labels {
    let mut all = Labels::new();
    if let Some(site) = &route.site {
        all.push(("site", site.clone()));
    }
    if let Some(route) = &route.route {
        all.push(("route", route.clone()));
    }
    let result = if route.result.is_empty() {
        "none"
    } else {
        route.result
    };
    all.push(("result", result.into()));
    if with_client {
        let is_crawler = if route.is_crawler { "true" } else { "false" };
        all.push(("crawler", is_crawler.into()));
    }
    all
}
