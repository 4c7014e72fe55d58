//! Refresh ahead: hot pages are made again before they are asked for (COHERENCE, rule 8).
//!
//! The store notices which hot pages a change or a new epoch has ended, and has them in order (`store/ahead.rs`). Here they are made,
//! one at a time and within a [cap](cap::Cap), each by an ordinary flight: who asks meanwhile waits for it by the ordinary rules, and
//! the fence looks at it as at any other. After a restart the same is done with the [list] of what was hot before.
//!
//! Visitors come first. Nothing is begun while a read waits for a connection, or while the feed is too old for anything to be a hit;
//! what has waited too long by then is dropped. Where changes outrun the making, a page is tried [again] a few times with
//! growing pauses and then left to those who ask. What is made in vain loses half of its heat each time, and so is soon left alone.
//!
//! It has a thread of its own and no place on a worker: there a rendering for nobody would hold up hits. The thread has the
//! ordinary priority, because visitors may wait for what it makes; the cap bounds the processor's time as it does the database's.
//!
//! Only what follows from the key alone is made ahead ([remake]): pages and JSON that are the same for every visitor.

mod again;
mod cap;
mod driver;
mod list;
pub(crate) mod remake;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::core::Core;
use driver::Driver;

/// Keys that may wait to be made. More than the cap lets be made while they are worth it, so past it the hottest stay.
pub(crate) const QUEUE: usize = 1024;

/// How much is made ahead, and where it is kept what was hot.
pub(crate) struct Settings {
    /// Of the time of one connection to the database, in per cent.
    pub(crate) percent: usize,
    /// None keeps no list.
    pub(crate) list: Option<PathBuf>,
}

/// Between the thread and the rest.
#[derive(Default)]
struct Shared {
    stopped: AtomicBool,
    /// What the thread's work took in all.
    worked_nanos: AtomicU64,
}

/// The thread that makes pages ahead, until this is dropped.
pub(crate) struct Ahead {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts the thread. If the system has none to give, pages are made as they are asked for, and the owner is told.
    pub(crate) fn start(core: &Arc<Core>, settings: Settings) -> Self {
        let shared = Arc::new(Shared::default());
        let driver = Driver::new(core.clone(), shared.clone(), settings);
        let thread = Builder::new()
            .name("ahead".to_owned())
            .spawn(move || driver.run())
            .inspect_err(|error| {
                core.log(&format!(
                    "there is no thread to make pages ahead, so they are made as they are asked for: {error}"
                ));
            });
        Self {
            shared,
            thread: thread.ok(),
        }
    }

    /// What making pages ahead took in all, with looking for them.
    pub(crate) fn worked(&self) -> Duration {
        Duration::from_nanos(self.shared.worked_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Ahead {
    /// Waits for the thread, which gives up what it makes and writes the list.
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in it has been reported, and ends nothing but refresh ahead.
            let _ = thread.join();
        }
    }
}
