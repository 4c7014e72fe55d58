//! The answers for the owner of a running server (`[admin]`), on a separate address.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use millpond_console::Console;
use millpond_http::{Limits, Listener, Request, Response, Service as _, WorkerGroup};
use millpond_process::{Admin, Figures, Workers, json, only_get};
use millpond_site::{ExplainedVisitor, SiteStats, Sites};
use serde_json::{Map, Value};

use crate::events::Event;
use crate::failure::{CommandFailure, CommandResult};
use crate::server;

/// Explains an address of the server. Its parameters are `target`, `host` and the visitor: `as`
/// with the visitor's claims, or `by=cookie` for the visitor of the request's own cookie. Without
/// `by=cookie` the cookie is ignored: a browser sends the cookies of all sites that it has visited
/// on this machine.
pub(crate) const EXPLAIN: &str = "/explain";

/// State by which `/ready` goes.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    /// True once the server is to end.
    pub(crate) is_ending: AtomicBool,
    /// The age of the feed that is too old; zero is none.
    pub(crate) max_feed_age: Duration,
}

/// Starts answering on `sockets`, each with a thread.
pub(crate) fn start(
    sockets: Vec<TcpListener>,
    readiness: &Arc<Readiness>,
    (sites, console): (&Arc<Sites>, Option<&Arc<Console>>),
    served: &Arc<WorkerGroup>,
    events: &Sender<Event>,
) -> CommandResult<Workers> {
    let listeners = sockets.into_iter().map(Listener::from).collect();
    let service = {
        let (sites, served, readiness) =
            (Arc::clone(sites), Arc::clone(served), Arc::clone(readiness));
        let console = console.cloned();
        move || {
            let (asked, explained, readiness) = (
                Arc::clone(&sites),
                Arc::clone(&sites),
                Arc::clone(&readiness),
            );
            let unready = move || match readiness.is_ending.load(Ordering::Acquire) {
                true => Some("draining".to_owned()),
                false => asked.unready(readiness.max_feed_age),
            };
            let console = console.as_ref().map(|console| console.service());
            let other = move |request: &Request<'_>| match (request.path, &console) {
                (EXPLAIN, _) if request.method != "GET" => only_get().into(),
                (EXPLAIN, _) => explain(&explained, request).into(),
                (_, Some(console)) => console.call(request),
                _ if request.method != "GET" => only_get().into(),
                _ => {
                    let paths =
                        "There are /explain?target=/path, /counters, /live and /ready here.\n";
                    Response::text(404, paths).into()
                }
            };
            let parts = SiteFigures(Arc::clone(&sites));
            Admin::new(Arc::clone(&served), parts, unready, other)
        }
    };
    let limits = Limits {
        connections: 64,
        // A program that waits for an answer must not hold up the end.
        drain_timeout: Duration::from_secs(1),
        ..Limits::default()
    };
    server::start(service, "admin", listeners, &limits, events).map_err(|error| {
        CommandFailure::new(format!("cannot answer the owner (admin.listen): {error}"))
    })
}

/// Figures of what waits for its turn and of live pages, of all sites together.
struct SiteFigures(Arc<Sites>);

impl Figures for SiteFigures {
    fn add_to(&self, figures: &mut Map<String, Value>) {
        let sites = self.0.stats();
        let mut add = |name: &str, of: fn(&SiteStats) -> u64| {
            let sum = sites.iter().map(of).sum::<u64>();
            figures.insert(name.to_owned(), sum.into());
        };
        add("fills_running", |site| site.admission.running as u64);
        add("fills_waiting", |site| site.admission.waiting as u64);
        add("fills", |site| site.admission.finished);
        add("fills_refused", |site| site.admission.refused);
        add("fills_expired", |site| site.admission.expired);
        add("fills_unproven", |site| site.store.unproven);
        add("live_streams", |site| site.live.streams as u64);
        add("live_pages", |site| site.live.pages as u64);
        add("live_events", |site| site.live.events);
        add("live_turned_away", |site| site.live.shed);
    }
}

/// Explains an address.
fn explain(sites: &Sites, request: &Request<'_>) -> Response {
    let given = |name: &str| {
        let query = request.query.unwrap_or_default().as_bytes();
        form_urlencoded::parse(query).find_map(|(found, value)| (found == name).then_some(value))
    };
    let Some(target) = given("target").filter(|target| target.starts_with('/')) else {
        return Response::text(400, "/explain wants target=/path, percent-encoded.\n");
    };
    let claims = given("as");
    let visitor = match &claims {
        Some(claims) => ExplainedVisitor::Claims(claims),
        None if given("by").is_some_and(|by| by == "cookie") => ExplainedVisitor::Cookie(request),
        None => ExplainedVisitor::Anonymous,
    };
    match sites.explain(given("host").as_deref(), &target, visitor) {
        Err(sentence) => Response::text(400, &format!("{sentence}\n")),
        Ok(Some(explanation)) => json(&explanation),
        Ok(None) => Response::text(404, "No site has that host.\n"),
    }
}
