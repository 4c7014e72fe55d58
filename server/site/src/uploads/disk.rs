//! The thread that writes uploaded files: no worker waits for a disk.
//!
//! A file grows in `uploads/.parts/`, where nothing is served. Before the transaction of its form
//! begins, it is synced and gets a second name in its folder (a hard link), which is synced too;
//! then the transaction commits, and the name among the parts goes. So at every moment:
//!
//! | killed | what is there afterwards |
//! |---|---|
//! | while the file arrives, or before the link | a part, which the next start removes |
//! | after the link, before the outcome | both; the next start keeps the file, and says so |
//! | after the commit | the file, and perhaps the part |
//!
//! A committed row never names a file that is not there. A file without a row remains only where
//! the process was killed, or the database lost, in the moment of the commit: then a row may name
//! it, so it is kept.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use base_clock::Boottime;
use bytes::Bytes;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use tokio::sync::oneshot;

use super::PARTS;
use crate::log::Log;
use millpond_site_format::config::UPLOAD_FOLDER;

/// Bytes of one form that wait for the disk; beyond them nothing more of it is read.
const QUEUED: usize = 256 << 10;
/// Cost of a piece in the queue beside its bytes.
const PIECE: usize = 256;

/// Why a file could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreFailure {
    /// The disk is full, or a quota is used up.
    Full,
    /// Anything else, which the log has.
    Broken,
}

/// The files of one form, as both sides see them.
#[derive(Debug, Default)]
pub(super) struct Transfer {
    state: Mutex<TransferState>,
}

#[derive(Debug, Default)]
struct TransferState {
    queued: usize,
    failure: Option<StoreFailure>,
    waker: Option<Waker>,
}

impl Transfer {
    /// Returns ready if the thread has room for more; it wakes when it has, or when it has failed.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.queued < QUEUED || state.failure.is_some() {
            state.waker = None;
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Returns the failure so far.
    pub(super) fn failure(&self) -> Option<StoreFailure> {
        self.state.lock().failure
    }

