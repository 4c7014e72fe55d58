//! The thread that looks after live pages: what has ended is made again, once for all who look.
//!
//! It asks the store for the page as a request does. So every way in which a page ends is seen: a
//! change, an epoch, an end of its own, a table that cannot be told row by row. It is woken by each
//! change, and looks at least once in an interval. Several pages are made at once; admission
//! decides how many of them read.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    thread::{self, JoinHandle},
    time::Duration,
};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_http::{Body, entity_tag};
use millpond_pages::{Arrival, Priority};
use millpond_store::{FillOutcome, MissReason};

use super::board::{BEAT, LivePage, StreamEnd};
use crate::{
    ahead::waker,
    answer::{Ask, MadeAhead, arrival::own_arrival, cached::Cached},
    core::{Core, Generation},
};
use millpond_site_format::params::with_new_date;

/// A page is kept for this long after its last stream, whose client often comes again.
const KEPT: Duration = Duration::from_secs(1);
/// Streams of a page whose newest state is not known for this long beyond the bound are ended.
const DOUBT: Duration = Duration::from_secs(1);
/// Least time between two makings of a page that cannot be kept.
const UNKEPT: Duration = Duration::from_secs(1);
/// Looks take at most a fifth of the time.
const SHARE: u32 = 5;
/// Another thread makes the page.
const SOON: Duration = Duration::from_millis(5);
/// The most pages that are made at once.
const AT_ONCE: usize = 32;

/// The thread, until this is dropped.
pub(crate) struct Watcher {
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts the thread. `bound` is the site's `max_staleness`.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn start(core: &Arc<Core>, bound: Duration) -> io::Result<Self> {
        let is_stopped = Arc::<AtomicBool>::default();
        let (own, is_over) = (core.clone(), is_stopped.clone());
        let watch = move || {
            let watch = Watch {
                core: own,
                is_stopped: is_over,
                bound,
                making: Vec::new(),
                second: 0,
            };
            watch.run();
        };
        let thread = thread::Builder::new().name("live".to_owned());
        let thread = thread.spawn(watch)?;
        core.live.set_watcher(Some(thread.thread().clone()));
        Ok(Self {
            is_stopped,
            thread: Some(thread),
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of it has been reported.
            let _ = thread.join();
        }
    }
}

/// A page that is being made.
struct Making {
    page: Arc<LivePage>,
    since: Boottime,
    made: Pin<Box<dyn Future<Output = MadeAhead>>>,
}

struct Watch {
    core: Arc<Core>,
    is_stopped: Arc<AtomicBool>,
    bound: Duration,
    making: Vec<Making>,
    /// The second up to which heartbeats were sent.
    second: u64,
}

impl Drop for Watch {
    /// Without it no stream would be told anything.
    fn drop(&mut self) {
        self.core.live.set_watcher(None);
        self.core.store.set_observer(None);
        for page in self.core.live.pages() {
            page.close(StreamEnd::Again);
        }
    }
}

impl Watch {
    fn run(mut self) {
        let waker = waker();
        let mut next = Boottime::from_nanos(0);
        while !self.is_stopped.load(Ordering::Acquire) {
            self.go_on(&waker);
            let began = Boottime::now();
            let left = next.since(began);
            // A change may have come meanwhile.
            if !left.is_zero() {
                thread::park_timeout(left);
                continue;
            }
            let pages = self.core.live.pages();
            if pages.is_empty() {
                self.core.store.set_observer(None);
                thread::park();
                continue;
            }
            self.core.store.set_observer(Some(waker.clone()));
            let pause = self.look(&pages);
            self.go_on(&waker);
            self.beat(&pages, began);
            let took = Boottime::now().since(began);
            next = began.plus(took * SHARE);
            thread::park_timeout(pause);
        }
    }

    /// Goes on with the pages that are being made.
    fn go_on(&mut self, waker: &Waker) {
        let mut context = Context::from_waker(waker);
        let mut making = std::mem::take(&mut self.making);
        making.retain_mut(|making| {
            let poll = AssertUnwindSafe(|| making.made.as_mut().poll(&mut context));
            match catch_unwind(poll) {
                Ok(Poll::Pending) => return true,
                Ok(Poll::Ready(MadeAhead::Made(value, outcome))) => {
                    making.page.saw(&value, making.since);
                    self.tell(&making.page, &value, making.since);
                    if outcome.is_none() {
                        making.page.pause(UNKEPT);
                    }
                }
                Ok(Poll::Ready(MadeAhead::Refused)) => making.page.pause(SOON),
                Ok(Poll::Ready(MadeAhead::Nothing)) => making.page.pause(UNKEPT),
                // It has been reported, and costs only this page.
                Err(_) => making.page.close(StreamEnd::Again),
            }
            false
        });
        self.making = making;
    }

