//! What a site remembers while it is made.

use std::{sync::Arc, time::UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::watch;

use millpond_site_format::Problem;

/// Browsers that wait for a change at a time. One more, and the oldest of them asks again: the
/// server does not notice that a waiting client has gone.
const MAX_WAITING: u64 = 32;

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
    /// Browsers that have waited.
    waited: u64,
    is_over: bool,
}

/// The end of waiting for a change.
pub(super) enum WaitEnd {
    /// The folder was read again, or the browser is to ask again; the state now.
    Now(String),
    /// The server stops.
    Over,
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

    /// The server stops: no browser is to wait for a change any more.
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

    /// Waits until the state is not `known`.
    pub(super) async fn wait(self: Arc<Self>, known: String) -> WaitEnd {
        let mut own = 0;
        self.progress.send_modify(|progress| {
            progress.waited += 1;
            own = progress.waited;
        });
        let mut watched = self.progress.subscribe();
        let ends = |progress: &FolderProgress| {
            progress.is_over
                || progress.waited >= own + MAX_WAITING
                || self.token_of(progress.changes) != known
        };
        match watched.wait_for(ends).await.map(|progress| *progress) {
            Ok(progress) if !progress.is_over => WaitEnd::Now(self.token_of(progress.changes)),
            _ => WaitEnd::Over,
        }
    }
}

impl std::fmt::Debug for DevState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DevState").field(&self.token()).finish()
    }
}