    fn wrote(&self, len: usize, outcome: Result<(), StoreFailure>) {
        let waker = {
            let mut state = self.state.lock();
            state.queued = state.queued.saturating_sub(len + PIECE);
            state.failure = state.failure.or(outcome.err());
            let has_room = state.queued < QUEUED / 2 || state.failure.is_some();
            state.waker.take_if(|_| has_room)
        };
        // Outside of the lock: waking may run code.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

enum Job {
    /// Begins a file; the path is that from the folder of uploads.
    Create(Arc<Transfer>, String),
    /// Adds to the file that was begun last.
    Write(Arc<Transfer>, Bytes),
    Publish(Arc<Transfer>, oneshot::Sender<Result<(), StoreFailure>>),
    /// The rows are there, or may be.
    Keep(Arc<Transfer>),
    Discard(Arc<Transfer>),
    /// Removes files by their paths from the folder of uploads.
    Remove(Vec<String>),
    /// Says that all before it is done.
    Flush(Sender<()>),
}

/// The thread, until this is dropped.
pub(super) struct Disk {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    /// Starts the thread for the uploads of the site in `dir`. First it removes what a process that
    /// was killed has left.
    pub(super) fn start(dir: &Path, log: Arc<Log>) -> io::Result<Self> {
        let (jobs, received) = channel();
        let writer = DiskThread {
            root: dir.join(UPLOAD_FOLDER),
            transfers: HashMap::new(),
            log,
        };
        let thread = std::thread::Builder::new()
            .name("uploads".to_owned())
            .spawn(move || writer.run(&received))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Files of one form.
    pub(super) fn begin(&self) -> StoredFiles {
        StoredFiles {
            transfer: Arc::default(),
            jobs: self.jobs.clone(),
            is_kept: AtomicBool::new(false),
            is_used: false,
        }
    }

    /// Waits until all is done that was given before.
    pub(super) fn flush(&self) {
        let (done, flushed) = channel();
        let is_sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(Job::Flush(done)).is_ok());
        if is_sent {
            // It ends with an error, when the other side is dropped.
            let _ = flushed.recv();
        }
    }

    /// Removes files by their paths from the folder of uploads, later.
    pub(super) fn remove(&self, paths: Vec<String>) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(Job::Remove(paths));
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The files of one form that are stored. When this is dropped they are removed, unless they are
/// [kept](Self::keep).
pub(super) struct StoredFiles {
    pub(super) transfer: Arc<Transfer>,
    jobs: Option<Sender<Job>>,
    is_kept: AtomicBool,
    is_used: bool,
}

impl StoredFiles {
    fn send(&self, job: Job) {
        let is_sent = self
            .jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok());
        if !is_sent {
            self.transfer.wrote(0, Err(StoreFailure::Broken));
        }
    }

    /// Begins a file with this path from the folder of uploads.
    pub(super) fn create(&mut self, path: String) {
        self.is_used = true;
        self.send(Job::Create(Arc::clone(&self.transfer), path));
    }

    /// Adds to the file that was begun last.
    pub(super) fn write(&self, bytes: Bytes) {
        self.transfer.state.lock().queued += bytes.len() + PIECE;
        self.send(Job::Write(Arc::clone(&self.transfer), bytes));
    }

    /// Gives all files their names, durably.
    pub(super) async fn publish(&self) -> Result<(), StoreFailure> {
        if !self.is_used {
            return Ok(());
        }
        let (done, published) = oneshot::channel();
        self.send(Job::Publish(Arc::clone(&self.transfer), done));
        published.await.unwrap_or(Err(StoreFailure::Broken))
    }

    /// True if there are files.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// From now on the files stay: rows that name them may be there.
    pub(super) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Removes the files now: no transaction will name them.
    pub(super) fn remove(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.send(Job::Discard(Arc::clone(&self.transfer)));
        }
    }

    /// The transaction has certainly not happened.
    pub(super) fn discard(&self) {
        self.is_kept.store(false, Ordering::Relaxed);
    }
}

impl Drop for StoredFiles {
    fn drop(&mut self) {
        if self.is_used {
            let transfer = Arc::clone(&self.transfer);
            self.send(match self.is_kept.load(Ordering::Relaxed) {
                true => Job::Keep(transfer),
                false => Job::Discard(transfer),
            });
        }
    }
}

/// A file that grows, or has grown.
struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    is_published: bool,
}

struct DiskThread {
    root: PathBuf,
    /// By the address of the transfer, which lives at least until its last job.
    transfers: HashMap<usize, Vec<PartFile>>,
    log: Arc<Log>,
}

impl DiskThread {
    fn run(mut self, jobs: &Receiver<Job>) {
        self.remove_left_over();
        for job in jobs {
            self.perform(job);
        }
    }

    fn perform(&mut self, job: Job) {
        match job {
            Job::Create(transfer, path) => {
                let created = self.create(&transfer, &path);
                transfer.wrote(0, created);
            }
            Job::Write(transfer, bytes) => {
                let wrote = self.write(&transfer, &bytes);
                transfer.wrote(bytes.len(), wrote);
            }
            Job::Publish(transfer, done) => {
                let published = match transfer.failure() {
                    Some(failure) => Err(failure),
                    None => self.publish(&transfer),
                };
                let _ = done.send(published);
            }
            Job::Keep(transfer) => self.finish(&transfer, true),
            Job::Discard(transfer) => self.finish(&transfer, false),
            Job::Remove(paths) => {
                for path in paths {
                    self.remove(&self.root.join(path));
                }
            }
            Job::Flush(done) => drop(done),
        }
    }

    fn create(&mut self, transfer: &Arc<Transfer>, path: &str) -> Result<(), StoreFailure> {
        if transfer.failure().is_some() {
            return Ok(());
        }
        let path = self.root.join(path);
        let parts = self.root.join(PARTS);
        let name = path.file_name().unwrap_or_default();
        let part = parts.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        let made = fs::create_dir_all(&parts).and_then(|()| fs::create_dir_all(folder));
        let file = made.and_then(|()| begin_part(&part));
        let file = file.map_err(|error| self.failed(folder, &error))?;
        let files = self.transfers.entry(key(transfer)).or_default();
        files.push(PartFile {
            file,
            part,
            path,
            is_published: false,
        });
        Ok(())
    }

