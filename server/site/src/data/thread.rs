//! The thread that keeps the tables in step with the files.

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use millpond_db::Database;
use parking_lot::Mutex;

use super::{
    DataSources,
    inbox::{Inbox, Wake},
    sync::{FolderSync, LookOutcome, SOON},
};
use crate::log::Log;
use millpond_site_format::{Problem, time_zone::SiteZone};

/// How often a site that starts waits for files that are being written.
const FIRST_LOOKS: u32 = 8;

/// The files of a site's folder, kept in step until this is dropped.
pub(crate) struct DataFiles {
    inbox: Arc<Inbox>,
    problems: Arc<Mutex<Vec<Problem>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl DataFiles {
    /// Applies what has changed since the site last ran, and follows the folder from then on.
    /// A moment without an offset is of the zone. `changed` is called after each look that has
    /// changed rows or found other problems.
    pub(crate) fn start(
        sources: DataSources,
        database: &Database,
        inbox: Arc<Inbox>,
        log: &Arc<Log>,
        zone: SiteZone,
        changed: impl Fn() + Send + 'static,
    ) -> Result<Self, Problem> {
        let problems = Arc::new(Mutex::new(Vec::new()));
        let mut follower = Follower {
            sync: FolderSync::new(sources, database, Arc::clone(&inbox), zone),
            inbox: Arc::clone(&inbox),
            log: Arc::clone(log),
            problems: Arc::clone(&problems),
        };
        let mut retry = follower.look(&Wake::Lost).retry;
        for _ in 1..FIRST_LOOKS {
            if retry != Some(SOON) {
                break;
            }
            std::thread::sleep(SOON);
            retry = follower.look(&Wake::Lost).retry;
        }
        let thread = std::thread::Builder::new()
            .name("millpond-data".to_owned())
            .spawn(move || follower.run(retry, changed))
            .map_err(|error| {
                Problem::new(
                    super::FOLDER,
                    format!("the thread for it cannot start: {error}"),
                )
            })?;
        Ok(Self {
            inbox,
            problems,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Returns the present faults of the files.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.problems.lock().clone()
    }

    /// Looks at all files once more: a migration was applied.
    pub(crate) fn migrated(&self) {
        self.inbox.migrated();
    }

    /// Waits until the thread has ended; a file that is being applied is left as it was.
    pub(crate) fn stop(&self) {
        self.inbox.stop();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic was reported by its hook.
            let _ = thread.join();
        }
    }
}

impl Drop for DataFiles {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Follower {
    sync: FolderSync,
    inbox: Arc<Inbox>,
    log: Arc<Log>,
    problems: Arc<Mutex<Vec<Problem>>>,
}

impl Follower {
    fn look(&mut self, wake: &Wake) -> LookOutcome {
        let outcome = self.sync.look(wake);
        for line in &outcome.lines {
            self.log.line(line);
        }
        self.problems.lock().clone_from(&self.sync.problems);
        outcome
    }

    fn run(mut self, mut retry: Option<Duration>, changed: impl Fn()) {
        loop {
            let wake = self.inbox.wait(retry);
            if wake == Wake::Stopped {
                return;
            }
            let before = self.sync.problems.clone();
            let outcome = self.look(&wake);
            retry = outcome.retry;
            if outcome.has_changed || before != self.sync.problems {
                changed();
            }
        }
    }
}
