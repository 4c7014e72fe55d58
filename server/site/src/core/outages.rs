//! Says what state the database is in, once when it changes: whether it is there, and whether it
//! lets pages be kept.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender, TryRecvError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use base_clock::Boottime;
use millpond_db::{Health, Query, Requirement};
use millpond_pages::Outage;
use parking_lot::Mutex;

use crate::core::Core;
use millpond_site_format::config::show_time;

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// A feed that is lost for less than this is not reported.
const GRACE: Duration = Duration::from_millis(300);
/// How long no request may have failed before the database counts as back.
const QUIET: Duration = Duration::from_secs(1);
/// While there is no feed, the database is asked what it lacks this often.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// A feed that lacks nothing begins within this time after the database answers.
const BEGINNING: Duration = Duration::from_secs(5);

/// Outcomes of requests to the database since the last look.
#[derive(Default)]
pub(crate) struct Outcomes(Mutex<OutcomeCounts>);

#[derive(Default)]
struct OutcomeCounts {
    /// Requests that were refused because the database is away.
    refused: u64,
    /// Requests that got a page from memory although the bound was over.
    stale: u64,
    /// The last failure.
    failure: Option<(Boottime, String)>,
}

impl Outcomes {
    /// A request needed the database, which was away.
    pub(crate) fn failed(&self, reason: &str, now: Boottime) {
        let mut counts = self.0.lock();
        counts.refused += 1;
        counts.failure = Some((now, reason.to_owned()));
    }

    /// Another request waited for the one that failed.
    pub(crate) fn also_failed(&self) {
        self.0.lock().refused += 1;
    }

    /// A request that had failed got a page from memory all the same.
    pub(crate) fn given_stale(&self) {
        self.0.lock().stale += 1;
    }

    fn take(&self) -> OutcomeCounts {
        std::mem::take(&mut *self.0.lock())
    }
}

/// The thread that looks.
pub(crate) struct Reporter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// `bound` is the site's `max_staleness`.
    pub(crate) fn start(core: &Arc<Core>, bound: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let mut observer = Observer {
            core: Arc::clone(core),
            state: ReportedState::new(bound, core.stale_if_error),
            asked: Boottime::default(),
            reachable: None,
            schema: None,
        };
        let look = move || {
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let now = Boottime::now();
                observer.core.admission.look(now);
                let lines = observer.look(now);
                // A look that the end broke off found nothing.
                if stopped.try_recv() == Err(TryRecvError::Empty) {
                    lines.iter().for_each(|line| observer.core.log(line));
                }
            }
        };
        let thread = thread::Builder::new().name("database-report".to_owned());
        Self {
            stop: Some(stop),
            thread: thread.spawn(look).ok(),
        }
    }

    /// Tells it to end. A look may be under way, which ends with the database's threads.
    pub(crate) fn ending(mut self) -> Self {
        drop(self.stop.take());
        self
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was printed.
            let _ = thread.join();
        }
    }
}

struct Observer {
    core: Arc<Core>,
    state: ReportedState,
    /// When the database was last asked what it lacks, and for which catalog.
    asked: Boottime,
    schema: Option<u64>,
    /// Since when it answers although there is no feed.
    reachable: Option<Boottime>,
}

impl Observer {
    /// The lines for the log.
    fn look(&mut self, now: Boottime) -> Vec<String> {
        self.core.log.summarize(now);
        let health = self.core.database.health();
        let counts = self.core.outcomes.take();
        let lost = health.feed_lost.filter(|since| now.since(*since) >= GRACE);
        let mut lines = vec![self.state.count(counts)];
        if let Some(since) = lost {
            lines.extend(self.without_feed(&health, since, now));
        } else if health.feed_lost.is_none() {
            if self.core.store.healthy(now) {
                let began = health.feed_began.unwrap_or(now);
                lines.push(self.state.back(began, now));
            }
            self.reachable = None;
            if health.feed_began.is_some() {
                lines.push(self.with_feed(&health));
            }
        }
        lines.into_iter().flatten().collect()
    }

    /// There is no feed: is the database away, or does it lack something?
    fn without_feed(
        &mut self,
        health: &Health,
        since: Boottime,
        now: Boottime,
    ) -> [Option<String>; 2] {
        if now.since(self.asked) < ASK_EVERY {
            return [None, None];
        }
        self.asked = now;
        self.schema = None;
        match self.requirements() {
            Ok(lacking) => {
                let reachable = *self.reachable.get_or_insert(now);
                let back = self.state.back(reachable, now);
                let may_begin = lacking.is_empty() && now.since(reachable) < BEGINNING;
                if may_begin || !self.core.cache {
                    return [back, None];
                }
                let reason = health.last_failure.as_deref().unwrap_or_default();
                [back, self.state.kept(false, &lacking, reason)]
            }
            Err(error) => {
                self.reachable = None;
                [self.state.away(since, &error), None]
            }
        }
    }

    /// There is a feed: does a table lack something? It is asked when the catalog has changed.
    fn with_feed(&mut self, health: &Health) -> Option<String> {
        if !self.core.cache || self.schema == Some(health.schema) {
            return None;
        }
        let lacking = self.requirements().ok()?;
        self.schema = Some(health.schema);
        self.state.kept(true, &lacking, "")
    }

    fn requirements(&self) -> Result<Vec<Requirement>, String> {
        let generation = self.core.current.load_full();
        let pages = generation.pages.endpoints.iter();
        let queries: Vec<Query> = pages
            .filter_map(|endpoint| endpoint.page.as_ref())
            .flat_map(|page| page.queries.iter().flat_map(|query| &query.statements))
            .map(|statement| statement.query.clone())
            .collect();
        let lacking = self.core.database.requirements(&queries);
        lacking.map_err(|error| error.to_string())
    }
}

