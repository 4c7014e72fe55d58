//! Samples: what has been added since the one before.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base_clock::{Boottime, SECOND};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::alerts::Alerts;
use crate::history::{History, HistorySample};
use crate::{FigureSource, RouteTotals, Totals};

/// Samples between two of the routes.
const ROUTES_EVERY: u32 = 6;

/// Counts of a route that outlive a reading of the folder.
const OF_ANSWERS: [&str; 2] = ["errors", "crawlers"];

/// How long the last requests are held after their page was asked for. A page that is looked at is
/// asked for again after each sample.
const LOOKS_FOR: Duration = Duration::from_mins(1);
/// The time between two looks at the last requests.
const TICK: Duration = Duration::from_secs(1);

/// Takes samples. Times are given by the caller.
pub struct Sampler<S> {
    source: S,
    history: Arc<History>,
    alerts: Alerts,
    /// When the page of the last requests was asked for, in nanoseconds; zero for never.
    last_look: Arc<AtomicU64>,
    /// True while the last requests are held.
    is_watching: bool,
    /// True if the history has none of them.
    is_clear: bool,
    started: u64,
    /// The totals that the history has, and the moment at which they were read.
    kept: Option<(Figures, Boottime)>,
    routes: HashMap<String, Map<String, Value>>,
    /// Samples since those of the routes.
    age: u32,
}

/// Totals as the history names them.
#[derive(Default)]
struct Figures {
    counts: Map<String, Value>,
    durations: HashMap<u64, u64>,
}

impl<S: FigureSource> Sampler<S> {
    pub(crate) fn new(
        source: S,
        history: Arc<History>,
        alerts: Alerts,
        last_look: Arc<AtomicU64>,
    ) -> Self {
        Self {
            source,
            history,
            alerts,
            last_look,
            is_watching: false,
            // One that was killed may have left some.
            is_clear: false,
            started: 0,
            kept: None,
            routes: HashMap::new(),
            age: 0,
        }
    }

    /// Writes what has been added since the last sample that was written, to the time `at`, in
    /// seconds since 1970. What cannot be written is part of the next sample. The first call begins
    /// to count. A clock that was set back adds to what is there.
    pub fn sample(&mut self, at: u64, now: Boottime) {
        let totals = self.source.totals();
        let figures = Figures::of(&totals);
        let Some((kept, since)) = &self.kept else {
            self.started = at;
            self.routes = by_route(self.source.routes());
            let begin = HistorySample::begin(at, &self.source.facts(), &self.source.certificates());
            self.history.write(&begin);
            self.alerts.look(&self.history, at, Duration::ZERO);
            self.kept = Some((figures, now));
            return;
        };
        let (span, is_ending) = (now.since(*since), self.source.is_ending());
        let mut figures_added = added(&figures.counts, &kept.counts);
        figures_added.extend(object(&totals.gauges));
        let durations = figures.durations.iter().filter_map(|(bound, count)| {
            let before = kept.durations.get(bound).copied();
            let more = grown(*count, before.unwrap_or(0));
            (more > 0).then(|| json!([bound, more]))
        });
        let durations: Vec<Value> = durations.collect();
        self.age += 1;
        let is_due = self.age >= ROUTES_EVERY;
        let routes = is_due.then(|| by_route(self.source.routes()));
        let routes_added = routes.as_ref().map(|routes| self.routes_added(routes));
        let sample = HistorySample {
            at,
            started: self.started,
            span: if is_ending { Duration::ZERO } else { span },
            is_ending,
            figures: figures_added.into(),
            durations: durations.into(),
            routes: routes_added.unwrap_or_default().into(),
            facts: HistorySample::facts(&self.source.facts()),
            certificates: json!(self.source.certificates()),
        };
        if self.history.write(&sample) {
            if !is_ending {
                self.alerts.look(&self.history, at, span);
            }
            self.kept = Some((figures, now));
            if let Some(routes) = routes {
                (self.routes, self.age) = (routes, 0);
            }
        }
    }

