//! Files that visitors send: received, stored, given to a form's statements, served and removed.
//!
//! A form declares its files (`script/files.rs`). Their bytes go from the connection through the
//! parser of the form (`begin`, `receive`) to a thread that writes them (`disk`), as fast as that
//! can; what a file is, is told by its content (`kinds`), and its name is a new one (`names`). When
//! all is there, the transaction of the form gets the names as values (`received`). The files are
//! served below `/uploads/` (`serve`). They have no part in the cache: the page that names a file
//! depends on the row with the name, and a name never means another content.

mod begin;
mod check;
mod disk;
mod drain;
mod names;
mod receive;
mod received;
mod serve;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base_clock::Boottime;

use crate::{error_answer::ErrorAnswer, log::Log, script::FileLine};
pub(crate) use begin::with_fields;
pub(crate) use check::notes;
use disk::Disk;
pub(crate) use names::stored;
pub(crate) use receive::{UploadReceiver, in_units};
pub(crate) use received::Received;

/// The folder of the site that uploads are in, and the beginning of their addresses.
pub(crate) const FOLDER: &str = "uploads";
/// The folder in it where files grow.
const PARTS: &str = ".parts";
/// Memory of files that go into statements, of all forms that are being received.
const MEMORY: usize = 64 << 20;

/// The limits of the uploads of a site (`[limits]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UploadLimits {
    /// Forms with files that are received at once.
    pub(crate) at_once: usize,
    /// Bytes of them all.
    pub(crate) bytes: usize,
    /// Text of one such form, in bytes.
    pub(crate) text: usize,
    /// How long a form with a file that is not taken is read further.
    pub(crate) drain: Duration,
}

/// A file that a form takes.
#[derive(Debug)]
pub(crate) struct UploadField {
    pub(crate) line: FileLine,
    /// The place of its value among the form's parameters; further values follow it.
    pub(crate) place: usize,
}

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
        if dir.join(FOLDER).join(PARTS).exists() {
            // Removes what a process that was killed has left.
            uploads.disk();
        }
        Arc::new(uploads)
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
    /// Whether it is among the forms and the bytes that the limits are about.
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

/// Why a form with files is refused: the status and the sentence for the visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UploadRefusal {
    status: u16,
    pub(crate) sentence: String,
    /// The field that it is about, if a visitor can fill it in.
    pub(crate) fault: Option<FileFault>,
}

/// What is wrong with the file of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFault {
    pub(crate) field: String,
    pub(crate) kind: &'static str,
    /// To stand behind the field's name.
    pub(crate) wrong: String,
}

impl UploadRefusal {
    fn new(status: u16, sentence: impl Into<String>) -> Self {
        Self {
            status,
            sentence: sentence.into(),
            fault: None,
        }
    }

    /// The refusal of a file, by what is wrong with it.
    fn of_file(status: u16, field: &str, kind: &'static str, wrong: String) -> Self {
        Self {
            status,
            sentence: format!("The file \"{field}\" {}.", wrong.trim_end_matches('.')),
            fault: Some(FileFault {
                field: field.to_owned(),
                kind,
                wrong,
            }),
        }
    }

    /// The field that it is about.
    pub(crate) fn field_name(&self) -> Option<&str> {
        self.fault.as_ref().map(|fault| fault.field.as_str())
    }

    fn busy() -> Self {
        Self::new(503, "Too many files are being received just now.")
    }

    /// The answer.
    pub(crate) fn answer(&self) -> ErrorAnswer<'_> {
        let answer = ErrorAnswer::new(self.status, &self.sentence);
        match self.status {
            503 | 507 => answer.with(&[("Retry-After", "10")]),
            _ => answer,
        }
    }
}
