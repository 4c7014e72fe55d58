//! Which file the readers may open: the one that the writer has open, and no other.
//!
//! ✗ A file is renamed over the served one. SQLite finds the log by its name, so a reader that opened the new file before the
//! writer had set the old one's log aside would read both as one database. And while it stayed open, it would hold the new
//! file's lock, so that the writer could never put a file in rollback-journal mode into WAL mode.

use std::path::Path;
use std::time::Duration;

use base_clock::Boottime;
use parking_lot::{Condvar, Mutex};

use super::file::Identity;

/// How long a read waits for the writer to open the file that has replaced another.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often one that waits looks at the path itself.
const LOOK: Duration = Duration::from_millis(20);

/// The file that readers may open.
#[derive(Default)]
pub(crate) struct Admission {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    admitted: Option<Identity>,
    /// Until when a read waits rather than fails, once the writer has failed.
    wait_until: Option<Boottime>,
}

impl Admission {
    /// Readers may open this file from now on.
    pub(crate) fn admit(&self, file: Identity) {
        *self.state.lock() = State {
            admitted: Some(file),
            wait_until: None,
        };
        self.changed.notify_all();
    }

    /// No file may be opened until one is admitted. Waits until nobody is opening one.
    pub(crate) fn close(&self) {
        self.state.lock().admitted = None;
    }

    /// The writer could not open what is there now; reads that wait for it need not wait for ever.
    pub(crate) fn failed(&self) {
        let mut state = self.state.lock();
        let until = Boottime::now().plus(PATIENCE);
        state.wait_until.get_or_insert(until);
    }

    /// Has `open` open the file at `path` if that is the admitted one, and gives what it gave if it still is afterwards. Only
    /// one opens at a time.
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
    /// To be called without a lock that the writer may want: only the writer can bring it about.
    pub(crate) fn wait(&self, path: &Path) -> bool {
        let mut state = self.state.lock();
        let patience = Boottime::now().plus(PATIENCE);
        while !is_at(&state, path) {
            let until = state.wait_until.map_or(patience, |at| at.min(patience));
            let left = until.since(Boottime::now());
            if left.is_zero() {
                return false;
            }
            // The path may lead to the admitted file again without anybody's doing here.
            self.changed.wait_for(&mut state, left.min(LOOK));
        }
        true
    }
}

fn is_at(state: &State, path: &Path) -> bool {
    state.admitted.is_some() && state.admitted == Identity::of(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_the_admitted_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (path, next) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::write(&next, "new").unwrap();
        let admission = Admission::default();
        assert_eq!(admission.open(&path, || ()), None, "none is admitted");

        admission.admit(Identity::of(&path).unwrap());
        assert_eq!(admission.open(&path, || 1), Some(1));

        // While it is being opened, another takes its place.
        let opened = admission.open(&path, || {
            let _ = fs::rename(&next, &path);
        });
        assert_eq!(opened, None);

        admission.close();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| admission.wait(&path));
            admission.admit(Identity::of(&path).unwrap());
            assert!(waiting.join().unwrap());
        });
        admission.close();
        admission.failed();
        assert!(!admission.wait(&path), "nobody admits it");
    }
}
