//! Folders for databases of tests.

use std::env;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// Free bytes that it must have: test binaries run side by side, and each has several databases.
const ENOUGH: u64 = 1 << 30;

/// A temporary folder for a database whose durability is not under test: in memory if 1 GiB is
/// free, because a test must not depend on the speed of a disk, else in the usual temporary folder.
///
/// # Panics
/// The folder cannot be made.
#[must_use]
pub fn fast_dir() -> TempDir {
    TempDir::new_in(fast_parent()).unwrap()
}

/// The folder in which [`fast_dir`] makes its folders.
#[must_use]
pub fn fast_parent() -> PathBuf {
    let memory = Path::new(MEMORY);
    let free = rustix::fs::statvfs(memory).map_or(0, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let is_usable = free >= ENOUGH && tempfile::tempfile_in(memory).is_ok();
    if is_usable {
        memory.to_owned()
    } else {
        env::temp_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::fast_dir;

    #[test]
    fn a_folder_can_be_written_to_and_goes_away() {
        let dir = fast_dir();
        let path = dir.path().to_owned();
        std::fs::write(path.join("site.db"), "x").unwrap();
        drop(dir);
        assert!(!path.exists());
    }
}
