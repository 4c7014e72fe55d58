//! Events of the kernel (inotify) about the files of watched folders. It says what happened; which
//! folders are watched, and what an event means, others decide.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::{self, Errno};

/// Changes that are watched for. Opening and reading is not: a reload would lead to the next.
const WATCHED_FOR: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// Space for some hundred events, which are read at once.
const BUFFER: usize = 16 * 1024;

/// Something that happened to a file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEvent {
    pub(crate) change: FileChange,
    pub(crate) is_folder: bool,
    pub(crate) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    Made,
    /// Bytes were written; more may follow.
    Written,
    /// A program that could write has closed the file.
    Closed,
    /// Only one of the names: the other one has its own event.
    Renamed,
    Removed,
    /// Rights, times, links.
    Attributes,
}

/// The changes of each bit. One event has one of the bits.
const CHANGES: [(ReadFlags, FileChange); 6] = [
    (ReadFlags::CREATE, FileChange::Made),
    (ReadFlags::MODIFY, FileChange::Written),
    (ReadFlags::CLOSE_WRITE, FileChange::Closed),
    (
        ReadFlags::MOVED_FROM
            .union(ReadFlags::MOVED_TO)
            .union(ReadFlags::MOVE_SELF),
        FileChange::Renamed,
    ),
    (
        ReadFlags::DELETE.union(ReadFlags::DELETE_SELF),
        FileChange::Removed,
    ),
    (ReadFlags::ATTRIB, FileChange::Attributes),
];

/// Watched folders and files. A thread reads their events until this is dropped.
#[derive(Debug)]
pub(crate) struct Inotify(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    events: OwnedFd,
    /// Readable once the thread has to end.
    end: OwnedFd,
    /// The paths of the kernel's watches, as they were named.
    paths: Mutex<HashMap<i32, PathBuf>>,
}

impl Inotify {
    /// Begins to read. `handler` is called on the thread with each event, and with `None` if events
    /// were lost; after an error of the kernel that is the last call.
    ///
    /// # Errors
    ///
    /// If the system has no more instances, descriptors or threads.
    pub(crate) fn start(
        handler: impl Fn(Option<FileEvent>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            events: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            end: eventfd(0, EventfdFlags::CLOEXEC)?,
            paths: Mutex::default(),
        });
        let reading = Arc::clone(&shared);
        let read = move || {
            // The panic hook has reported a panic of the handler.
            let read = catch_unwind(AssertUnwindSafe(|| reading.read(&handler)));
            if !matches!(read, Ok(Ok(()))) {
                handler(None);
            }
        };
        std::thread::Builder::new()
            .name("inotify".to_owned())
            .spawn(read)?;
        Ok(Self(shared))
    }

    /// Watches a file, or a folder with what is directly in it, and returns the kernel's number of
    /// the watch. What is watched already keeps its number; its events have this path from now on.
    ///
    /// # Errors
    ///
    /// If there is nothing at the path, it must not be read, or the user has no more watches.
    pub(crate) fn watch(&self, path: &Path) -> std::io::Result<i32> {
        let mut paths = self.0.paths.lock();
        let watch = inotify::add_watch(&self.0.events, path, WATCHED_FOR)?;
        paths.insert(watch, path.to_owned());
        Ok(watch)
    }

    /// Ends all watches but these.
    pub(crate) fn keep(&self, watches: &HashSet<i32>) {
        self.0.paths.lock().retain(|watch, _| {
            let is_kept = watches.contains(watch);
            if !is_kept {
                // It fails for what is removed: its watch has ended.
                let _ = inotify::remove_watch(&self.0.events, *watch);
            }
            is_kept
        });
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        let _ = io::write(&self.0.end, &1_u64.to_ne_bytes());
    }
}

