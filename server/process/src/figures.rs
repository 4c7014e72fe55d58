//! Figures of the parts of a process. `/counters` and `/metrics` are made of one table.

use std::sync::Arc;

use millpond_http::Stats;
use serde_json::{Map, Value};

/// A figure of what a part has done since the start, or of its present state.
#[derive(Clone, Copy, Debug)]
pub struct Figure<'f> {
    /// Name in `/counters`.
    pub name: &'f str,
    /// Name as a metric of Prometheus. Its end is its kind and its unit: `_total` of a counter,
    /// `_seconds`, `_bytes`.
    pub metric: &'f str,
    /// Meaning in a sentence.
    pub help: &'f str,
    /// Label that tells figures of one name apart, with its value.
    pub label: Option<(&'f str, &'f str)>,
    /// The value.
    pub value: FigureValue,
}

/// Value of a [`Figure`].
#[derive(Clone, Copy, Debug)]
pub enum FigureValue {
    /// A number of things.
    Count(u64),
    /// Another number, such as of seconds.
    Number(f64),
}

impl From<u64> for FigureValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

/// Meaning of the [label](millpond_http::RequestCounts::label) by which a request is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteLabels {
    /// The site, where there are several.
    pub site: Option<Arc<str>>,
    /// The route, never a path of a request.
    pub route: Option<Arc<str>>,
    /// How the request was answered; empty if that is not known.
    pub result: &'static str,
    /// True if the client says that it is a crawler.
    pub is_crawler: bool,
}

/// A part that gives figures.
pub trait Figures {
    /// Gives each figure to `add`. Those with one metric name follow each other.
    fn each(&self, add: &mut dyn FnMut(&Figure<'_>));

    /// Returns the meaning of the label of a response.
    fn route(&self, _label: u32) -> RouteLabels {
        RouteLabels::default()
    }
}

/// Figures of the connections; refusals by their statuses.
impl Figures for Stats {
    fn each(&self, add: &mut dyn FnMut(&Figure<'_>)) {
        let mut gauge = |name, metric, help, count: usize| {
            let value = FigureValue::Count(count as u64);
            let label = None;
            add(&Figure {
                name,
                metric,
                help,
                label,
                value,
            });
        };
        gauge(
            "open",
            "millpond_connections",
            "Connections open now.",
            self.open,
        );
        let help = "Series in which workers count requests.";
        gauge("series", "millpond_request_series", help, self.series);
        let merged = (
            "requests_merged",
            "millpond_requests_merged_total",
            "Requests that share a series, because there are too many.",
            self.requests_merged,
        );
        for (name, metric, help, count) in self.counters().chain([merged]) {
            add(&Figure {
                name,
                metric,
                help,
                label: None,
                value: count.into(),
            });
        }
        for (status, count) in &self.refused {
            add(&Figure {
                name: "refused",
                metric: "millpond_requests_refused_total",
                help: "Requests refused before they were given to the service.",
                label: Some(("status", &status.to_string())),
                value: (*count).into(),
            });
        }
    }
}

/// Adds a figure to a JSON object.
pub(crate) fn insert(figures: &mut Map<String, Value>, figure: &Figure<'_>) {
    let value = match figure.value {
        FigureValue::Count(count) => count.into(),
        FigureValue::Number(number) => number.into(),
    };
    let Some((_, label)) = figure.label else {
        figures.insert(figure.name.to_owned(), value);
        return;
    };
    let of_name = figures
        .entry(figure.name)
        .or_insert_with(|| Map::new().into());
    if let Some(of_name) = of_name.as_object_mut() {
        of_name.insert(label.to_owned(), value);
    }
}
