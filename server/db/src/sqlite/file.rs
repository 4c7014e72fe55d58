//! Which file is open, and whether the path still leads to it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file's device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// The file that the path leads to now, links followed; `None` if there is none that can be looked at.
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
    main: Identity,
    log: PathBuf,
    log_identity: Option<Identity>,
}

impl OpenFile {
    /// To be called after the database was opened in WAL mode and read once, which makes the log.
    pub(crate) fn note(path: &Path) -> Option<Self> {
        let main = Identity::of(path)?;
        // SQLite names the log after the file at the end of all links.
        let log = beside(&fs::canonicalize(path).ok()?, "-wal");
        let log_identity = Identity::of(&log);
        Some(Self {
            main,
            log,
            log_identity,
        })
    }

    /// Whether the path still leads to this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        Identity::of(path) == Some(self.main)
    }

    /// Which file it is.
    pub(crate) const fn identity(&self) -> Identity {
        self.main
    }

    /// Moves the log that this file left beside its successor out of the way.
    ///
    /// Whoever renames another database over this one leaves this one's log under the name of the new one's, and
    /// SQLite would play it into the new file. So if there is another file, and the log is still the very one that the
    /// old database used, it is renamed. Only to be called when no connection of ours is open; `successor` is what is there now.
    pub(crate) fn set_log_aside(&self, successor: Option<Identity>) {
        let replaced = successor.is_some_and(|now| now != self.main);
        let Some(log_identity) = self.log_identity else {
            return;
        };
        if replaced && Identity::of(&self.log) == Some(log_identity) {
            // A failure leaves what SQLite itself would have found; opening tells.
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
