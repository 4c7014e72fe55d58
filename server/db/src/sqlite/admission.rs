//! The file that the readers may open: the one that the writer has open, and no other.
//!
//! Counterexample: a file is renamed over the served one. SQLite finds the log by its name, so a
//! reader that opened the new file before the writer had moved the old log away would read both as
//! one database. While that reader stayed open, it would hold the lock of the new file, so the
//! writer could never put a file in rollback-journal mode into WAL mode.

use std::path::Path;
use std::time::Duration;

use base_clock::Boottime;
use parking_lot::{Condvar, Mutex};

use super::file::FileIdentity;

/// How long a read waits for the writer to open the file that has replaced another.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a waiting reader checks the path itself.
const LOOK: Duration = Duration::from_millis(20);

/// The file that readers may open.
#[derive(Default)]
pub(crate) struct Admission {
    state: Mutex<AdmissionState>,
    changed: Condvar,
}

#[derive(Default)]
struct AdmissionState {
    admitted: Option<FileIdentity>,
    /// Until this time a read waits rather than fails, once the writer has failed.
    wait_until: Option<Boottime>,
}

impl Admission {
    /// Allows readers to open this file from now on.
    pub(crate) fn admit(&self, file: FileIdentity) {
        *self.state.lock() = AdmissionState {
            admitted: Some(file),
            wait_until: None,
        };
        self.changed.notify_all();
    }

    /// Forbids readers to open any file until one is admitted. Waits until no reader is opening
    /// one.
    pub(crate) fn close(&self) {
        self.state.lock().admitted = None;
    }

    /// Records that the writer could not open the file at the path, so that waiting reads end.
    pub(crate) fn failed(&self) {
        let mut state = self.state.lock();
        let until = Boottime::now().plus(PATIENCE);
        state.wait_until.get_or_insert(until);
    }

    /// Calls `open` if the file at `path` is the admitted one, and returns its result if that is
    /// still so afterwards. Only one thread opens a file at a time.
    pub(crate) fn open<T>(&self, path: &Path, open: impl FnOnce() -> T) -> Option<T> {
        let state = self.state.lock();
        if !is_at(&state, path) {
            return None;
        }
        let opened = open();
        is_at(&state, path).then_some(opened)
    }

    /// Waits until the file at `path` may be opened; false if that takes too long.
    ///
    /// To be called without a lock that the writer may need, because only the writer can admit a
    /// file.
    pub(crate) fn wait(&self, path: &Path) -> bool {
        let mut state = self.state.lock();
        let patience = Boottime::now().plus(PATIENCE);
        while !is_at(&state, path) {
            let until = state.wait_until.map_or(patience, |at| at.min(patience));
            let left = until.since(Boottime::now());
            if left.is_zero() {
                return false;
            }
            // The path may lead to the admitted file again without a notification.
            self.changed.wait_for(&mut state, left.min(LOOK));
        }
        true
    }
}

fn is_at(state: &AdmissionState, path: &Path) -> bool {
    state.admitted.is_some() && state.admitted == FileIdentity::of(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_the_admitted_file_is_opened() {
        // On disk, because a file is replaced.
        let dir = tempfile::tempdir().unwrap();
        let (path, next) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::write(&next, "new").unwrap();
        let admission = Admission::default();
        assert_eq!(admission.open(&path, || ()), None, "none is admitted");

        admission.admit(FileIdentity::of(&path).unwrap());
        assert_eq!(admission.open(&path, || 1), Some(1));

        // Another file replaces it while it is being opened.
        let opened = admission.open(&path, || {
            let _ = fs::rename(&next, &path);
        });
        assert_eq!(opened, None);

        admission.close();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| admission.wait(&path));
            admission.admit(FileIdentity::of(&path).unwrap());
            assert!(waiting.join().unwrap());
        });
        admission.close();
        admission.failed();
        assert!(!admission.wait(&path), "no file is admitted");
    }
}
