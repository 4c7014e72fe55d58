//! What a site remembers while it is made.

use std::{sync::Arc, time::UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::watch;

use millpond_site_format::Problem;

/// The state of a folder under development.
pub(crate) struct DevState {
    /// Tells the states of one process from those of another.
    start: u128,
    progress: watch::Sender<FolderProgress>,
    problems: Mutex<Arc<[Problem]>>,
}

#[derive(Clone, Copy, Default)]
struct FolderProgress {
    /// Readings of the folder.
    changes: u64,
    is_over: bool,
}

impl Default for DevState {
    fn default() -> Self {
        let now = base_clock::wall().duration_since(UNIX_EPOCH);
        Self {
            start: now.unwrap_or_default().as_nanos(),
            progress: watch::Sender::default(),
            problems: Mutex::new([].into()),
        }
    }
}

impl DevState {
    /// The folder was read, with these faults.
    pub(crate) fn changed(&self, problems: Vec<Problem>) {
        *self.problems.lock() = problems.into();
        self.progress.send_modify(|progress| progress.changes += 1);
    }

    /// The server stops: the streams of browsers end.
    pub(crate) fn stop(&self) {
        self.progress
            .send_modify(|progress| progress.is_over = true);
    }

    pub(super) fn problems(&self) -> Arc<[Problem]> {
        self.problems.lock().clone()
    }

    /// The state, as a page remembers it.
    pub(super) fn token(&self) -> String {
        self.token_of(self.progress.borrow().changes)
    }

    fn token_of(&self, changes: u64) -> String {
        format!("{:x}-{changes}", self.start)
    }

    /// Waits until the state is not `known`. False if the server stops first.
    pub(super) async fn has_changed(self: Arc<Self>, known: String) -> bool {
        let mut watched = self.progress.subscribe();
        let ends = |progress: &FolderProgress| {
            progress.is_over || self.token_of(progress.changes) != known
        };
        let end = watched.wait_for(ends).await;
        end.is_ok_and(|progress| !progress.is_over)
    }
}

impl std::fmt::Debug for DevState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DevState").field(&self.token()).finish()
    }
}
