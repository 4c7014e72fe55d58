//! The folder is watched, so that a changed file is on its pages within 100 ms.
//!
//! The kernel's queue of inotify is read to its end in each look. So what was written before a look
//! began is known when the look is done, and the store gives no page from memory without a look in
//! the last 100 ms.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millpond::{Page, Store};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::{BookView, DataFile, FILES, books::Books, sql::BookDatabase};

/// The longest time between a change of a file and the end of its pages.
pub const MAX_STALENESS: Duration = Duration::from_millis(100);

/// Time between looks. A change that the kernel reports begins a look at once.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A file counts as changed when its writer closes it, or when it is renamed; not while it is half
/// written.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// Room for some hundred events.
const BUFFER: usize = 16 << 10;

/// The folder with the files, as the pages of the store know it.
pub(crate) struct Folder {
    store: Store,
    books: Arc<Books>,
    watcher: Mutex<Watcher>,
}

/// Source that a look changes.
struct Watcher {
    data: PathBuf,
    events: OwnedFd,
    /// The number of the watch; `None` while the folder is not there.
    watch: Option<i32>,
    /// Files whose entries are not in the database yet.
    unsaved: Vec<DataFile>,
}

impl Folder {
    /// Begins to watch the folder, and reads all files. Standard error says which are broken.
    ///
    /// # Errors
    /// The folder cannot be watched.
    pub(crate) fn open(data: &Path, store: &Store, books: &Arc<Books>) -> io::Result<Arc<Self>> {
        let folder = Self {
            store: store.clone(),
            books: Arc::clone(books),
            watcher: Mutex::new(Watcher {
                data: data.to_owned(),
                events: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
                watch: None,
                unsaved: Vec::new(),
            }),
        };
        // The first look begins to watch and reads everything; why it cannot is said here.
        folder.watcher().watch()?;
        folder.watcher().watch = None;
        folder.look();
        Ok(Arc::new(folder))
    }

    /// The content of a page; see [`Books::render`]. It is of the files as they are when it begins,
    /// also if the thread that watches is late.
    pub(crate) fn render(
        &self,
        page: &mut Page,
        file: DataFile,
        base: &str,
        view: BookView<'_>,
    ) -> Option<String> {
        self.look();
        self.books.render(page, file, base, view)
    }

    /// Reads the files that have changed, and vouches for the pages of all.
    fn look(&self) {
        let mut watcher = self.watcher();
        let look = self.store.look();
        // Without a look that is done no page is given from memory.
        let Ok(changed) = watcher.changed_files() else {
            return;
        };
        for file in changed {
            match self.books.read(file) {
                Ok(true) => watcher.unsaved.push(file),
                Ok(false) => {}
                Err(error) => eprintln!("{error}; the former entries stay"),
            }
        }
        look.done();
    }

    /// Waits for a change, at most until the next look is due.
    fn wait(&self, events: &OwnedFd) {
        let mut events = [PollFd::new(events, PollFlags::IN)];
        // Interrupted or not, the next look reads what is there.
        let _ = poll(&mut events, Some(&LOOK_EVERY));
    }

    fn watcher(&self) -> MutexGuard<'_, Watcher> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    /// Watches what is there under the folder's name.
    fn watch(&mut self) -> io::Result<()> {
        self.watch = Some(inotify::add_watch(&self.events, &self.data, CHANGES)?);
        Ok(())
    }

    /// The files with events, until the kernel has no more; all files if events are missing.
    fn changed_files(&mut self) -> io::Result<BTreeSet<DataFile>> {
        let mut changed = BTreeSet::new();
        if self.watch.is_none() {
            // First the watch: what changes while a file is read is read again.
            self.watch()?;
            changed.extend(FILES);
        }
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.events, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let flags = event.events();
                    if flags.intersects(ReadFlags::MOVE_SELF | ReadFlags::IGNORED)
                        && self.watch == Some(event.wd())
                    {
                        // The folder was renamed or removed. What is there now is another one.
                        let _ = inotify::remove_watch(&self.events, event.wd());
                        self.watch = None;
                        return Err(ErrorKind::NotFound.into());
                    }
                    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                        changed.extend(FILES);
                    }
                    let name = event.file_name().and_then(|name| name.to_str().ok());
                    changed.extend(name.and_then(Books::file_named));
                }
                Err(Errno::WOULDBLOCK) => return Ok(changed),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A thread that looks at the folder, and brings what has changed into the database, until it is
/// dropped.
pub(crate) struct FolderWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FolderWatch {
    /// Fills the database, and starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(folder: &Arc<Folder>, database: &Arc<BookDatabase>) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (folder, database) = (Arc::clone(folder), Arc::clone(database));
        let stopped = Arc::clone(&stop);
        save(&folder, &database);
        let events = folder.watcher().events.try_clone()?;
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                folder.look();
                save(&folder, &database);
                folder.wait(&events);
            }
        };
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(run)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Brings the entries that are known into the database.
fn save(folder: &Folder, database: &BookDatabase) {
    let unsaved = std::mem::take(&mut folder.watcher().unsaved);
    for file in unsaved {
        let entries = folder.books.get(file).unwrap_or_default();
        if let Err(error) = database.replace(file, &entries) {
            eprintln!("{}: {error}", file.name());
        }
    }
}
