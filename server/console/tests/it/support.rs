//! A console over figures that the test says, served on loopback.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base_clock::Boottime;
use lab_testkit::{Connection, Response, fast_dir};
use millpond_console::{
    CertificateState, Console, Controls, Counts, Fact, FigureSource, Gauges, RouteCounts,
    RouteTotals, Sampler, Totals,
};
use millpond_http::{Limits, Listener, Request, Service as _, WorkerGroup};
use millpond_process::{Admin, Figure, Figures, Workers};
use millpond_site::Config;
use rusqlite::Connection as Sqlite;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A moment in November 2026, at the beginning of a day.
pub(crate) const DAY: u64 = 1_795_910_400;

/// The figures, which tests change.
#[derive(Clone, Default)]
pub(crate) struct Fake(pub(crate) Arc<Mutex<Known>>);

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) totals: Totals,
    pub(crate) routes: Vec<RouteTotals>,
    pub(crate) certificates: Vec<CertificateState>,
    pub(crate) is_watched: bool,
    pub(crate) seen: Vec<Value>,
}

impl FigureSource for Fake {
    fn totals(&self) -> Totals {
        self.0.lock().unwrap().totals.clone()
    }

    fn routes(&self) -> Vec<RouteTotals> {
        self.0.lock().unwrap().routes.clone()
    }

    fn facts(&self) -> Vec<Fact> {
        let requests = self.totals().counts.requests;
        vec![
            Fact::count("Connections", "Since the start", requests),
            Fact::text("Feed of the database", "Heard of", "not yet"),
        ]
    }

    fn certificates(&self) -> Vec<CertificateState> {
        self.0.lock().unwrap().certificates.clone()
    }

    fn watch_requests(&self, is_watched: bool) {
        self.0.lock().unwrap().is_watched = is_watched;
    }

    fn take_requests(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap().seen)
    }
}

/// Counts what the owner asks for.
#[derive(Clone, Default)]
pub(crate) struct Asked(
    pub(crate) Arc<AtomicU64>,
    pub(crate) Arc<Mutex<Vec<String>>>,
    pub(crate) Hook,
);

/// Takes what is posted, after some failures.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) failures: Arc<AtomicU64>,
    delivered: Sender<(String, Value)>,
    pub(crate) posted: Arc<Mutex<Receiver<(String, Value)>>>,
}

impl Default for Hook {
    fn default() -> Self {
        let (delivered, posted) = channel();
        Self {
            failures: Arc::default(),
            delivered,
            posted: Arc::new(Mutex::new(posted)),
        }
    }
}

impl Controls for Asked {
    fn explain(&self, host: Option<&str>, target: &str) -> Result<Option<Value>, String> {
        let explanation = json!({
            "kind": "page", "target": target, "route": "/read", "template": "read.html", "shared": true,
            "page": {
                "state": "miss", "because": "a change has touched what it depends on", "stored": null,
                "made_ahead": {"times": 0, "in_vain": 0}, "ended_before": null,
                "ended_by": {"tables": ["article"], "transaction": 7, "position": "12", "ago_s": 2.5, "certain": true},
            },
            "queries": [{
                "name": "article", "file": "pages/read.sql", "state": "hit", "because": "<nothing> has changed",
                "stored": {"ago_s": 9.5, "position": "3", "bytes": 900, "depends_on": 1, "ends_in_s": null},
                "made_ahead": {"times": 0, "in_vain": 0}, "ended_before": null, "ended_by": null,
                "depends": ["article with id = :id"],
            }],
        });
        Ok((host != Some("other.example")).then_some(explanation))
    }

    fn purge(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn purge_address(&self, host: Option<&str>, target: &str) -> Option<usize> {
        let is_own = host != Some("other.example");
        is_own.then(|| {
            let mut purged = self.1.lock().unwrap();
            purged.push(format!("{}{target}", host.unwrap_or_default()));
            2
        })
    }

    fn post(&self, url: &str, json: &str) -> Result<(), String> {
        let failures = &self.2.failures;
        let fails = failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        });
        if fails.is_ok() {
            return Err("the answer is 500".to_owned());
        }
        let json = serde_json::from_str(json).unwrap();
        self.2.delivered.send((url.to_owned(), json)).unwrap();
        Ok(())
    }
}

/// A console with its file, its figures, and the samples that the test takes.
pub(crate) struct TestConsole {
    pub(crate) dir: TempDir,
    pub(crate) figures: Fake,
    pub(crate) asked: Asked,
    pub(crate) console: Arc<Console>,
    sampler: Sampler<Fake>,
    workers: Workers,
    pub(crate) address: SocketAddr,
    /// Seconds since the start of the machine.
    passed: u64,
}

struct NoFigures;