    /// Looks at all pages, and returns the time to the next look.
    fn look(&mut self, pages: &[Arc<LivePage>]) -> Duration {
        let generation = self.core.current.load_full();
        let interval = self.core.live.settings.interval;
        let mut pause = interval;
        for page in pages {
            let now = Boottime::now();
            let rest = page.rest(now);
            if page.generation != generation.number
                || page.is_shared == page.page.private.load(Ordering::Relaxed)
                || page.is_empty_for(KEPT, now)
                || page.doubt(now) > self.bound + interval + DOUBT
            {
                // Its client asks for the page as it is now.
                page.close(StreamEnd::Again);
            } else if !rest.is_zero() {
                pause = pause.min(rest);
            } else if !self.making.iter().any(|it| Arc::ptr_eq(&it.page, page))
                && let Some(soon) = self.look_at(page, &generation, now)
            {
                pause = pause.min(soon);
            }
        }
        pause
    }

    /// Looks at a page, and begins to make it if it has ended. Returns the time after which to look
    /// again, if that is soon.
    fn look_at(
        &mut self,
        page: &Arc<LivePage>,
        generation: &Arc<Generation>,
        now: Boottime,
    ) -> Option<Duration> {
        match self.core.store.get(&page.key, now) {
            Ok(hit) => {
                if page.saw(hit.value(), now) {
                    self.tell(page, hit.value(), now);
                }
                return None;
            }
            // A page that was made now would be no newer.
            Err(MissReason::FeedOld) => return None,
            Err(_) => {}
        }
        let params = &page.page.params;
        if with_new_date(params, page.values.clone()) != page.values {
            // Today is another day: the same address has another key.
            page.close(StreamEnd::Again);
            return None;
        }
        if self.making.len() >= AT_ONCE {
            return Some(SOON);
        }
        let Some(permit) = self.core.store.lead_ahead(&page.key, now) else {
            return Some(SOON);
        };
        let ask = self.ask(page, generation);
        let is_shared = page.is_shared;
        let made = async move {
            if is_shared {
                return ask.make_ahead(permit).await;
            }
            let (value, _, _turn) = ask.make_results(permit).await;
            MadeAhead::Made(value, Some(FillOutcome::Stored))
        };
        self.making.push(Making {
            page: page.clone(),
            since: now,
            made: Box::pin(made),
        });
        None
    }

    fn ask(&self, page: &LivePage, generation: &Arc<Generation>) -> Ask {
        let cost = page.page.counters.mean_fill();
        Ask {
            core: self.core.clone(),
            generation: generation.clone(),
            page: page.page.clone(),
            values: page.values.clone(),
            key: page.key.to_vec(),
            visitor: page.visitor.clone(),
            // People wait for it.
            arrival: Arrival {
                priority: Priority::Document,
                ..own_arrival(cost)
            },
            report: OnceLock::new(),
        }
    }

    /// Tells what the newest state at `since` is.
    fn tell(&self, page: &LivePage, value: &Cached, since: Boottime) {
        let interval = self.core.live.settings.interval;
        let room = &self.core.live.texts;
        match value {
            Cached::Page(prepared) => {
                let text = match prepared.body() {
                    Body::Bytes(text) => text.clone(),
                    _ => Bytes::new(),
                };
                page.tell(
                    (prepared.etag().trim_matches('"'), &text),
                    since,
                    interval,
                    room,
                );
            }
            Cached::Bundle(objects) => {
                let objects = objects.iter().map(|object| object.json().to_string());
                let text: Vec<String> = objects.collect();
                let tag = entity_tag(text.join("\n").as_bytes());
                page.tell((&tag, &Bytes::new()), since, interval, room);
            }
            Cached::Missing(_) => page.close(StreamEnd::Gone),
            // It is tried again.
            Cached::Failed(_) => page.pause(SOON),
            Cached::Object(_) => {}
        }
    }

    /// Each stream gets a heartbeat once in [`BEAT`], a part of all of them each second.
    fn beat(&mut self, pages: &[Arc<LivePage>], now: Boottime) {
        let (turns, second) = (BEAT.as_secs(), now.as_nanos() / 1_000_000_000);
        let missed = (second - self.second).min(turns);
        self.second = second;
        for turn in second + 1 - missed..=second {
            for page in pages {
                page.beat((turn % turns) as usize, turns as usize);
            }
        }
    }
}
