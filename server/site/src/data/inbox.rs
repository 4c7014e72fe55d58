//! What inotify says about the files of the folders.
//!
//! A file is looked at when its writer closes it, and not before: what is half written would be a
//! file too. A file that takes the place of another by a rename is whole at once.

use std::{
    collections::HashSet,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{DataSources, FOLDER};
use crate::inotify::{FileChange, FileEvent};

/// Files that are written at a time, at most; with more of them events count as lost.
const MAX_OPEN: usize = 10_000;

/// The events that the thread of the files has not taken.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    sources: DataSources,
    /// The folders other than `data/` as they are watched, with the names of their tables.
    roots: Mutex<Vec<(PathBuf, String)>>,
    state: Mutex<InboxState>,
    wake: Condvar,
    /// Asked at each row, without the lock; set with it.
    stopped: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct InboxState {
    /// Files that are being written, by their names.
    open: HashSet<PathBuf>,
    /// Files that were closed or renamed since the last look.
    closed: HashSet<PathBuf>,
    has_news: bool,
    /// True if more may have changed than those.
    is_broad: bool,
    is_lost: bool,
    has_migrated: bool,
}

/// FileEvent that woke the thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// Files have changed that were closed, and are whole.
    News(HashSet<PathBuf>),
    /// Other names have changed, too.
    Broad(HashSet<PathBuf>),
    /// It is not known which files are being written.
    Lost,
    /// The time is over.
    Time,
    Stopped,
}

impl Inbox {
    pub(crate) fn new(sources: DataSources) -> Self {
        Self {
            sources,
            ..Self::default()
        }
    }

    /// The folders other than `data/` that are to be watched, as they are named. Events in them are
    /// understood from now on.
    pub(crate) fn elsewhere(&self) -> Vec<PathBuf> {
        let roots = self.sources.elsewhere();
        let roots = roots.filter_map(|(table, folder)| {
            let root = folder.canonicalize().ok()?;
            Some((root, table.to_owned()))
        });
        *self.roots.lock() = roots.collect();
        let folders = self.sources.elsewhere();
        folders.map(|(_, folder)| folder.to_owned()).collect()
    }

    /// The name of what the event is about; none for what is in no folder of data, and an empty one
    /// for such a folder itself.
    fn name(&self, path: &Path, root: &Path) -> Option<PathBuf> {
        if let Ok(below) = path.strip_prefix(root.join(FOLDER)) {
            return Some(below.to_owned());
        }
        let roots = self.roots.lock();
        roots.iter().find_map(|(root, table)| {
            let below = path.strip_prefix(root).ok()?;
            let is_root = below.as_os_str().is_empty();
            Some(match is_root {
                true => PathBuf::new(),
                false => Path::new(table).join(below),
            })
        })
    }

    /// Takes an event in. True if it concerns only a file of the folders, and no folder in them.
    pub(crate) fn event(&self, event: &FileEvent, root: &Path) -> bool {
        let Some(name) = self.name(&event.path, root) else {
            return false;
        };
        // A file of a folder that is elsewhere in the site may also be served as it is.
        let is_elsewhere =
            !event.path.starts_with(root.join(FOLDER)) && event.path.starts_with(root);
        let may_be_folder = event.is_folder || event.change == FileChange::Renamed;
        let is_for_data_alone = !may_be_folder && !is_elsewhere && !name.as_os_str().is_empty();
        let mut state = self.state.lock();
        let news = match event.change {
            FileChange::Written | FileChange::Made if !event.is_folder && !is_made_whole(event) => {
                state.open.insert(name);
                if state.open.len() > MAX_OPEN {
                    state.open.clear();
                    state.is_lost = true;
                }
                false
            }
            FileChange::Attributes => {
                state.is_broad = true;
                true
            }
            FileChange::Made if event.is_folder => {
                state.is_broad = true;
                true
            }
            _ => {
                state.open.remove(&name);
                match state.closed.len() < MAX_OPEN {
                    true => drop(state.closed.insert(name)),
                    false => state.is_broad = true,
                }
                true
            }
        };
        if news || state.is_lost {
            state.has_news = true;
            self.wake.notify_one();
        }
        is_for_data_alone
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
        let mut state = self.state.lock();
        (state.has_news, state.is_broad) = (true, true);
        drop(state);
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

    /// Is set once the site stops.
    pub(super) fn stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stopped)
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
        let is_broad = std::mem::take(&mut state.is_broad);
        match std::mem::take(&mut state.is_lost) {
            true => Wake::Lost,
            false if is_broad => Wake::Broad(std::mem::take(&mut state.closed)),
            false => Wake::News(std::mem::take(&mut state.closed)),
        }
    }

    /// True if a file, by its name below the folder, is being written.
    pub(super) fn is_open(&self, name: &str) -> bool {
        self.state.lock().open.contains(Path::new(name))
    }
}

