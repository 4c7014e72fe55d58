//! The console: the figures of this server for it, and what it may ask of the server.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use millpond_certificates::{Certificates, ServedCertificate, WebClient};
use millpond_console::{
    CertificateState, Console, Controls, Counts, Fact, FigureSource, Gauges, INTERVAL, RouteCounts,
    RouteTotals, Totals,
};
use millpond_http::{LATENCY_EDGES, RequestCounts, Stats, WorkerGroup};
use millpond_process::ProcessFigures;
use millpond_site::{Config, ExplainedVisitor, RouteName, RouteStats, SiteStats, Sites};
use serde_json::Value;

use crate::access::AccessSlot;
use crate::acme::RenewalFailures;
use crate::output::log;

/// Opens the console, if the settings want a history. A server whose history cannot be kept serves
/// on without one.
pub(crate) fn start(
    dir: &Path,
    config: &Config,
    sites: &Arc<Sites>,
    (served, access): (&Arc<WorkerGroup>, &Arc<AccessSlot>),
    certificates: Option<(Arc<Certificates>, RenewalFailures)>,
) -> Option<Arc<Console>> {
    let file = config.history(dir)?;
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let is_served = config.hosts.iter().any(|host| {
        let files = host.site.join("static").canonicalize();
        files.is_ok_and(|files| folder.iter().any(|folder| folder.starts_with(&files)))
    });
    let fault = match config.database.file() == Some(&*file) {
        true => "names the database of the site",
        false if is_served => "would be served to all visitors",
        false => "",
    };
    if !fault.is_empty() {
        log(format_args!(
            "warning: there is no console: admin.history {fault}"
        ));
        return None;
    }
    let hosts = config.hosts.iter();
    let source = ServerSource {
        sites: Arc::clone(sites),
        served: Arc::clone(served),
        access: Arc::clone(access),
        certificates,
        counted: Mutex::default(),
        shown: hosts.map(|host| host.shown.display().to_string()).collect(),
        max_staleness: config.max_staleness,
    };
    let controls = SiteControls(Arc::clone(sites));
    let tell = |line: &str| log(format_args!("millpond: {line}"));
    let rules = config.alerts.clone();
    match Console::start(&file, source, controls, rules, INTERVAL, tell) {
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

    fn purge_address(&self, host: Option<&str>, target: &str) -> Option<usize> {
        self.0.purge_address(host, target)
    }

    fn post(&self, url: &str, json: &str) -> Result<(), String> {
        let client = WebClient::new(url, "alert.webhook").map_err(|error| error.to_string())?;
        let field = ("content-type".to_owned(), "application/json".to_owned());
        match client.post(&[field], json.into())? {
            200..=299 => Ok(()),
            status => Err(format!("it answers with {status}")),
        }
    }
}

/// The bound that stands for all times beyond the last edge.
const BEYOND_US: u64 = 1_000_000_000;

/// Headings of the state of now.
const FEED: &str = "Feed of the database";
const WORK: &str = "Pages being made";
const MEMORY: &str = "Memory";
const LIVE: &str = "Live pages";
const CONNECTIONS: &str = "Connections";

/// A line of the state of now: its heading, its name, and the count.
type FactRow<T> = (&'static str, &'static str, fn(&T) -> u64);

/// Lines with the sums of all sites.
#[rustfmt::skip]
const OF_SITES: [FactRow<SiteStats>; 12] = [
    (FEED, "Changes applied", |site| site.store.changes),
    (WORK, "Running", |site| site.admission.running as u64),
    (WORK, "Waiting", |site| site.admission.waiting as u64),
    (WORK, "Made", |site| site.admission.finished),
    (WORK, "Refused at once", |site| site.admission.refused),
    (WORK, "Refused after a wait", |site| site.admission.expired),
    (MEMORY, "Pages and results", |site| site.store.entries as u64),
    (MEMORY, "Ended by changes", |site| site.store.invalidated),
    (MEMORY, "Left to make room", |site| site.store.evicted),
    (LIVE, "Windows that look", |site| site.live.streams as u64),
    (LIVE, "Pages they look at", |site| site.live.pages as u64),
    (LIVE, "Turned away", |site| site.live.shed),
];

/// Lines of the connections.
#[rustfmt::skip]
const OF_HTTP: [FactRow<Stats>; 7] = [
    (CONNECTIONS, "Open", |http| http.open as u64),
    (CONNECTIONS, "Since the start", |http| http.accepted),
    (CONNECTIONS, "Over the limit", |http| http.over_limit),
    (CONNECTIONS, "Requests over a client’s rate", |http| http.over_client_requests),
    (CONNECTIONS, "Heads that took too long", |http| http.head_timeouts),
    (CONNECTIONS, "Readers that were too slow", |http| http.write_timeouts),
    (CONNECTIONS, "Failures of TLS", |http| http.tls_failures),
];

/// The figures of this server.
struct ServerSource {
    sites: Arc<Sites>,
    served: Arc<WorkerGroup>,
    access: Arc<AccessSlot>,
    certificates: Option<(Arc<Certificates>, RenewalFailures)>,
    /// The counts of each site.
    counted: Mutex<Vec<SiteCounts>>,
    /// The folders of several sites; empty for a single one.
    shown: Vec<String>,
    max_staleness: Duration,
}

/// Counts of a site's pages: hits, misses, waits, bypassed, made, and the microseconds that making
/// them took, in all and the database.
type PageCounts = [u64; 7];

/// Counts of a site over all readings of its folder, each of which begins to count anew.
#[derive(Default)]
struct SiteCounts {
    earlier: PageCounts,
    last: PageCounts,
}

impl SiteCounts {
    /// Returns the counts over all readings, if the one of now has these.
    fn over_all(&mut self, now: PageCounts) -> PageCounts {
        if now.iter().zip(&self.last).any(|(now, last)| now < last) {
            self.earlier = sum_of(self.earlier, self.last);
        }
        self.last = now;
        sum_of(self.earlier, now)
    }
}

fn sum_of(one: PageCounts, other: PageCounts) -> PageCounts {
    std::array::from_fn(|at| one[at] + other[at])
}

fn page_counts(site: &SiteStats) -> PageCounts {
    [
        site.hits,
        site.misses,
        site.waits,
        site.bypassed,
        site.routes.iter().map(|route| route.made).sum(),
        micros(site.fill_time),
        micros(site.database_time),
    ]
}

impl ServerSource {
    /// The age of the oldest feed.
    fn feed_age(&self) -> Option<Duration> {
        self.sites
            .stats()
            .iter()
            .filter_map(|site| site.feed_age)
            .max()
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

impl ServerSource {
    /// Counts the answers by their statuses, and those to crawlers.
    fn answers(&self, answered: &[RequestCounts]) -> Counts {
        let sum = |is_wanted: &dyn Fn(&RequestCounts) -> bool| {
            let wanted = answered.iter().filter(|counts| is_wanted(counts));
            Some(wanted.map(|counts| counts.requests).sum())
        };
        Counts {
            successes: sum(&|counts| (200..300).contains(&counts.status)),
            redirects: sum(&|counts| (300..400).contains(&counts.status)),
            client_errors: sum(&|counts| (400..500).contains(&counts.status)),
            server_errors: sum(&|counts| counts.status >= 500),
            crawlers: sum(&|counts| self.name(counts).is_crawler),
            ..Counts::default()
        }
    }

    /// Returns the errors of the server and the requests of crawlers, by route.
    fn answers_by_route(&self) -> HashMap<String, (u64, u64)> {
        let mut routes = HashMap::<String, (u64, u64)>::new();
        for counts in self.served.requests() {
            let name = self.name(&counts);
            let Some(route) = shown_route(&name) else {
                continue;
            };
            let of_route = routes.entry(route).or_default();
            of_route.0 += u64::from(counts.status >= 500) * counts.requests;
            of_route.1 += u64::from(name.is_crawler) * counts.requests;
        }
        routes
    }

    /// True for streams of live pages, which last as long as their pages are looked at.
    fn is_stream(&self, counts: &RequestCounts) -> bool {
        self.name(counts).outcome == "live"
    }

    fn name(&self, counts: &RequestCounts) -> RouteName {
        self.meaning(counts.label)
    }

    /// The meaning of a label; none of that for which there was no room.
    fn meaning(&self, label: u32) -> RouteName {
        match label {
            RequestCounts::MERGED => RouteName::default(),
            label => self.sites.route_name(label),
        }
    }
}

/// Returns the route as it is shown: where there are several sites, behind its site's folder.
fn shown_route(name: &RouteName) -> Option<String> {
    let route = name.route.as_ref()?;
    Some(match &name.site {
        Some(site) => format!("{site}: {route}"),
        None => route.to_string(),
    })
}

/// Returns bounds in microseconds, each with the requests that took at most that, and longer than
/// the bound below.
fn durations<'c>(answered: impl Iterator<Item = &'c RequestCounts>) -> Vec<(u64, u64)> {
    let mut durations = BTreeMap::new();
    for counts in answered {
        let bounds = LATENCY_EDGES.iter().map(|edge| edge.div_ceil(1_000));
        for (bound, requests) in bounds.chain([BEYOND_US]).zip(counts.buckets) {
            *durations.entry(bound).or_default() += requests;
        }
    }
    durations.retain(|_, requests| *requests > 0);
    durations.into_iter().collect()
}

impl FigureSource for ServerSource {
    fn totals(&self) -> Totals {
        let (http, sites, process) = (
            self.served.stats(),
            self.sites.stats(),
            ProcessFigures::read(),
        );
        let sum = |of: fn(&SiteStats) -> u64| sites.iter().map(of).sum::<u64>();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.resize_with(sites.len(), SiteCounts::default);
        let pages = counted.iter_mut().zip(&sites);
        let pages = pages.map(|(counted, site)| counted.over_all(page_counts(site)));
        let [hits, misses, waits, bypassed, made, fill_us, database_us] =
            pages.fold(PageCounts::default(), sum_of);
        let answered = self.served.requests();
        let of_limits = [http.over_client_requests, http.over_client_writes];
        let refused = http.refused.iter().map(|(_, count)| *count);
        let counts = Counts {
            requests: http.requests,
            pages: hits + misses + waits + bypassed,
            hits,
            misses,
            waits,
            bypassed,
            made,
            fill_us,
            database_us,
            refused: refused.chain(of_limits).sum::<u64>() + http.over_limit,
            shed: sum(|site| site.admission.refused + site.admission.expired),
            bytes_out: http.bytes_out,
            cpu_ms: process.cpu_ms,
            busy_ms: process.busy_ms,
            ..self.answers(&answered)
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
            durations: durations(answered.iter().filter(|counts| !self.is_stream(counts))),
        }
    }

    fn is_ending(&self) -> bool {
        self.served.is_shutdown()
    }

    fn routes(&self) -> Vec<RouteTotals> {
        let answered = self.answers_by_route();
        let totals = |(name, route): (String, RouteStats)| RouteTotals {
            counts: RouteCounts {
                errors: Some(answered.get(&name).map_or(0, |(errors, _)| *errors)),
                crawlers: Some(answered.get(&name).map_or(0, |(_, crawlers)| *crawlers)),
                requests: route.hits + route.misses + route.waits + route.bypassed,
                hits: route.hits,
                misses: route.misses,
                waits: route.waits,
                bypassed: route.bypassed,
                made: route.made,
                fill_us: micros(route.fill_time),
                database_us: micros(route.database_time),
            },
            route: name,
        };
        self.all_routes().into_iter().map(totals).collect()
    }

    fn facts(&self) -> Vec<Fact> {
        let (http, sites) = (self.served.stats(), self.sites.stats());
        let mut facts = Vec::new();
        match self.feed_age() {
            Some(age) => facts.push(Fact::seconds(FEED, "Heard of", age.as_secs_f64())),
            None => facts.push(Fact::text(FEED, "Heard of", "not yet")),
        }
        let bound = self.max_staleness.as_secs_f64();
        facts.push(Fact::seconds(FEED, "No page is older than", bound));
        for (number, site) in sites.iter().enumerate() {
            let of = self.shown.get(number).map(|shown| format!(" in {shown}"));
            let name = format!("All was made anew{}", of.unwrap_or_default());
            facts.push(Fact::text(FEED, &name, &site.store.epoch_reason));
        }
        let of_sites = OF_SITES.iter().map(|(topic, name, of)| {
            let sum = sites.iter().map(of).sum();
            Fact::count(topic, name, sum)
        });
        let of_http = OF_HTTP.iter();
        let of_http = of_http.map(|(topic, name, of)| Fact::count(topic, name, of(&http)));
        facts.extend(of_sites.chain(of_http));
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

    fn watch_requests(&self, is_watched: bool) {
        self.access.watch(is_watched);
    }

    fn take_requests(&self) -> Vec<Value> {
        let named = |(label, mut request): (u32, Value)| {
            let name = self.meaning(label);
            request["route"] = shown_route(&name).into();
            request["outcome"] = name.outcome.into();
            request["is_crawler"] = name.is_crawler.into();
            request
        };
        self.access.take_held().into_iter().map(named).collect()
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

#[cfg(test)]
mod tests {
    use super::SiteCounts;

    #[test]
    fn a_folder_that_is_read_again_loses_no_count() {
        let mut site = SiteCounts::default();
        // Read again after the second look, and after the fourth.
        let looks = [(5, 1), (9, 2), (1, 1), (20, 2), (0, 1)];
        let sums = looks.map(|(hits, made)| {
            let sums = site.over_all([hits, 0, 0, 0, made, 0, 0]);
            (sums[0], sums[4])
        });
        assert_eq!(sums, [(5, 1), (9, 2), (10, 3), (29, 4), (29, 5)]);
    }
}
