//! The answers for the owner of a running server (`[admin]`), on a separate address.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use millpond_console::Console;
use millpond_http::{Limits, Listener, Request, Response, Service as _, WorkerGroup};
use millpond_process::{Admin, Figure, FigureValue, Figures, RouteLabels, Workers, json, only_get};
use millpond_site::{ExplainedVisitor, SiteStats, Sites};

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
                    let paths = "There are /explain?target=/path, /counters, /metrics, /live and /ready here.\n";
                    Response::text(404, paths).into()
                }
            };
            let parts = SiteFigures::new(&sites);
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

/// Figures of the sites, of all together.
pub(crate) struct SiteFigures(Arc<Sites>);

impl SiteFigures {
    pub(crate) fn new(sites: &Arc<Sites>) -> Self {
        Self(Arc::clone(sites))
    }
}

/// A figure of a site: its name, the end of its name as a metric, its meaning and its value.
type SiteFigure = (
    &'static str,
    &'static str,
    &'static str,
    fn(&SiteStats) -> u64,
);

/// Figures that are added up over the sites.
#[rustfmt::skip]
const SUMS: [SiteFigure; 31] = [
    ("fills_running", "", "Fills that run.", |site| site.admission.running as u64),
    ("fills_waiting", "", "Fills that wait for their turn.", |site| site.admission.waiting as u64),
    ("fills", TOTAL, "Fills that ran and ended.", |site| site.admission.finished),
    ("fills_refused", TOTAL, "Fills refused at arrival.", |site| site.admission.refused),
    ("fills_expired", TOTAL, "Fills refused after they had waited too long.", |site| site.admission.expired),
    ("fills_unproven", TOTAL, "Fills not kept: they may never be asked for again, and there was no room.", |site| site.store.unproven),
    ("live_streams", "", "Clients that look at live pages.", |site| site.live.streams as u64),
    ("live_pages", "", "Live pages that they look at.", |site| site.live.pages as u64),
    ("live_events", TOTAL, "Changes of live pages that were sent.", |site| site.live.events),
    ("live_turned_away", TOTAL, "Streams of live pages that were turned away.", |site| site.live.shed),
    ("store_entries", "", "Pages and results that are kept.", |site| site.store.entries as u64),
    ("store_bytes", "", "Memory that they take.", |site| site.store.bytes as u64),
    ("store_tags", "", "Distinct dependencies of what is kept.", |site| site.store.tags as u64),
    ("store_stored", TOTAL, "Fills that were kept.", |site| site.store.stored),
    ("store_fenced", TOTAL, "Fills not kept: a change came meanwhile.", |site| site.store.fenced),
    ("store_outlived", TOTAL, "Fills not kept: a new epoch began meanwhile.", |site| site.store.outlived),
    ("store_changes", TOTAL, "Changes of the database that were applied.", |site| site.store.changes),
    ("store_ended", TOTAL, "Entries that a change ended.", |site| site.store.invalidated),
    ("store_evicted", TOTAL, "Entries that left for want of memory.", |site| site.store.evicted),
    ("store_epochs", TOTAL, "Times at which all entries ended together.", |site| site.store.epoch),
    ("store_waited", TOTAL, "Requests that waited for the fill of another.", |site| site.store.waited),
    ("store_refused", TOTAL, "Requests for which there were too many fills or waiters.", |site| site.store.refused),
    ("store_waiting", "", "Requests that wait for the fill of another.", |site| site.store.waiting as u64),
    ("store_logged_changes", "", "Changes held for running fills.", |site| site.store.logged as u64),
    ("ahead_waiting", "", "Pages that wait to be made before a request.", |site| site.store.ahead as u64),
    ("ahead_made", TOTAL, "Pages made before a request asked for them.", |site| site.store.made_ahead),
    ("ahead_unused", TOTAL, "Pages among them that ended before a request.", |site| site.store.made_unused),
    ("ahead_dropped", TOTAL, "Pages that left that queue unmade.", |site| site.store.ahead_dropped),
    ("feed_failures", TOTAL, "Polls for changes that failed.", |site| site.database.failures),
    ("database_reads_waiting", "", "Reads that wait for a connection.", |site| site.database.waiting_reads as u64),
    ("database_replica_reads", TOTAL, "Reads that replicas answered.", |site| site.database.replica_reads),
];

/// The end of the name of a counter.
const TOTAL: &str = "_total";

impl Figures for SiteFigures {
    fn each(&self, add: &mut dyn FnMut(&Figure<'_>)) {
        let sites = self.0.stats();
        let mut add = |name: &str, end: &str, help: &str, value: FigureValue| {
            let metric = format!("millpond_{name}{end}");
            add(&Figure {
                name,
                metric: &metric,
                help,
                label: None,
                value,
            });
        };
        for (name, end, help, of) in SUMS {
            let sum: u64 = sites.iter().map(of).sum();
            add(name, end, help, sum.into());
        }
        let seconds = |of: fn(&SiteStats) -> Duration| {
            let sum: Duration = sites.iter().map(of).sum();
            FigureValue::Number(sum.as_secs_f64())
        };
        let help = "Time for pages made before a request.";
        add(
            "ahead_seconds",
            TOTAL,
            help,
            seconds(|site| site.ahead_time),
        );
        let ages = sites.iter().filter_map(|site| site.feed_age);
        if let Some(oldest) = ages.max() {
            let help = "Age of the newest sign of life of the feed, the oldest of all sites.";
            add(
                "feed_age_seconds",
                "",
                help,
                FigureValue::Number(oldest.as_secs_f64()),
            );
        }
    }

    fn route(&self, label: u32) -> RouteLabels {
        let name = self.0.route_name(label);
        RouteLabels {
            site: name.site,
            route: name.route,
            result: name.outcome,
            is_crawler: name.is_crawler,
        }
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