/// State that was reported last.
struct ReportedState {
    bound: Duration,
    stale_if_error: Duration,
    outage: Outage,
    last_failure: Boottime,
    stale: u64,
    /// Why pages are not kept.
    kept: Option<String>,
}

impl ReportedState {
    fn new(bound: Duration, stale_if_error: Duration) -> Self {
        Self {
            bound,
            stale_if_error,
            outage: Outage::default(),
            last_failure: Boottime::default(),
            stale: 0,
            kept: None,
        }
    }

    /// Takes what requests have found out. The first failure is an outage.
    fn count(&mut self, counts: OutcomeCounts) -> Option<String> {
        self.outage.count(counts.refused);
        self.stale += counts.stale;
        let (at, reason) = counts.failure?;
        self.last_failure = at;
        self.away(at, &reason)
    }

    fn away(&mut self, since: Boottime, reason: &str) -> Option<String> {
        let reason = reason.strip_prefix(UNAVAILABLE).unwrap_or(reason);
        let bound = show_time(self.bound);
        let stale = match self.stale_if_error {
            Duration::ZERO => String::new(),
            allowed => format!(
                ", then marked as stale for {} (cache.stale_if_error)",
                show_time(allowed)
            ),
        };
        let effect = format!(
            "pages in memory are given for {bound} (cache.max_staleness){stale}, and all else is a 503"
        );
        self.outage.begin(since, reason, &effect)
    }

    /// The database answered at `at`, and is there at `now`.
    fn back(&mut self, at: Boottime, now: Boottime) -> Option<String> {
        if now.since(self.last_failure) < QUIET {
            return None;
        }
        if !self.outage.is_said() {
            return None;
        }
        let given = match std::mem::take(&mut self.stale) {
            0 => String::new(),
            stale => format!(", of which {stale} got a stale page"),
        };
        // Its feed may be older, where only requests failed.
        let ended = |since| if at > since { at } else { self.last_failure };
        self.outage.end(ended, "requests", &given)
    }

    /// Reports the causes that keep pages from being kept: everything, if there is no feed.
    fn kept(&mut self, has_feed: bool, lacking: &[Requirement], reason: &str) -> Option<String> {
        let what = match lacking {
            [] if has_feed => None,
            [] => Some(reason.to_owned()),
            [first, others @ ..] => {
                let statement = first.statement.iter();
                let statement = statement.map(|statement| format!(" (mended by: {statement})"));
                let more = match others.len() {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                Some(first.missing.clone() + &statement.collect::<String>() + &more)
            }
        };
        let line = what.map(|what| {
            let subject = match has_feed {
                true => "some pages may not be kept",
                false => "nothing is kept",
            };
            format!("{subject} in memory: {what}; see `millpond check`")
        });
        if self.kept == line {
            return None;
        }
        self.kept.clone_from(&line);
        line.or_else(|| {
            Some("pages are kept in memory again: nothing is missing any more".to_owned())
        })
    }
}

/// How the database says that it is away; the line says so already.
const UNAVAILABLE: &str = "the database is unavailable: ";

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Boottime {
        Boottime::from_nanos(seconds * 1_000_000_000)
    }

    fn failed(times: u64, seconds: u64) -> OutcomeCounts {
        OutcomeCounts {
            refused: times,
            failure: Some((
                at(seconds),
                "the database is unavailable: refused".to_owned(),
            )),
            ..OutcomeCounts::default()
        }
    }

    #[test]
    fn an_outage_is_two_lines_with_its_length_and_a_count() {
        let mut state = ReportedState::new(Duration::from_secs(1), Duration::ZERO);
        assert_eq!(state.back(at(1), at(1)), None);
        let away = state.away(at(10), "the server is stopped").unwrap();
        assert!(
            away.starts_with("the database is away: the server is stopped; "),
            "{away}"
        );
        assert!(!away.contains("stale_if_error"), "{away}");
        assert_eq!(state.count(failed(700, 11)), None);
        assert_eq!(state.count(failed(1, 12)), None);
        assert_eq!(
            state.back(at(12), at(12)),
            None,
            "a moment ago one has failed"
        );
        let back = state.back(at(12), at(14)).unwrap();
        assert_eq!(
            back,
            "the database is back after 2.0 s; requests that it could not answer: 701"
        );
        assert_eq!(state.back(at(15), at(15)), None);
        let away = state.count(failed(1, 20)).unwrap();
        assert!(
            away.starts_with("the database is away: refused; "),
            "{away}"
        );
    }

    #[test]
    fn what_is_not_kept_is_said_when_it_changes() {
        let mut state = ReportedState::new(Duration::from_secs(1), Duration::from_secs(60));
        let lacking = [Requirement {
            missing: "wal_level is replica".to_owned(),
            reason: String::new(),
            statement: Some("alter system".to_owned()),
            may_fix: false,
            restart: true,
        }];
        assert_eq!(state.kept(true, &[], ""), None);
        let line = state.kept(false, &lacking, "").unwrap();
        assert_eq!(
            line,
            "nothing is kept in memory: wal_level is replica (mended by: alter system); see `millpond check`"
        );
        assert_eq!(state.kept(false, &lacking, ""), None);
        assert!(
            state
                .kept(true, &[], "")
                .unwrap()
                .starts_with("pages are kept")
        );
        assert_eq!(state.kept(true, &[], ""), None);
    }
}
