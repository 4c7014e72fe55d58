//! Files that only the server's user may read, replaced as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Makes a folder, and those above it, that only this user may enter.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Replaces a file by one with mode 0600. After a crash there is the old file or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Two writers at once must not share the new file.
    let mut suffix = [0; 8];
    aws_lc_rs::rand::fill(&mut suffix).map_err(|_| io::Error::other("no random bytes"))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.new", u64::from_be_bytes(suffix)));
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
