//! The open file, and whether the path still leads to it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file's device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file that the path leads to now, through links. `None` if it cannot be inspected.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// An open database's file, and its write-ahead log.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    main: FileIdentity,
    log: PathBuf,
    log_identity: Option<FileIdentity>,
}

impl OpenFile {
    /// To be called after the database was opened in WAL mode and read once, which creates the log.
    pub(crate) fn note(path: &Path) -> Option<Self> {
        let main = FileIdentity::of(path)?;
        // SQLite names the log after the file at the end of all links.
        let log = beside(&fs::canonicalize(path).ok()?, "-wal");
        let log_identity = FileIdentity::of(&log);
        Some(Self {
            main,
            log,
            log_identity,
        })
    }

    /// True if the path still leads to this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        FileIdentity::of(path) == Some(self.main)
    }

    /// The device and inode of the file.
    pub(crate) const fn identity(&self) -> FileIdentity {
        self.main
    }

    /// Moves the log that this file left beside its successor out of the way.
    ///
    /// If another database is renamed over this file, the log of this file keeps the name that the
    /// log of the new file has, and SQLite would replay it into the new file. So the log is renamed
    /// if another file is at the path and the log is still the one that the old database used. To
    /// be called only while this process has no open connection; `successor` is the file at the
    /// path.
    pub(crate) fn set_log_aside(&self, successor: Option<FileIdentity>) {
        let replaced = successor.is_some_and(|now| now != self.main);
        let Some(log_identity) = self.log_identity else {
            return;
        };
        if replaced && FileIdentity::of(&self.log) == Some(log_identity) {
            // If the rename fails, opening the database reports the error.
            let _ = fs::rename(
                &self.log,
                beside(&self.log, &format!("-of-replaced-{}", self.main.inode)),
            );
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
