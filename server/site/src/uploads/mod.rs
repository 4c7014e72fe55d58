//! Files that visitors send: received, stored, given to a form's statements, served and removed.
//!
//! A form declares its files (`script/files.rs`). Their bytes go from the connection through the
//! parser of the form (`begin`, `receive`) to a thread that writes them (`disk`), as fast as that
//! can; what a file is, is told by its content (`kinds`), and its name is a new one (`names`). When
//! all is there, the transaction of the form gets the names as values (`received`). The files are
//! served below `/uploads/` (`serve`). They have no part in the cache: the page that names a file
//! depends on the row with the name, and a name never means another content.

mod disk;
mod drain;
mod names;
mod receive;
mod received;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use base_clock::Boottime;

use crate::log::Log;
use disk::Disk;
use millpond_site_compile::refusal::upload::UploadRefusal;
use millpond_site_format::config::{UPLOAD_FOLDER, UploadLimits};
pub(crate) use names::stored;
pub(crate) use receive::FileReceiver;
pub(crate) use received::Received;

/// The folder in it where files grow.
pub(crate) const PARTS: &str = ".parts";
/// Memory of files that go into statements, of all forms that are being received.
const MEMORY: usize = 64 << 20;

/// The uploads of a site.
pub(crate) struct Uploads {
    dir: PathBuf,
    limits: UploadLimits,
    log: Arc<Log>,
    receiving: AtomicUsize,
    bytes: AtomicU64,
    memory: AtomicUsize,
    /// The thread, started when it is first needed; none if it cannot be.
    disk: OnceLock<Option<Disk>>,
    /// The folder without symbolic links, once it is there.
    root: OnceLock<PathBuf>,
}

impl Uploads {
    /// The uploads of the site in `dir`.
    pub(crate) fn new(dir: &Path, limits: UploadLimits, log: Arc<Log>) -> Arc<Self> {
        let uploads = Self {
            dir: dir.to_owned(),
            limits,
            log,
            receiving: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            memory: AtomicUsize::new(0),
            disk: OnceLock::new(),
            root: OnceLock::new(),
        };
        if dir.join(UPLOAD_FOLDER).join(PARTS).exists() {
            // Removes what a process that was killed has left.
            uploads.disk();
        }
        Arc::new(uploads)
    }

    /// The folder without symbolic links, so that none is followed in it.
    pub(crate) fn root(&self) -> Option<&PathBuf> {
        if self.root.get().is_none() {
            let root = self.dir.join(UPLOAD_FOLDER).canonicalize().ok()?;
            let _ = self.root.set(root);
        }
        self.root.get()
    }

    fn disk(&self) -> Option<&Disk> {
        let started = self.disk.get_or_init(|| {
            let started = Disk::start(&self.dir, Arc::clone(&self.log));
            if let Err(error) = &started {
                let line = format!("the thread for uploads cannot be started: {error}");
                self.log.line(&line);
            }
            started.ok()
        });
        started.as_ref()
    }

    /// Removes the files at these addresses. What is no address of an upload stays, and the owner
    /// hears of it.
    pub(crate) fn remove(&self, addresses: &[String]) {
        let mut paths = Vec::new();
        for address in addresses {
            match stored(address) {
                Some((path, _)) => paths.push(path.to_owned()),
                None => {
                    let line = format!("-- delete-file: `{address}` is no address of an upload");
                    self.log.line_of_request(&line, Boottime::now());
                }
            }
        }
        if let Some(disk) = self.disk().filter(|_| !paths.is_empty()) {
            disk.remove(paths);
        }
    }

    /// Waits until the thread has done all that it was given: before the end of the process.
    pub(crate) fn flush(&self) {
        if let Some(Some(disk)) = self.disk.get() {
            disk.flush();
        }
    }

    /// Lets one more form be received whose body has `bytes` bytes as far as is known.
    fn admit(self: &Arc<Self>, bytes: u64) -> Result<UploadPermit, UploadRefusal> {
        let receiving = self.receiving.fetch_add(1, Ordering::Relaxed);
        let mut permit = UploadPermit {
            uploads: Arc::clone(self),
            is_counted: true,
            bytes: 0,
            memory: 0,
        };
        if receiving >= self.limits.at_once {
            return Err(UploadRefusal::busy());
        }
        permit.hold(bytes)?;
        Ok(permit)
    }
}

/// Counts a form that is being received, until this is [released](Self::release) or dropped.
struct UploadPermit {
    uploads: Arc<Uploads>,
    /// True if it is among the forms and the bytes that the limits are about.
    is_counted: bool,
    bytes: u64,
    memory: usize,
}

impl UploadPermit {
    /// The form has `total` bytes.
    fn hold(&mut self, total: u64) -> Result<(), UploadRefusal> {
        let more = total.saturating_sub(self.bytes);
        if more == 0 || !self.is_counted {
            return Ok(());
        }
        self.bytes += more;
        let held = self.uploads.bytes.fetch_add(more, Ordering::Relaxed);
        match held + more > self.uploads.limits.bytes as u64 {
            true => Err(UploadRefusal::busy()),
            false => Ok(()),
        }
    }

    /// Files in memory have `more` bytes more.
    fn hold_memory(&mut self, more: usize) -> Result<(), UploadRefusal> {
        self.memory += more;
        let held = self.uploads.memory.fetch_add(more, Ordering::Relaxed);
        match held + more > MEMORY {
            true => Err(UploadRefusal::busy()),
            false => Ok(()),
        }
    }
}

impl UploadPermit {
    /// Gives the place to another form. `memory` is what of this one stays in memory.
    fn release(&mut self, memory: usize) {
        let (uploads, gone) = (&self.uploads, self.memory.saturating_sub(memory));
        self.memory -= gone;
        uploads.memory.fetch_sub(gone, Ordering::Relaxed);
        if std::mem::take(&mut self.is_counted) {
            uploads.receiving.fetch_sub(1, Ordering::Relaxed);
            uploads.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        self.release(0);
    }
}
