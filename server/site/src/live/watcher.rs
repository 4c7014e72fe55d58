//! The thread that looks after live pages: what has ended is made again, once for all who look.
//!
//! It asks the store for the page as a request does. So every way in which a page ends is seen: a
//! change, an epoch, an end of its own, a table that cannot be told row by row. It is woken by each
//! change, and looks at least once in an interval.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use base_clock::Boottime;
use millpond_pages::{Arrival, Priority};
use millpond_store::MissReason;

use super::board::{BEAT, LivePage, StreamEnd};
use crate::{
    ahead::{block_on, waker},
    answer::{Ask, arrival::own_arrival, cached::Cached},
    core::{Core, Generation},
};

/// A page is kept for this long after the last one has left, who often comes again.
const KEPT: Duration = Duration::from_secs(10);
/// Streams of a page whose newest state is not known for this long beyond the bound are ended.
const DOUBT: Duration = Duration::from_secs(1);
/// Part of the time that looks may take.
const SHARE: u32 = 4;
/// Another thread makes the page.
const SOON: Duration = Duration::from_millis(5);

/// The thread, until this is dropped.
pub(crate) struct Watcher {
    core: Arc<Core>,
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
        let watch = Watch {
            core: core.clone(),
            is_stopped: is_stopped.clone(),
            bound,
            beats: 0,
            beaten: Boottime::now(),
        };
        let thread = thread::Builder::new().name("live".to_owned());
        let thread = thread.spawn(move || watch.run())?;
        core.live.set_watcher(Some(thread.thread().clone()));
        Ok(Self {
            core: core.clone(),
            is_stopped,
            thread: Some(thread),
        })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.core.live.set_watcher(None);
        self.is_stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of it has been reported.
            let _ = thread.join();
        }
        for page in self.core.live.pages() {
            page.close(StreamEnd::Again);
        }
    }
}

struct Watch {
    core: Arc<Core>,
    is_stopped: Arc<AtomicBool>,
    bound: Duration,
    /// Turns of heartbeats so far, and when the last one was.
    beats: usize,
    beaten: Boottime,
}

impl Watch {
    fn run(mut self) {
        while !self.is_stopped.load(Ordering::Acquire) {
            let pages = self.core.live.pages();
            if pages.is_empty() {
                self.core.store.set_observer(None);
                thread::park();
                continue;
            }
            self.core.store.set_observer(Some(waker()));
            let began = Boottime::now();
            let pause = self.look(&pages, began);
            self.beat(&pages, began);
            let took = Boottime::now().since(began);
            // Changes may come one after the other.
            thread::sleep(took.min(self.bound) * SHARE);
            thread::park_timeout(pause);
        }
        self.core.store.set_observer(None);
    }

    /// Looks at all pages, and returns the time to the next look.
    fn look(&self, pages: &[Arc<LivePage>], now: Boottime) -> Duration {
        let generation = self.core.current.load_full();
        let interval = self.core.live.settings.interval;
        let mut pause = interval;
        for page in pages {
            let rest = page.rest(now);
            if page.generation != generation.number
                || page.is_shared == page.page.private.load(Ordering::Relaxed)
                || page.is_empty_for(KEPT, now)
            {
                // Its client asks for the page as it is now.
                page.close(StreamEnd::Again);
            } else if !rest.is_zero() {
                pause = pause.min(rest);
            } else if let Some(soon) = self.look_at(page, &generation) {
                pause = pause.min(soon);
            }
            if page.doubt(now) > self.bound + interval + DOUBT {
                page.close(StreamEnd::Again);
            }
        }
        pause
    }

    /// Looks at a page, and makes it if it has ended. Returns the time after which to look again,
    /// if that is soon.
    fn look_at(&self, page: &LivePage, generation: &Arc<Generation>) -> Option<Duration> {
        let now = Boottime::now();
        match self.core.store.get(&page.key, now) {
            Ok(hit) => {
                if page.saw(hit.value(), now) {
                    self.tell(page, hit.value(), now);
                }
                None
            }
            // What could be made now would be no newer.
            Err(MissReason::FeedOld) => None,
            Err(_) => {
                let Some(permit) = self.core.store.lead_ahead(&page.key, now) else {
                    return Some(SOON);
                };
                let ask = self.ask(page, generation);
                let made = async {
                    match page.is_shared {
                        true => ask.make_ahead(permit).await.map(|(value, _)| value),
                        false => Some(ask.make_results(permit).await.0),
                    }
                };
                let value = block_on(made, &self.is_stopped).flatten()?;
                page.saw(&value, now);
                self.tell(page, &value, now);
                None
            }
        }
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
        match value {
            Cached::Page(prepared) => {
                page.tell(prepared.etag().trim_matches('"'), since, interval);
            }
            Cached::Bundle(objects) => {
                let mut hasher = DefaultHasher::new();
                for object in objects {
                    object.json().to_string().hash(&mut hasher);
                }
                page.tell(&format!("{:x}", hasher.finish()), since, interval);
            }
            Cached::Missing(_) => page.close(StreamEnd::Gone),
            // It is tried again.
            Cached::Failed(_) | Cached::Object(_) => {}
        }
    }

    /// Each stream gets a heartbeat once in [`BEAT`], a part of all of them each second.
    fn beat(&mut self, pages: &[Arc<LivePage>], now: Boottime) {
        if now.since(self.beaten) < Duration::from_secs(1) {
            return;
        }
        self.beaten = now;
        self.beats += 1;
        let turns = BEAT.as_secs() as usize;
        for page in pages {
            page.beat(self.beats % turns, turns);
        }
    }
}