    fn write(&mut self, transfer: &Arc<Transfer>, bytes: &[u8]) -> Result<(), StoreFailure> {
        if transfer.failure().is_some() {
            return Ok(());
        }
        let files = self.transfers.get_mut(&key(transfer));
        let Some(last) = files.and_then(|files| files.last_mut()) else {
            return Err(StoreFailure::Broken);
        };
        let (wrote, path) = (last.file.write_all(bytes), last.path.clone());
        wrote.map_err(|error| self.failed(&path, &error))
    }

    fn publish(&mut self, transfer: &Arc<Transfer>) -> Result<(), StoreFailure> {
        let mut files = self.transfers.remove(&key(transfer)).unwrap_or_default();
        let published = files.iter_mut().try_for_each(|file| {
            let linked = file
                .file
                .sync_all()
                .and_then(|()| fs::hard_link(&file.part, &file.path));
            file.is_published = linked.is_ok();
            let synced = linked.and_then(|()| sync_folders(&file.path, &self.root));
            synced.map_err(|error| self.failed(&file.path, &error))
        });
        self.transfers.insert(key(transfer), files);
        published
    }

    fn finish(&mut self, transfer: &Arc<Transfer>, is_kept: bool) {
        for file in self.transfers.remove(&key(transfer)).unwrap_or_default() {
            if file.is_published && !is_kept {
                self.remove(&file.path);
            }
            self.remove(&file.part);
        }
    }

    fn remove(&self, path: &Path) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                self.log
                    .line(&format!("{} cannot be removed: {error}", self.shown(path)));
            }
            _ => {}
        }
    }

    /// Removes the parts that no process writes any more.
    fn remove_left_over(&self) {
        let Ok(parts) = fs::read_dir(self.root.join(PARTS)) else {
            return;
        };
        for part in parts.flatten() {
            let path = part.path();
            let Ok(file) = File::open(&path) else {
                continue;
            };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            if file.metadata().is_ok_and(|metadata| metadata.nlink() > 1) {
                self.log.line(&format!(
                    "the server was ended while a form was stored: the file {}, below {UPLOAD_FOLDER}/, \
                     may belong to no row",
                    part.file_name().display()
                ));
            }
            self.remove(&path);
        }
    }

    /// Reports a failure to the owner.
    fn failed(&self, path: &Path, error: &io::Error) -> StoreFailure {
        let hint = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "; uploads are refused until there is room"
            }
            ErrorKind::PermissionDenied => {
                "; the user that runs millpond must be able to write the folder"
            }
            ErrorKind::CrossesDevices => {
                "; all folders of uploads must be on the file system of uploads/ itself"
            }
            _ => "",
        };
        let line = format!(
            "an upload could not be stored in {}: {error}{hint}",
            self.shown(path)
        );
        self.log.line_of_request(&line, Boottime::now());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreFailure::Full,
            _ => StoreFailure::Broken,
        }
    }

    fn shown(&self, path: &Path) -> String {
        let site = self.root.parent().unwrap_or(&self.root);
        path.strip_prefix(site)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

fn key(transfer: &Arc<Transfer>) -> usize {
    Arc::as_ptr(transfer) as usize
}

/// A new file among the parts, locked so that another process that starts does not take it for one
/// that was left over.
fn begin_part(part: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(part)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // It may have been removed before it was locked.
    match file.metadata()?.nlink() {
        0 => Err(io::Error::other(
            "another process has just removed the file",
        )),
        _ => Ok(file),
    }
}

/// Makes the name of a file durable, and those of the folders up to `root`, which may be new.
fn sync_folders(path: &Path, root: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1) {
        File::open(folder)?.sync_all()?;
        if folder == root {
            break;
        }
    }
    match root.parent() {
        Some(site) => File::open(site)?.sync_all(),
        None => Ok(()),
    }
}
