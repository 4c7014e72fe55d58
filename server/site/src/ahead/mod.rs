//! Refresh ahead: hot pages are made again before a request asks for them (coherence.md, rule 8).
//!
//! The store notices which hot pages a change or a new epoch has ended, and keeps them in order
//! (`store/ahead.rs`). This module makes them, one at a time and within a [cap](cap::Cap), each by
//! an ordinary flight. Requests that arrive meanwhile wait for the flight by the ordinary rules,
//! and the fence checks the result as any other. After a restart the same is done with the [list]
//! of pages that were hot before.
//!
//! Visitors come first. No page is begun while a read waits for a connection, or while the feed is
//! too old for hits; a key that has waited too long by then is dropped. If changes come faster than
//! pages are made, a page is tried [again](retries) a few times with growing pauses and then left
//! to requests. A page that is made without being used loses half of its heat each time, so it soon
//! gets no more work.
//!
//! The module has a thread of its own and does not run on a worker: there it would hold up hits.
//! The thread has the ordinary priority, because visitors may wait for the page that it makes. The
//! cap bounds the processor's time as well as the database's.
//!
//! Only pages that follow from the key alone are made ahead ([remake]): pages and JSON that are the
//! same for every visitor.

mod cap;
mod driver;
mod list;
pub(crate) mod remake;
mod retries;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;

use crate::core::Core;
use driver::Driver;
pub(crate) use driver::waker;

/// The most keys that wait to be made. That is more than the cap can make while they are hot, so
/// past it the hottest stay.
pub(crate) const QUEUE: usize = 1024;

/// How much is made ahead, and where it is kept what was hot.
pub(crate) struct RefreshSettings {
    /// Of the time of one connection to the database, in per cent.
    pub(crate) percent: usize,
    /// None keeps no list.
    pub(crate) list: Option<PathBuf>,
}

/// Between the thread and the rest.
#[derive(Default)]
struct AheadState {
    stopped: AtomicBool,
    /// Time of the thread's work in all.
    worked_nanos: AtomicU64,
    /// Wants the list written, and is dropped when it is.
    list_wanted: Mutex<Option<Sender<()>>>,
}

/// The thread that makes pages ahead, until this is dropped.
pub(crate) struct Ahead {
    state: Arc<AheadState>,
    thread: Option<JoinHandle<()>>,
    /// Ends once the pages of the list are made.
    warmed: Receiver<()>,
}

impl Ahead {
    /// Starts the thread. If the system refuses the thread, pages are made at requests, and the
    /// owner is notified.
    pub(crate) fn start(core: &Arc<Core>, settings: RefreshSettings) -> Self {
        let state = Arc::new(AheadState::default());
        let (warming, warmed) = mpsc::channel();
        let driver = Driver::new(core.clone(), state.clone(), settings, warming);
        let thread = Builder::new()
            .name("ahead".to_owned())
            .spawn(move || driver.run())
            .inspect_err(|error| {
                core.log(&format!(
                    "there is no thread to make pages ahead, so they are made as they are asked for: {error}"
                ));
            });
        Self {
            state,
            thread: thread.ok(),
            warmed,
        }
    }

    /// Waits until the pages that were hot before the start are made, for at most `timeout`.
    pub(crate) fn wait_until_warm(&self, timeout: Duration) {
        let _ = self.warmed.recv_timeout(timeout);
    }

    /// Writes the list of hot pages. Waits for it at most a second, as a page may be made first.
    pub(crate) fn write_list(&self) {
        let (wanted, written) = mpsc::channel();
        *self.state.list_wanted.lock() = Some(wanted);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
            let _ = written.recv_timeout(Duration::from_secs(1));
        }
    }

    /// Returns the time that making pages ahead took in all, with looking for them.
    pub(crate) fn worked(&self) -> Duration {
        Duration::from_nanos(self.state.worked_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Ahead {
    /// Waits for the thread, which gives up what it makes and writes the list.
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in the thread has been reported, and ends only refresh ahead.
            let _ = thread.join();
        }
    }
}