impl Shared {
    /// Reads until the end is wanted.
    fn read(&self, handler: &impl Fn(Option<FileEvent>)) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut reader = Reader::new(&self.events, buffer.spare_capacity_mut());
        loop {
            let ready = |fd| PollFd::new(fd, PollFlags::IN);
            let mut fds = [ready(&self.end), ready(&self.events)];
            io::retry_on_intr(|| poll(&mut fds, None))?;
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            loop {
                match reader.next() {
                    Ok(event) => self.take(&event, handler),
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    fn take(&self, event: &inotify::Event<'_>, handler: &impl Fn(Option<FileEvent>)) {
        let what = event.events();
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return handler(None);
        }
        let mut paths = self.paths.lock();
        if what.contains(ReadFlags::IGNORED) {
            paths.remove(&event.wd());
            return;
        }
        let change = CHANGES.iter().find(|(bits, _)| what.intersects(*bits));
        let (Some((_, change)), Some(watched)) = (change, paths.get(&event.wd())) else {
            return;
        };
        let path = match event.file_name() {
            Some(name) => watched.join(OsStr::from_bytes(name.to_bytes())),
            None => watched.clone(),
        };
        drop(paths);
        handler(Some(FileEvent {
            change: *change,
            is_folder: what.contains(ReadFlags::ISDIR),
            path,
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    fn started() -> (Inotify, Receiver<Option<FileEvent>>) {
        let (tell, events) = channel();
        let inotify = Inotify::start(move |event| {
            let _ = tell.send(event);
        });
        (inotify.unwrap(), events)
    }

    /// Longer than any machine takes; only a failing test waits for it.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// The events until a folder of this name is made in `dir`.
    fn until(
        dir: &Path,
        name: &str,
        events: &Receiver<Option<FileEvent>>,
    ) -> Vec<(FileChange, String)> {
        fs::create_dir(dir.join(name)).unwrap();
        let mut seen = Vec::new();
        loop {
            let event = events.recv_timeout(PATIENCE).unwrap().unwrap();
            let path = event.path.strip_prefix(dir).unwrap().display().to_string();
            if path == name {
                return seen;
            }
            let slash = if event.is_folder { "/" } else { "" };
            seen.push((event.change, path + slash));
        }
    }

    #[test]
    fn what_happens_to_names_is_told_with_their_paths() {
        let dir = lab_testkit::fast_dir();
        let (inotify, events) = started();
        let at = |name: &str| dir.path().join(name);
        inotify.watch(dir.path()).unwrap();
        fs::write(at("a"), "text").unwrap();
        fs::read(at("a")).unwrap();
        fs::rename(at("a"), at("b")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::remove_file(at("b")).unwrap();
        let seen = until(dir.path(), "end", &events);
        let expected = [
            (FileChange::Made, "a"),
            (FileChange::Written, "a"),
            (FileChange::Closed, "a"),
            (FileChange::Renamed, "a"),
            (FileChange::Renamed, "b"),
            (FileChange::Made, "folder/"),
            (FileChange::Removed, "b"),
        ];
        assert_eq!(
            seen,
            expected.map(|(change, path)| (change, path.to_owned()))
        );
    }

    #[test]
    fn a_folder_watched_again_under_another_name_has_that_name() {
        let dir = lab_testkit::fast_dir();
        let (inotify, events) = started();
        let at = |name: &str| dir.path().join(name);
        let top = inotify.watch(dir.path()).unwrap();
        fs::create_dir(at("a")).unwrap();
        let first = inotify.watch(&at("a")).unwrap();
        fs::rename(at("a"), at("b")).unwrap();
        assert_eq!(inotify.watch(&at("b")).unwrap(), first);
        until(dir.path(), "moved", &events);
        fs::create_dir(at("b/c")).unwrap();
        let made = [(FileChange::Made, "b/c/".to_owned())];
        assert_eq!(until(dir.path(), "told", &events), made);

        inotify.keep(&HashSet::from([top]));
        fs::create_dir(at("b/d")).unwrap();
        assert_eq!(until(dir.path(), "kept", &events), []);
        assert_ne!(inotify.watch(&at("b")).unwrap(), first);
    }

    #[test]
    fn the_thread_ends_with_its_owner() {
        let (inotify, events) = started();
        drop(inotify);
        assert!(
            events
                .recv_timeout(PATIENCE)
                .is_err_and(|error| { error == std::sync::mpsc::RecvTimeoutError::Disconnected })
        );
    }

    #[test]
    fn after_a_panic_of_the_handler_events_count_as_lost() {
        let dir = lab_testkit::fast_dir();
        let (tell, events) = channel();
        let inotify = Inotify::start(move |event| {
            let _ = tell.send(event.is_some());
            assert!(event.is_none());
        });
        let inotify = inotify.unwrap();
        inotify.watch(dir.path()).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let told: Vec<bool> = events.iter().collect();
        assert_eq!(told, [true, false]);
    }
}
