//! The thread that makes pages ahead.

use std::{
    collections::{HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use base_clock::Boottime;
use millpond_db::Value;
use millpond_store::{Degree, FillOutcome};

use super::{
    AheadState, RefreshSettings,
    cap::Cap,
    list::{List, PAGES, line_of, page_of},
    remake::{self, Edition, is_renewable},
    retries::{RefreshTask, Retries},
};
use crate::{
    answer::{Ask, MadeAhead},
    core::Core,
};
use millpond_site_compile::page::Page;

/// Span of counting: a page is hot if it was asked for in the last few spans.
const FOLD_EVERY: Duration = Duration::from_secs(10);
/// How often the list is written.
const LIST_EVERY: Duration = Duration::from_secs(60);
/// How long what was hot before the start counts as hot after it.
const WARMTH: Duration = Duration::from_secs(600);
/// The most readings of the folder whose keys may wait: an owner may save several files one after
/// the other.
const EDITIONS: usize = 4;
/// Between two looks whether visitors' reads still wait, or the feed is heard of again.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Driver {
    core: Arc<Core>,
    state: Arc<AheadState>,
    cap: Cap,
    retries: Retries,
    list: Option<List>,
    /// The list as it was at the start, while it is used, and the part of it that is still to be
    /// made.
    inherited: Vec<String>,
    warm: VecDeque<String>,
    /// Dropped when that is made.
    warming: Option<Sender<()>>,
    /// The reading of the folder that is in use, and the earlier ones, the latest first. Their keys
    /// are hot when the folder has changed.
    current: Edition,
    previous: VecDeque<Edition>,
    started: Boottime,
    folded: Boottime,
    listed: Boottime,
}

impl Driver {
    pub(super) fn new(
        core: Arc<Core>,
        state: Arc<AheadState>,
        settings: RefreshSettings,
        warming: Sender<()>,
    ) -> Self {
        let now = Boottime::now();
        Self {
            current: Edition::of(&core.current.load()),
            core,
            state,
            cap: Cap::new(settings.percent),
            retries: Retries::default(),
            list: settings.list.map(List::new),
            inherited: Vec::new(),
            warm: VecDeque::new(),
            warming: Some(warming),
            previous: VecDeque::new(),
            started: now,
            folded: now,
            listed: now,
        }
    }

    /// Until it is stopped.
    pub(super) fn run(mut self) {
        self.core.store.set_attendant(waker());
        if let Some(list) = &mut self.list {
            self.inherited = list.read(|note| self.core.log(note));
            self.warm = self.inherited.iter().cloned().collect();
        }
        while !self.is_stopped() {
            let pause = self.turn();
            if !pause.is_zero() {
                thread::park_timeout(pause);
            }
        }
        self.write_list();
    }

    fn is_stopped(&self) -> bool {
        self.state.stopped.load(Ordering::Acquire)
    }

    /// Makes one page, if a key waits and the cap allows it. Returns how long there is nothing more
    /// to do.
    fn turn(&mut self) -> Duration {
        let now = Boottime::now();
        self.run_periodic_work(now);
        let idle = self.folded.plus(FOLD_EVERY).since(now);
        let due = self.retries.rest(now);
        let has_work = self.core.store.has_work_ahead()
            || !self.warm.is_empty()
            || due.is_some_and(|due| due.is_zero());
        if !has_work {
            return due.map_or(idle, |due| due.min(idle));
        }
        let rest = self.cap.rest(now);
        if !rest.is_zero() {
            return rest.min(idle);
        }
        if self.must_yield(now) {
            return PAUSE;
        }
        // What was hottest of all that has ended is known when all of it was found.
        self.core.store.sweep(now);
        let is_capped = self.make_next(now);
        let ended = Boottime::now();
        if is_capped {
            self.cap.worked(now, ended);
        }
        let nanos = ended.as_nanos().saturating_sub(now.as_nanos());
        self.state.worked_nanos.fetch_add(nanos, Ordering::Relaxed);
        Duration::ZERO
    }

    /// True if visitors' reads come first, or nothing that is made could be a hit.
    fn must_yield(&self, now: Boottime) -> bool {
        let database = &self.core.database;
        !self.core.store.healthy(now) || !database.has_feed() || !database.has_room()
    }

    /// Does the work that is due at intervals.
    fn run_periodic_work(&mut self, now: Boottime) {
        if now >= self.folded.plus(FOLD_EVERY) {
            self.core.store.fold_heat();
            self.folded = now;
        }
        if now >= self.started.plus(WARMTH) {
            self.inherited = Vec::new();
            self.warm = VecDeque::new();
        }
        if self.warm.is_empty() {
            self.warming = None;
        }
        let wanted = self.state.list_wanted.lock().take();
        if wanted.is_some() || now >= self.listed.plus(LIST_EVERY) {
            self.write_list();
            self.listed = now;
        }
    }

    /// Makes first what was ended just now, then what was refused, then what was hot before the
    /// start. Returns whether the cap counts it: after a start visitors wait for the hot pages, so
    /// those are made as fast as one after the other can be.
    fn make_next(&mut self, now: Boottime) -> bool {
        let task = match self.core.store.next_ahead(now) {
            Some((key, degree)) => Some(RefreshTask::new(key, degree)),
            None => self.retries.take(now),
        };
        if let Some(task) = task {
            if let Some(ask) = self.ask_for(&task.key) {
                self.make(&ask, task.degree, task.tries);
            }
            return true;
        }
        if let Some(line) = self.warm.pop_front()
            && let Some(ask) = self.ask_for_line(&line)
        {
            self.make(&ask, Degree::default(), 0);
        }
        false
    }

    /// The request for the page that a key identifies. For a key from before a change of the folder
    /// it is the page of the same route, if its parameters are the same.
    fn ask_for(&mut self, key: &[u8]) -> Option<Ask> {
        let generation = self.follow();
        let (page, values) = self.find(key)?;
        Some(remake::ask(&self.core, &generation, page, values))
    }

    fn find(&self, key: &[u8]) -> Option<(&Arc<Page>, Vec<Value>)> {
        if let Some(found) = self.current.read(key) {
            return Some(found);
        }
        let (before, values) = self.previous.iter().find_map(|edition| edition.read(key))?;
        let page = self.current.page(&before.route)?;
        let is_same = page.params == before.params && is_renewable(page);
        is_same.then_some((page, values))
    }

    /// The request for the page of a line of the list.
    fn ask_for_line(&mut self, line: &str) -> Option<Ask> {
        let generation = self.follow();
        let (page, values) = page_of(line, &self.current)?;
        is_renewable(&page).then(|| remake::ask(&self.core, &generation, &page, values))
    }

    /// The pages in use.
    fn follow(&mut self) -> Arc<crate::core::Generation> {
        let generation = self.core.current.load_full();
        if generation.number != self.current.number() {
            let before = std::mem::replace(&mut self.current, Edition::of(&generation));
            self.previous.truncate(EDITIONS - 1);
            self.previous.push_front(before);
        }
        generation
    }

    /// Makes a page that is as hot as `degree`, also if the previous value had another key because
    /// the folder has changed.
    fn make(&mut self, ask: &Ask, degree: Degree, tries: u32) {
        let key: Box<[u8]> = ask.key.as_slice().into();
        let Some(permit) = self.core.store.lead_ahead(&key, Boottime::now()) else {
            // A request has made it already.
            self.core.store.inherit_heat(&key, degree);
            return;
        };
        let stopped = &self.state.stopped;
        // A panic wakes the waiting requests. It has been reported, and costs only this page.
        let made = catch_unwind(AssertUnwindSafe(|| {
            block_on(ask.make_ahead(permit), stopped)
        }));
        match made {
            Ok(Some(
                MadeAhead::Refused
                | MadeAhead::Made(_, Some(FillOutcome::Fenced | FillOutcome::Outlived)),
            )) => {
                let task = RefreshTask { key, degree, tries };
                self.retries.refused(task, Boottime::now());
            }
            Ok(Some(MadeAhead::Made(_, Some(FillOutcome::Stored)))) => {
                self.core.store.inherit_heat(&key, degree)
            }
            _ => {}
        }
    }

    fn write_list(&mut self) {
        self.follow();
        if self.list.is_none() {
            return;
        }
        let hottest = self.core.store.hottest(PAGES).into_iter();
        let hottest = hottest.filter_map(|key| {
            let (page, values) = self.find(&key)?;
            line_of(page, &values)
        });
        let mut known = HashSet::new();
        let lines: Vec<String> = hottest
            .chain(self.inherited.iter().cloned())
            .filter(|line| known.insert(line.clone()))
            .take(PAGES)
            .collect();
        if let Some(list) = &mut self.list {
            list.write(&lines, |note| self.core.log(note));
        }
    }
}

/// Runs a future on this thread; none if it is stopped before, which gives the future up.
fn block_on<T>(future: impl Future<Output = T>, stopped: &AtomicBool) -> Option<T> {
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    while !stopped.load(Ordering::Acquire) {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        thread::park();
    }
    None
}

/// Wakes this thread.
pub(crate) fn waker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Waker::from(Arc::new(Unpark(thread::current())))
}
