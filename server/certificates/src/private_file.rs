//! Files that only the server's user may read, replaced as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

/// Makes a folder, and those above it, that only this user may enter.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The longest time that a replacement takes. What is older was left by a process that died.
const LONGEST_REPLACEMENT: Duration = Duration::from_secs(60 * 60);
/// Ending of the names of unfinished files, after a random number of 16 digits.
const UNFINISHED: &str = ".new";

/// Replaces a file by one with mode 0600. After a crash there is the old file or the new one.
/// Unfinished files in the folder that a crash has left are removed: they may hold keys.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    remove_unfinished(folder);
    // Two writers at once must not share the new file.
    let mut suffix = [0; 8];
    aws_lc_rs::rand::fill(&mut suffix).map_err(|_| io::Error::other("no random bytes"))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}{UNFINISHED}", u64::from_be_bytes(suffix)));
    let new = folder.join(name);
    let written = write_new(&new, content)
        .and_then(|()| fs::rename(&new, path))
        .and_then(|()| File::open(folder)?.sync_all());
    if written.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Removes old unfinished files, as far as the system allows: another process may do the same.
fn remove_unfinished(folder: &Path) {
    let now = base_clock::wall();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|at| now.duration_since(at).ok());
        let is_old = age.is_some_and(|age| age > LONGEST_REPLACEMENT);
        if is_old && is_unfinished(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True for `FILE.0123456789abcdef.new`.
fn is_unfinished(name: &str) -> bool {
    let number = name.strip_suffix(UNFINISHED);
    let number = number.and_then(|name| name.rsplit_once('.'));
    number.is_some_and(|(_, number)| {
        number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::{LONGEST_REPLACEMENT, replace};

    #[test]
    fn what_a_crash_has_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let left = ["a.key.0123456789abcdef.new", "b.key.0123456789abcdef.new"];
        let kept = [
            "c.key.fedcba9876543210.new",
            "a.key",
            "plan.new",
            "b.pem.12.new",
        ];
        for name in left.iter().chain(&kept) {
            let path = folder.path().join(name);
            fs::write(&path, "x").unwrap();
            if *name != kept[0] {
                let old = base_clock::wall() - 2 * LONGEST_REPLACEMENT;
                File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_modified(old)
                    .unwrap();
            }
        }
        replace(&folder.path().join("a.key"), b"new").unwrap();
        let there = |name: &&str| folder.path().join(name).exists();
        assert!(!left.iter().any(there));
        assert!(kept.iter().all(there));
    }
}
