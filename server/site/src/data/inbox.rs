//! What inotify says about the files of the folder.
//!
//! A file is looked at when its writer closes it, and not before: what is half written would be a
//! file too. A file that takes the place of another by a rename is whole at once.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind},
};
use parking_lot::{Condvar, Mutex};

use super::FOLDER;

/// Files that are written at a time, at most; with more of them events count as lost.
const MAX_OPEN: usize = 10_000;

/// The events that the thread of the files has not taken.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    wake: Condvar,
    /// Asked at each row, without the lock; set with it.
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct InboxState {
    /// Files that are being written, below the folder.
    open: HashSet<PathBuf>,
    /// Files that were closed or renamed since the last look.
    closed: HashSet<PathBuf>,
    has_news: bool,
    is_lost: bool,
    has_migrated: bool,
}

/// What woke the thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Files have changed. With those that were closed, which are whole.
    News(HashSet<PathBuf>),
    /// It is not known which files are being written.
    Lost,
    /// The time is over.
    Time,
    Stopped,
}

impl Inbox {
    /// Takes an event in. True if it concerns only files of the folder, and no folder in it.
    pub(crate) fn event(&self, event: &Event, root: &Path) -> bool {
        let folder = root.join(FOLDER);
        let is_inside = |path: &PathBuf| path.starts_with(&folder) && *path != folder;
        if !event.paths.iter().any(|path| path.starts_with(&folder)) {
            return false;
        }
        let mut state = self.state.lock();
        let news = match event.kind {
            EventKind::Create(CreateKind::File) | EventKind::Modify(ModifyKind::Data(_)) => {
                let below = event.paths.iter();
                let below = below.filter_map(|path| path.strip_prefix(&folder).ok());
                state.open.extend(below.map(Path::to_owned));
                if state.open.len() > MAX_OPEN {
                    state.open.clear();
                    state.is_lost = true;
                }
                false
            }
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Remove(_) => {
                for path in &event.paths {
                    if let Ok(below) = path.strip_prefix(&folder) {
                        state.open.remove(below);
                        if state.closed.len() < MAX_OPEN {
                            state.closed.insert(below.to_owned());
                        }
                    }
                }
                true
            }
            EventKind::Access(_) => false,
            // A folder, or rights.
            _ => true,
        };
        if news || state.is_lost {
            state.has_news = true;
            self.wake.notify_one();
        }
        let of_files = !matches!(
            event.kind,
            EventKind::Create(CreateKind::Folder | CreateKind::Any)
                | EventKind::Remove(RemoveKind::Folder | RemoveKind::Any)
                | EventKind::Modify(ModifyKind::Name(_))
                | EventKind::Any
                | EventKind::Other
        );
        of_files && event.paths.iter().all(is_inside)
    }

    /// Events were lost, or the site's folder is another one.
    pub(crate) fn lost(&self) {
        let mut state = self.state.lock();
        state.open.clear();
        state.is_lost = true;
        state.has_news = true;
        self.wake.notify_one();
    }

    /// Looks at the files once more: new folders are watched now.
    pub(crate) fn look(&self) {
        self.state.lock().has_news = true;
        self.wake.notify_one();
    }

    /// Looks at all files once more: the tables may be others now.
    pub(super) fn migrated(&self) {
        self.state.lock().has_migrated = true;
        self.look();
    }

    /// True if the tables may be others than at the last call.
    pub(super) fn take_migrated(&self) -> bool {
        std::mem::take(&mut self.state.lock().has_migrated)
    }

    pub(super) fn stop(&self) {
        let state = self.state.lock();
        self.stopped.store(true, Ordering::Relaxed);
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Waits for news; `limit` bounds the wait.
    pub(super) fn wait(&self, limit: Option<Duration>) -> Wake {
        let mut state = self.state.lock();
        while !state.has_news && !self.is_stopped() {
            match limit {
                None => self.wake.wait(&mut state),
                Some(limit) => {
                    if self.wake.wait_for(&mut state, limit).timed_out() {
                        break;
                    }
                }
            }
        }
        if self.is_stopped() {
            return Wake::Stopped;
        }
        if !std::mem::take(&mut state.has_news) {
            return Wake::Time;
        }
        match std::mem::take(&mut state.is_lost) {
            true => Wake::Lost,
            false => Wake::News(std::mem::take(&mut state.closed)),
        }
    }

    /// True if a file, by its name below the folder, is being written.
    pub(super) fn is_open(&self, name: &str) -> bool {
        self.state.lock().open.contains(Path::new(name))
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, RenameMode};

    use super::*;

    #[test]
    fn a_file_is_news_once_it_is_closed() {
        let inbox = Inbox::default();
        let root = Path::new("/srv/site");
        let now = Some(Duration::ZERO);
        let tell =
            |kind, path: &str| inbox.event(&Event::new(kind).add_path(root.join(path)), root);
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        assert!(!tell(written, "pages/index.html"));
        assert!(tell(EventKind::Create(CreateKind::File), "data/a.csv"));
        assert!(tell(written, "data/a.csv"));
        assert_eq!(inbox.wait(now), Wake::Time);
        assert!(tell(closed, "data/b.csv"));
        let names = |name: &str| HashSet::from([PathBuf::from(name)]);
        assert_eq!(inbox.wait(now), Wake::News(names("b.csv")));
        assert!(inbox.is_open("a.csv") && !inbox.is_open("b.csv"));
        assert!(tell(closed, "data/a.csv"));
        assert!(!inbox.is_open("a.csv"));
        assert_eq!(inbox.wait(now), Wake::News(names("a.csv")));
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        assert!(!tell(renamed, "data/posts"), "it may be a folder to watch");
        assert_eq!(inbox.wait(now), Wake::News(names("posts")));
        assert!(!tell(EventKind::Create(CreateKind::Folder), "data"));
        for number in 0..=MAX_OPEN {
            tell(written, &format!("data/{number}.csv"));
        }
        assert_eq!(inbox.wait(now), Wake::Lost);
        inbox.stop();
        assert_eq!(inbox.wait(None), Wake::Stopped);
    }
}
