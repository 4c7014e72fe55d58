//! The answers for the owner of a running server (`[admin]`), on a separate address.
//!
//! The answers are HTTP for programs on the same machine. A page in a browser must not reach them
//! under a name of its own (DNS rebinding), so a host name other than `localhost` is refused.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use millpond_http::{Limits, Listener, Reply, Request, Response, Service, Stats, WorkerGroup};
use millpond_site::{ExplainedVisitor, Sites};

use crate::events::Event;
use crate::failure::{CommandFailure, CommandResult};
use crate::server::{HttpServer, bind};

/// Explains an address of the server. Its parameters are `target`, `host` and the visitor: `as`
/// with the visitor's claims, or `by=cookie` for the visitor of the request's own cookie. Without
/// `by=cookie` the cookie is ignored: a browser sends the cookies of all sites that it has visited
/// on this machine.
pub(crate) const EXPLAIN: &str = "/explain";
/// The counters of the HTTP server, as a JSON object.
const COUNTERS: &str = "/counters";

/// Starts answering on `address`, with one thread.
pub(crate) fn start(
    address: SocketAddr,
    sites: &Arc<Sites>,
    served: &Arc<WorkerGroup>,
    events: &Sender<Event>,
) -> CommandResult<HttpServer> {
    let listeners = bind(address, 1, "admin.listen")?;
    let listeners = listeners.into_iter().map(Listener::from).collect();
    let service = {
        let (sites, served) = (Arc::clone(sites), Arc::clone(served));
        move || Admin {
            sites: Arc::clone(&sites),
            served: Arc::clone(&served),
        }
    };
    let limits = Limits {
        connections: 64,
        ..Limits::default()
    };
    HttpServer::start_with(service, "admin", listeners, &limits, events).map_err(|error| {
        CommandFailure::new(format!(
            "cannot answer on {address} (admin.listen): {error}"
        ))
    })
}

struct Admin {
    sites: Arc<Sites>,
    served: Arc<WorkerGroup>,
}

impl Service for Admin {
    fn call(&self, request: &Request<'_>) -> Reply {
        if !request.host().is_some_and(is_own) {
            return text(421, "Ask by address or as localhost.\n");
        }
        if request.method != "GET" {
            return text(405, "Only GET.\n");
        }
        if request.path == COUNTERS {
            return json(&counters(&self.served.stats()));
        }
        if request.path != EXPLAIN {
            return text(404, "There are /explain?target=/path and /counters here.\n");
        }
        let given = |name: &str| {
            let query = request.query.unwrap_or_default().as_bytes();
            form_urlencoded::parse(query)
                .find_map(|(found, value)| (found == name).then_some(value))
        };
        let Some(target) = given("target").filter(|target| target.starts_with('/')) else {
            return text(400, "/explain wants target=/path, percent-encoded.\n");
        };
        let claims = given("as");
        let visitor = match &claims {
            Some(claims) => ExplainedVisitor::Claims(claims),
            None if given("by").is_some_and(|by| by == "cookie") => {
                ExplainedVisitor::Cookie(request)
            }
            None => ExplainedVisitor::Anonymous,
        };
        match self
            .sites
            .explain(given("host").as_deref(), &target, visitor)
        {
            Err(sentence) => text(400, &format!("{sentence}\n")),
            Ok(Some(explanation)) => json(&explanation),
            Ok(None) => text(404, "No site has that host.\n"),
        }
    }
}

fn json(value: &serde_json::Value) -> Reply {
    Response::builder(200)
        .field("Content-Type", "application/json")
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .body(format!("{value:#}\n"))
        .into()
}

/// The names are those of [`Stats`].
fn counters(stats: &Stats) -> serde_json::Value {
    let refused: serde_json::Map<_, _> = stats
        .refused
        .iter()
        .map(|(status, count)| (status.to_string(), (*count).into()))
        .collect();
    serde_json::json!({
        "open": stats.open,
        "accepted": stats.accepted,
        "over_limit": stats.over_limit,
        "accept_errors": stats.accept_errors,
        "requests": stats.requests,
        "bytes_in": stats.bytes_in,
        "bytes_out": stats.bytes_out,
        "refused": refused,
        "panics": stats.panics,
        "idle_timeouts": stats.idle_timeouts,
        "head_timeouts": stats.head_timeouts,
        "body_timeouts": stats.body_timeouts,
        "heads_ended": stats.heads_ended,
        "bodies_ended": stats.bodies_ended,
        "bodies_in_files": stats.bodies_in_files,
        "write_timeouts": stats.write_timeouts,
        "waits_awake": stats.waits_awake,
    })
}

fn text(status: u16, sentence: &str) -> Reply {
    Response::text(status, sentence).into()
}

/// Whether a Host field is an address or `localhost`, with a port or without.
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