    /// Shows the requests since the last call while their page is looked at, and forgets them
    /// after that.
    pub fn show_requests(&mut self, now: Boottime) {
        let last_look = Boottime::from_nanos(self.last_look.load(Ordering::Relaxed));
        let is_watched = now.since(last_look) < LOOKS_FOR && last_look.as_nanos() > 0;
        if is_watched != self.is_watching {
            self.is_watching = is_watched;
            self.source.watch_requests(is_watched);
        }
        if is_watched {
            let requests = self.source.take_requests();
            if !requests.is_empty() {
                self.is_clear = false;
                self.history.write_seen(&requests);
            }
        } else if !self.is_clear {
            self.is_clear = self.history.write_seen(&[]);
        }
    }

    /// Lists the routes that have been asked for since the last sample of routes.
    fn routes_added(&self, routes: &HashMap<String, Map<String, Value>>) -> Vec<Value> {
        let none = Map::new();
        let all = routes.iter().filter_map(|(route, counts)| {
            let before = self.routes.get(route).unwrap_or(&none);
            // Pages are counted anew when the folder is read again; answers are not.
            let mut known = before.clone();
            if !is_larger(counts, before) {
                known.retain(|name, _| OF_ANSWERS.contains(&&**name));
            }
            let mut more = added(counts, &known);
            let is_asked = more.values().any(|count| count.as_u64() > Some(0));
            more.insert("route".to_owned(), route.as_str().into());
            is_asked.then(|| more.into())
        });
        all.collect()
    }

    /// Writes the samples of the routes with the next sample.
    pub fn hurry(&mut self) {
        self.age = ROUTES_EVERY;
    }
}

impl Figures {
    fn of(totals: &Totals) -> Self {
        Self {
            counts: object(&totals.counts),
            durations: totals.durations.iter().copied().collect(),
        }
    }
}

fn object(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn by_route(routes: Vec<RouteTotals>) -> HashMap<String, Map<String, Value>> {
    let routes = routes.into_iter();
    routes
        .map(|totals| (totals.route, object(&totals.counts)))
        .collect()
}

/// True if no count is lower than it was.
fn is_larger(counts: &Map<String, Value>, before: &Map<String, Value>) -> bool {
    counts.iter().all(|(name, count)| {
        let before = before.get(name).and_then(Value::as_u64);
        count.as_u64() >= before
    })
}

/// Returns how much each count has grown.
fn added(counts: &Map<String, Value>, before: &Map<String, Value>) -> Map<String, Value> {
    let of = |(name, count): (&String, &Value)| {
        let before = before.get(name).and_then(Value::as_u64);
        let more = count
            .as_u64()
            .map(|count| grown(count, before.unwrap_or(0)));
        (name.clone(), more.into())
    };
    counts.iter().map(of).collect()
}

/// Returns what has been added to a count. One that went down has begun anew.
const fn grown(count: u64, before: u64) -> u64 {
    match count.checked_sub(before) {
        Some(more) => more,
        None => count,
    }
}

/// The thread that takes samples, until this is dropped.
pub(crate) struct SamplerThread {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SamplerThread {
    pub(crate) fn start(
        mut sampler: Sampler<impl FigureSource>,
        interval: Duration,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let run = move || {
            let mut due = Boottime::now();
            loop {
                let (at, now) = (base_clock::unix_nanos() / SECOND, Boottime::now());
                if now >= due {
                    sampler.sample(at, now);
                    due = now.plus(interval);
                }
                sampler.show_requests(now);
                match stopped.recv_timeout(interval.min(TICK)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => break,
                }
            }
            sampler.hurry();
            sampler.sample(base_clock::unix_nanos() / SECOND, Boottime::now());
            // The page is not looked at any more.
            sampler.show_requests(Boottime::NEVER);
        };
        let thread = thread::Builder::new().name("history".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for SamplerThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it has been reported.
            let _ = thread.join();
        }
    }
}
