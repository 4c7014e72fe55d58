//! The console: what it is told of this server, and what it may ask of it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use millpond_certificates::{Certificates, ServedCertificate};
use millpond_console::{
    CertificateState, Console, Controls, Counts, Fact, Gauges, INTERVAL, ProcessFigures,
    RouteCounts, RouteTotals, Source, Totals,
};
use millpond_http::WorkerGroup;
use millpond_site::{Config, ExplainedVisitor, RouteStats, SiteStats, Sites};
use serde_json::Value;

use crate::acme::RenewalFailures;
use crate::output::log;

/// Opens the console, if the settings want a history. A server whose history cannot be kept serves
/// on without one.
pub(crate) fn start(
    dir: &Path,
    config: &Config,
    sites: &Arc<Sites>,
    served: &Arc<WorkerGroup>,
    certificates: Option<(Arc<Certificates>, RenewalFailures)>,
) -> Option<Arc<Console>> {
    let file = config.history(dir)?;
    let hosts = config.hosts.iter();
    let source = ServerSource {
        sites: Arc::clone(sites),
        served: Arc::clone(served),
        certificates,
        shown: hosts.map(|host| host.shown.display().to_string()).collect(),
        max_staleness: config.max_staleness,
    };
    let controls = SiteControls(Arc::clone(sites));
    let tell = |line: &str| log(format_args!("millpond: {line}"));
    match Console::start(&file, source, controls, INTERVAL, tell) {
        Ok(console) => Some(Arc::new(console)),
        Err(problems) => {
            for problem in problems {
                log(format_args!("warning: there is no console: {problem}"));
            }
            None
        }
    }
}

struct SiteControls(Arc<Sites>);

impl Controls for SiteControls {
    fn explain(&self, host: Option<&str>, target: &str) -> Result<Option<Value>, String> {
        self.0.explain(host, target, ExplainedVisitor::Anonymous)
    }

    fn purge(&self) {
        self.0.purge();
    }
}

/// The figures of this server.
struct ServerSource {
    sites: Arc<Sites>,
    served: Arc<WorkerGroup>,
    certificates: Option<(Arc<Certificates>, RenewalFailures)>,
    /// The folders of several sites; empty for a single one.
    shown: Vec<String>,
    max_staleness: Duration,
}

impl ServerSource {
    /// The age of the oldest feed.
    fn feed_age(&self) -> Option<Duration> {
        self.sites.feed_ages().into_iter().flatten().max()
    }

    /// The routes of all sites. Where there are several, a route begins with its site's folder.
    fn all_routes(&self) -> Vec<(String, RouteStats)> {
        let sites = self.sites.stats().into_iter().enumerate();
        let routes = sites.flat_map(|(number, site)| {
            let before = self.shown.get(number).cloned();
            let before = before.map_or_else(String::new, |shown| format!("{shown}: "));
            let named = move |route: RouteStats| (format!("{before}{}", route.route), route);
            site.routes.into_iter().map(named)
        });
        routes.collect()
    }
}

impl Source for ServerSource {
    fn totals(&self) -> Totals {
        let (http, sites, process) = (
            self.served.stats(),
            self.sites.stats(),
            ProcessFigures::read(),
        );
        let sum = |of: fn(&SiteStats) -> u64| sites.iter().map(of).sum::<u64>();
        let routes = sites.iter().flat_map(|site| &site.routes);
        let of_limits = [http.over_client_requests, http.over_client_writes];
        let refused = http.refused.iter().map(|(_, count)| *count);
        let counts = Counts {
            requests: http.requests,
            pages: sum(|site| site.hits + site.misses + site.waits + site.bypassed),
            hits: sum(|site| site.hits),
            misses: sum(|site| site.misses),
            waits: sum(|site| site.waits),
            bypassed: sum(|site| site.bypassed),
            made: routes.map(|route| route.made).sum(),
            fill_us: sum(|site| micros(site.fill_time)),
            database_us: sum(|site| micros(site.database_time)),
            refused: refused.chain(of_limits).sum::<u64>() + http.over_limit,
            shed: sum(|site| site.admission.refused + site.admission.expired),
            bytes_out: http.bytes_out,
            cpu_ms: process.cpu_ms,
            busy_ms: process.busy_ms,
            ..Counts::default()
        };
        let gauges = Gauges {
            connections: Some(http.open as u64),
            feed_age_ms: self.feed_age().map(|age| micros(age) / 1_000),
            resident: process.resident,
            stored: Some(sum(|site| site.store.bytes as u64)),
            entries: Some(sum(|site| site.store.entries as u64)),
            streams: Some(sum(|site| site.live.streams as u64)),
        };
        Totals {
            counts,
            gauges,
            durations: Vec::new(),
        }
    }

