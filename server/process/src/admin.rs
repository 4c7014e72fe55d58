//! The answers for the owner of a running process, on a separate address.
//!
//! The answers are HTTP for programs on the same machine. A page in a browser must not reach them
//! under a name of its own (DNS rebinding), so a host name other than `localhost` is refused.

use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;

use millpond_http::{Reply, Request, Response, Service, WorkerGroup};
use serde_json::{Map, Value};

use crate::figures::insert;
use crate::metrics::{MetricsFormat, MetricsText};
use crate::own_figures::OwnFigures;
use crate::request_tables::RequestTables;
use crate::{Figure, Figures};

/// The figures of all parts, as a JSON object.
const COUNTERS: &str = "/counters";
/// Figures and the requests by route, for Prometheus.
const METRICS: &str = "/metrics";

/// 200: the process answers.
const LIVE: &str = "/live";
/// 200, or 503 with the reason why no visitors should be sent here.
const READY: &str = "/ready";

/// Answers the owner: the counters, the state, and what `other` answers by its path.
pub struct Admin<P, R, F> {
    served: Arc<WorkerGroup>,
    parts: P,
    unready: R,
    other: F,
}

impl<P, R, F> Admin<P, R, F> {
    /// Answers with the counters of `served` and the figures of `parts`. `unready` gives a reason
    /// why no visitors should be sent here, if there is one; `other` answers the other addresses.
    pub const fn new(served: Arc<WorkerGroup>, parts: P, unready: R, other: F) -> Self {
        Self {
            served,
            parts,
            unready,
            other,
        }
    }
}

impl<P: Figures, R, F> Admin<P, R, F> {
    fn each_figure(&self, add: &mut dyn FnMut(&Figure<'_>)) {
        self.served.stats().each(add);
        self.parts.each(add);
        OwnFigures.each(add);
    }

    fn metrics(&self, format: MetricsFormat) -> Reply {
        let mut metrics = MetricsText::new(format);
        let requests = self.served.requests();
        metrics.requests(&RequestTables::new(&requests, |label| {
            self.parts.route(label)
        }));
        self.each_figure(&mut |figure| metrics.figure(figure));
        Response::builder(200)
            .field("Content-Type", format.media_type())
            .field("Cache-Control", "no-store")
            .field("X-Content-Type-Options", "nosniff")
            .body(metrics.finish())
            .into()
    }
}

impl<P, R, F> Service for Admin<P, R, F>
where
    P: Figures + 'static,
    R: Fn() -> Option<String> + 'static,
    F: Fn(&Request<'_>) -> Reply + 'static,
{
    fn call(&self, request: &Request<'_>) -> Reply {
        if !request.host().is_some_and(is_own) {
            return Response::text(421, "Ask by address or as localhost.\n").into();
        }
        match request.path {
            COUNTERS | METRICS | LIVE | READY if request.method != "GET" => only_get().into(),
            COUNTERS => {
                let mut figures = Map::new();
                self.each_figure(&mut |figure| insert(&mut figures, figure));
                json(&figures.into()).into()
            }
            METRICS => self.metrics(MetricsFormat::wanted(request)),
            LIVE => state(200, "live"),
            READY => {
                let draining = || self.served.is_shutdown().then(|| "draining".to_owned());
                match draining().or_else(&self.unready) {
                    Some(reason) => state(503, &reason),
                    None => state(200, "ready"),
                }
            }
            _ => (self.other)(request),
        }
    }
}

/// Returns the answer to another method than GET where nothing else is answered.
#[must_use]
pub fn only_get() -> Response {
    Response::text(405, "Only GET.\n")
}

/// A state, which no cache keeps.
fn state(status: u16, state: &str) -> Reply {
    Response::builder(status)
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("Cache-Control", "no-store")
        .body(format!("{state}\n"))
        .into()
}

/// Returns a response with a JSON document, which no cache keeps.
pub fn json(value: &Value) -> Response {
    Response::builder(200)
        .field("Content-Type", "application/json")
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .body(format!("{value:#}\n"))
}

/// True if a Host field is an address or `localhost`, with a port or without.
fn is_own(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || IpAddr::from_str(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn names_from_outside_are_not_this_machines_own() {
        for own in [
            "127.0.0.1:9180",
            "localhost",
            "LocalHost:1",
            "[::1]:9180",
            "10.0.0.7",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "",
            "example.org",
            "127.0.0.1.example.org:80",
            "localhost.example.org",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
