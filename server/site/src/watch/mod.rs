//! Reports changes of a site folder, so that the served content follows the files on disk.
//!
//! inotify says what happened; this module says when to look. Events are not passed on one by one:
//! a save is several of them, a checkout thousands. After the first event, one call follows as soon
//! as no event has arrived for [`QUIET`], and at the latest after [`DELAY_LIMIT`].
//!
//! No change is missed. A folder is watched before it is listed, and new folders are watched before
//! the change is reported. So a write is either reported by an event, or was there when the
//! listener read the folder. If that chain breaks (the kernel's queue overflows, an error occurs,
//! another folder replaces the watched one), everything is watched again and [`Changed::Rescan`] is
//! reported. Until that succeeds, `Rescan` is repeated every [`CHECK_EVERY`].

mod filter;
#[cfg(test)]
mod tests;
mod tree;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base_clock::Boottime;
use parking_lot::{Condvar, Mutex};

use crate::data::Inbox;
use filter::Meaning;
use millpond_site_format::problem::Problem;
use tree::Tree;

/// Nothing for so long means that a save or a checkout is over.
const QUIET: Duration = Duration::from_millis(20);
/// The longest time from an event to the call, while events go on.
const DELAY_LIMIT: Duration = Duration::from_millis(200);
/// How often it is checked that the path still leads to the folder that is watched. A link set to
/// another folder (as deployments do) and a mount make no event in the folder itself.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A notification to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Something in the folder.
    Some,
    /// Anything may have changed: events were lost, or the folder is another one.
    Rescan,
}

/// A folder being watched, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<WatchShared>,
}

impl Watch {
    /// Watches `dir` and all folders in it but those that are hidden, and those that links lead to;
    /// with `outside_files` also files outside that links lead to. `changed` is called on a thread
    /// of its own, never twice at a time; it is not told of database files and logs (see `filter`).
    /// What concerns files of data goes to `data`.
    /// A call that runs when the `Watch` is dropped ends by itself, and none begins after that. A
    /// panic in it does not end the watch.
    pub(crate) fn start(
        dir: &Path,
        outside_files: bool,
        data: Arc<Inbox>,
        changed: impl Fn(Changed) + Send + 'static,
    ) -> Result<Self, Problem> {
        let shared = Arc::new(WatchShared::default());
        let tree = plant(dir, outside_files, &data, &shared)?;
        let follower = Follower {
            dir: dir.to_owned(),
            outside_files,
            data,
            shared: Arc::clone(&shared),
            tree: Some(tree),
            gone: false,
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || follower.run(changed))
            .map_err(|error| {
                Problem::new(dir, format!("the thread to watch it cannot start: {error}"))
            })?;
        Ok(Self { shared })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.pending.lock().stopped = true;
        self.shared.wake.notify_all();
    }
}

/// Between the thread that reads inotify and the one that calls the listener.
#[derive(Debug, Default)]
struct WatchShared {
    pending: Mutex<PendingChanges>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct PendingChanges {
    /// The first and the last event that the listener does not know of.
    span: Option<(Boottime, Boottime)>,
    /// The gravest of them.
    meaning: Option<Meaning>,
    stopped: bool,
}

impl WatchShared {
    fn note(&self, meaning: Meaning) {
        let now = Boottime::now();
        let mut pending = self.pending.lock();
        let first = pending.span.map(|(first, _)| first);
        pending.span = Some((first.unwrap_or(now), now));
        pending.meaning = pending.meaning.max(Some(meaning));
        drop(pending);
        // Later events only move the time at which the other thread wakes up anyway.
        if first.is_none() {
            self.wake.notify_one();
        }
    }

    /// Waits for a burst of events to be over, but not longer than [`CHECK_EVERY`] for one to
    /// begin.
    fn next(&self) -> FollowerAction {
        let idle_until = Boottime::now().plus(CHECK_EVERY);
        let mut pending = self.pending.lock();
        loop {
            if pending.stopped {
                return FollowerAction::Stop;
            }
            let due = pending.span.map_or(idle_until, |(first, last)| {
                first.plus(DELAY_LIMIT).min(last.plus(QUIET))
            });
            let now = Boottime::now();
            if now >= due {
                pending.span = None;
                return pending
                    .meaning
                    .take()
                    .map_or(FollowerAction::Idle, FollowerAction::Burst);
            }
            self.wake.wait_for(&mut pending, due.since(now));
        }
    }

    fn stopped(&self) -> bool {
        self.pending.lock().stopped
    }
}

enum FollowerAction {
    Burst(Meaning),
    Idle,
    Stop,
}

fn plant(
    dir: &Path,
    outside_files: bool,
    data: &Arc<Inbox>,
    shared: &Arc<WatchShared>,
) -> Result<Tree, Problem> {
    let shared = Arc::clone(shared);
    let note = move |meaning| shared.note(meaning);
    Tree::plant(dir, outside_files, Arc::clone(data), note)
}

/// The thread that keeps the watch whole and calls the listener.
struct Follower {
    dir: PathBuf,
    outside_files: bool,
    data: Arc<Inbox>,
    shared: Arc<WatchShared>,
    /// None if not everything is watched.
    tree: Option<Tree>,
    /// True if the listener was notified that the folder is missing.
    gone: bool,
}

impl Follower {
    fn run(mut self, changed: impl Fn(Changed)) {
        loop {
            let meaning = match self.shared.next() {
                FollowerAction::Stop => return,
                FollowerAction::Burst(meaning) => Some(meaning),
                FollowerAction::Idle => None,
            };
            if let Some(told) = self.follow(meaning)
                && !self.shared.stopped()
            {
                match told {
                    // Folders that are new are watched now.
                    Changed::Some => self.data.look(),
                    Changed::Rescan => self.data.lost(),
                }
                // The panic hook has reported the panic of the listener; the next change is
                // reported as usual.
                let _ = catch_unwind(AssertUnwindSafe(|| changed(told)));
            }
        }
    }

    /// Watches new folders, and returns the notification for the listener.
    fn follow(&mut self, meaning: Option<Meaning>) -> Option<Changed> {
        let here = fs::metadata(&self.dir).is_ok();
        if !here && self.gone {
            return None;
        }
        self.gone = !here;
        let whole = match meaning {
            Some(Meaning::Lost) => false,
            Some(Meaning::Names) => self.current().is_some_and(|tree| tree.grow().is_ok()),
            Some(Meaning::Data) | None => self.current().is_some(),
        };
        if whole {
            return meaning.map(|_| Changed::Some);
        }
        // The old watches go first: both together might be more than the system allows.
        self.tree = None;
        self.tree = plant(&self.dir, self.outside_files, &self.data, &self.shared).ok();
        Some(Changed::Rescan)
    }

    /// The tree, if it is that of the folder to which the path leads now.
    fn current(&self) -> Option<&Tree> {
        let dir = &self.dir;
        self.tree.as_ref().filter(|tree| tree.is_of(dir))
    }
}