    fn routes(&self) -> Vec<RouteTotals> {
        let totals = |(name, route): (String, RouteStats)| RouteTotals {
            route: name,
            counts: RouteCounts {
                requests: route.hits + route.misses + route.waits + route.bypassed,
                hits: route.hits,
                misses: route.misses,
                waits: route.waits,
                bypassed: route.bypassed,
                made: route.made,
                fill_us: micros(route.fill_time),
                database_us: micros(route.database_time),
                ..RouteCounts::default()
            },
        };
        self.all_routes().into_iter().map(totals).collect()
    }

    fn facts(&self) -> Vec<Fact> {
        let (http, sites) = (self.served.stats(), self.sites.stats());
        let sum = |of: fn(&SiteStats) -> u64| sites.iter().map(of).sum::<u64>();
        let mut facts = Vec::new();
        let feed = "Feed of the database";
        match self.feed_age() {
            Some(age) => facts.push(Fact::seconds(feed, "Heard of", age.as_secs_f64())),
            None => facts.push(Fact::text(feed, "Heard of", "not yet")),
        }
        let bound = self.max_staleness.as_secs_f64();
        facts.push(Fact::seconds(feed, "No page is older than", bound));
        let changes = sum(|site| site.store.changes);
        facts.push(Fact::count(feed, "Changes applied", changes));
        for (number, site) in sites.iter().enumerate() {
            let of = self.shown.get(number).map(|shown| format!("{shown}: "));
            let name = format!("{}all was made anew", of.unwrap_or_default());
            facts.push(Fact::text(feed, &name, &site.store.epoch_reason));
        }
        let work = "Pages being made";
        let mut count = |topic: &'static str, name: &str, value: u64| {
            facts.push(Fact::count(topic, name, value))
        };
        count(work, "Running", sum(|site| site.admission.running as u64));
        count(work, "Waiting", sum(|site| site.admission.waiting as u64));
        count(work, "Made", sum(|site| site.admission.finished));
        count(work, "Refused at once", sum(|site| site.admission.refused));
        count(
            work,
            "Refused after a wait",
            sum(|site| site.admission.expired),
        );
        let memory = "Memory";
        count(
            memory,
            "Pages and results",
            sum(|site| site.store.entries as u64),
        );
        count(
            memory,
            "Ended by changes",
            sum(|site| site.store.invalidated),
        );
        count(memory, "Left for others", sum(|site| site.store.evicted));
        let connections = "Connections";
        count(connections, "Open", http.open as u64);
        count(connections, "Since the start", http.accepted);
        count(connections, "Over the limit", http.over_limit);
        count(
            connections,
            "Requests over a client's rate",
            http.over_client_requests,
        );
        count(connections, "Heads that took too long", http.head_timeouts);
        count(
            connections,
            "Readers that were too slow",
            http.write_timeouts,
        );
        count(connections, "Failures of TLS", http.tls_failures);
        let live = "Live pages";
        count(
            live,
            "Windows that look",
            sum(|site| site.live.streams as u64),
        );
        count(
            live,
            "Pages they look at",
            sum(|site| site.live.pages as u64),
        );
        count(live, "Turned away", sum(|site| site.live.shed));
        let stored = sum(|site| site.store.bytes as u64);
        facts.push(Fact::bytes(memory, "They take", stored));
        facts
    }

    fn certificates(&self) -> Vec<CertificateState> {
        let Some((certificates, failures)) = &self.certificates else {
            return Vec::new();
        };
        let state = |(slot, certificate): (String, Option<Arc<ServedCertificate>>)| {
            let facts = certificate.map(|shown| shown_facts(&shown));
            // The slot of an authority's certificate ends with its name.
            let name = slot.rsplit(' ').next().unwrap_or_default();
            let failed = failures.of(name);
            let (tried_at, failure) = failed.unzip();
            let (names, ends_at) = facts.unwrap_or_else(|| (name.to_owned(), None));
            CertificateState {
                names,
                ends_at,
                tried_at,
                failure,
            }
        };
        certificates.slots().into_iter().map(state).collect()
    }
}

/// The names of a certificate, and its end in seconds since 1970.
fn shown_facts(certificate: &ServedCertificate) -> (String, Option<u64>) {
    let facts = certificate.facts();
    let names: Vec<String> = facts.names.iter().map(ToString::to_string).collect();
    let end = facts.not_after.duration_since(SystemTime::UNIX_EPOCH);
    (names.join(", "), end.ok().map(|end| end.as_secs()))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