impl Figures for NoFigures {
    fn each(&self, _add: &mut dyn FnMut(&Figure<'_>)) {}
}

impl TestConsole {
    pub(crate) fn new() -> Self {
        Self::in_folder(fast_dir())
    }

    /// Opens the history in a folder, which may be there already.
    pub(crate) fn in_folder(dir: TempDir) -> Self {
        Self::with_rules(dir, "")
    }

    /// Opens the history with the alerts of these settings.
    pub(crate) fn with_rules(dir: TempDir, settings: &str) -> Self {
        let rules = Config::parse(settings, dir.path()).unwrap().alerts;
        let (figures, asked) = (Fake::default(), Asked::default());
        let opened = Console::without_thread(
            &dir.path().join("h.db"),
            figures.clone(),
            asked.clone(),
            rules,
            |line| println!("{line}"),
        );
        let (console, sampler) = opened.unwrap_or_else(|problems| panic!("{problems:?}"));
        let console = Arc::new(console);
        let shown = Arc::clone(&console);
        let service = move || {
            let pages = shown.service();
            let other = move |request: &Request<'_>| pages.call(request);
            Admin::new(WorkerGroup::new(), NoFigures, || None, other)
        };
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.set_nonblocking(true).unwrap();
        let limits = Limits {
            drain_timeout: Duration::from_millis(100),
            ..Limits::default()
        };
        let listeners = vec![Listener::from(socket)];
        let patience = (&limits, Duration::from_secs(5));
        let workers = Workers::start(service, "console", listeners, patience, |_| {}).unwrap();
        Self {
            dir,
            figures,
            asked,
            console,
            sampler,
            workers,
            address,
            passed: 1_000,
        }
    }

    /// Takes a sample ten seconds after the one before, at a time of the wall clock.
    pub(crate) fn sample(&mut self, at: u64) {
        self.passed += 10;
        let now = Boottime::from_nanos(self.passed * 1_000_000_000);
        self.sampler.sample(at, now);
    }

    /// Lets time pass before the next sample.
    pub(crate) fn pass(&mut self, seconds: u64) {
        self.passed += seconds;
    }

    /// Takes a sample with the routes.
    pub(crate) fn sample_all(&mut self, at: u64) {
        self.sampler.hurry();
        self.sample(at);
    }

    /// Shows the requests that were seen, at a time after now.
    pub(crate) fn show_requests(&mut self, after: Duration) {
        self.sampler.show_requests(Boottime::now().plus(after));
    }

    /// Answers a request for a target.
    pub(crate) fn see(&self, target: &str, status: u16, outcome: &str, is_crawler: bool) {
        self.figures.0.lock().unwrap().seen.push(json!({
            "at_ms": DAY * 1_000,
            "client": "203.0.113.0",
            "method": "GET",
            "target": target,
            "status": status,
            "bytes": 1_234,
            "micros": 70,
            "route": "/articles/{slug}",
            "outcome": outcome,
            "is_crawler": is_crawler,
        }));
    }

    /// Adds to the counts of requests for pages.
    pub(crate) fn ask(&self, hits: u64, made: u64) {
        let counts = &mut self.figures.0.lock().unwrap().totals.counts;
        counts.requests += hits + made;
        counts.pages += hits + made;
        counts.hits += hits;
        counts.misses += made;
        counts.made += made;
        counts.fill_us += made * 4_000;
        counts.cpu_ms = Some(counts.cpu_ms.unwrap_or(0) + hits / 10 + made);
    }

    /// Adds to the counts of a route.
    pub(crate) fn ask_route(&self, route: &str, hits: u64, made: u64) {
        let routes = &mut self.figures.0.lock().unwrap().routes;
        let known = routes.iter_mut().find(|known| known.route == route);
        let counts = match known {
            Some(known) => &mut known.counts,
            None => {
                routes.push(RouteTotals {
                    route: route.to_owned(),
                    counts: RouteCounts::default(),
                });
                &mut routes.last_mut().unwrap().counts
            }
        };
        counts.requests += hits + made;
        counts.hits += hits;
        counts.misses += made;
        counts.made += made;
        counts.fill_us += made * 4_000;
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::open(self.address)
    }

    /// Gives the server a certificate of these names, whose renewal has failed, and one that is not
    /// there yet.
    pub(crate) fn certify(&self, names: &str, failure: &str) {
        let state = |names: &str, failure: Option<&str>| CertificateState {
            names: names.to_owned(),
            ends_at: failure.map(|_| DAY + 5 * 86_400),
            tried_at: failure.map(|_| DAY),
            failure: failure.map(str::to_owned),
        };
        let certificates = vec![state(names, Some(failure)), state("b.example", None)];
        self.figures.0.lock().unwrap().certificates = certificates;
    }

    pub(crate) fn get(&self, target: &str) -> Response {
        self.connection().get(target)
    }

    #[track_caller]
    pub(crate) fn page(&self, target: &str) -> String {
        let response = self.get(target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        response.text().replace("&#x2f;", "/")
    }

    /// One value of the history.
    pub(crate) fn value(&self, sql: &str) -> i64 {
        value(&self.dir.path().join("h.db"), sql)
    }

    /// One text of the history; an empty one for none.
    pub(crate) fn text(&self, sql: &str) -> String {
        let history = Sqlite::open(self.dir.path().join("h.db")).unwrap();
        let text = history.query_row(sql, [], |row| row.get::<_, Option<String>>(0));
        text.unwrap().unwrap_or_default()
    }

    /// Stops it, and keeps its folder.
    pub(crate) fn close(mut self) -> TempDir {
        self.console.stop_waits();
        let _ = self.workers.stop();
        self.console.stop();
        self.dir
    }
}

pub(crate) fn value(file: &Path, sql: &str) -> i64 {
    let history = Sqlite::open(file).unwrap();
    history.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The counts of a server that has begun anew.
pub(crate) fn fresh() -> (Counts, Gauges) {
    Default::default()
}

pub(crate) fn history_of(dir: &TempDir) -> PathBuf {
    dir.path().join("h.db")
}