/// True if a name was made to which no program writes, so no close follows: a link, also a hard
/// one, or what is no file at all.
fn is_made_whole(event: &FileEvent) -> bool {
    let is_link = |it: Metadata| !it.is_file() || it.nlink() > 1;
    event.change == FileChange::Made && fs::symlink_metadata(&event.path).is_ok_and(is_link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(change: FileChange, path: PathBuf) -> FileEvent {
        FileEvent {
            change,
            is_folder: false,
            path,
        }
    }

    #[test]
    fn a_file_is_news_once_it_is_closed() {
        let inbox = Inbox::default();
        let root = Path::new("/srv/site");
        let now = Some(Duration::ZERO);
        let tell = |change, path: &str| inbox.event(&event(change, root.join(path)), root);
        let (written, closed) = (FileChange::Written, FileChange::Closed);
        assert!(!tell(written, "pages/index.html"));
        assert!(tell(FileChange::Made, "data/a.csv"));
        assert!(tell(written, "data/a.csv"));
        assert_eq!(inbox.wait(now), Wake::Time);
        assert!(tell(closed, "data/b.csv"));
        let names = |name: &str| HashSet::from([PathBuf::from(name)]);
        assert_eq!(inbox.wait(now), Wake::News(names("b.csv")));
        assert!(inbox.is_open("a.csv") && !inbox.is_open("b.csv"));
        assert!(tell(closed, "data/a.csv"));
        assert!(!inbox.is_open("a.csv"));
        assert_eq!(inbox.wait(now), Wake::News(names("a.csv")));
        assert!(
            !tell(FileChange::Renamed, "data/posts"),
            "it may be a folder to watch"
        );
        assert_eq!(inbox.wait(now), Wake::News(names("posts")));
        let folder = FileEvent {
            is_folder: true,
            ..event(FileChange::Made, root.join("data"))
        };
        assert!(!inbox.event(&folder, root));
        for number in 0..=MAX_OPEN {
            tell(written, &format!("data/{number}.csv"));
        }
        assert_eq!(inbox.wait(now), Wake::Lost);
        inbox.stop();
        assert_eq!(inbox.wait(None), Wake::Stopped);
    }

    /// *Counterexample*: a pipe, and a link, were found only when another file changed.
    #[test]
    fn what_no_program_writes_to_is_news_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = lab_testkit::fast_dir();
        let at = |name: &str| dir.path().join("data").join(name);
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(at("a.csv"), "id\n").unwrap();
        let inbox = Inbox::default();
        let made = |name: &str| {
            assert!(inbox.event(&event(FileChange::Made, at(name)), dir.path()));
            inbox.wait(Some(Duration::ZERO))
        };
        assert_eq!(made("a.csv"), Wake::Time);
        mknodat(CWD, at("pipe.csv"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("/dev/null", at("null.csv")).unwrap();
        fs::hard_link(at("a.csv"), at("b.csv")).unwrap();
        for name in ["pipe.csv", "null.csv", "b.csv"] {
            assert_eq!(made(name), Wake::News(HashSet::from([name.into()])));
        }
    }

    #[test]
    fn a_file_of_a_folder_elsewhere_has_the_name_of_its_table() {
        let temporary = lab_testkit::fast_dir();
        let root = temporary.path().canonicalize().unwrap().join("site");
        fs::create_dir_all(root.join("static/docs")).unwrap();
        fs::create_dir_all(root.join("../docs")).unwrap();
        let folder = |(table, shown): (&str, &str)| millpond_site_format::config::DataFolder {
            table: table.to_owned(),
            folder: root.join(shown),
            shown: shown.into(),
            names: millpond_data::NameParts::default(),
            element: None,
            endings: Vec::new(),
        };
        let folders = [("docs", "../docs"), ("served", "static/docs")];
        let inbox = Inbox::new(DataSources {
            dir: root.clone(),
            folders: folders.map(folder).into(),
        });
        assert_eq!(inbox.elsewhere().len(), 2);
        let tell = |path: &Path| inbox.event(&event(FileChange::Closed, path.into()), &root);
        let docs = root.parent().unwrap().join("docs");
        assert!(tell(&docs.join("guide/a.md")));
        assert!(!tell(&root.parent().unwrap().join("other/a.md")));
        assert!(!tell(&root.join("static/docs/b.md")), "it is served, too");
        let names = ["docs/guide/a.md", "served/b.md"].map(PathBuf::from);
        let news = inbox.wait(Some(Duration::ZERO));
        assert_eq!(news, Wake::News(HashSet::from(names)));
    }
}
