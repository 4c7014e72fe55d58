//! A body that arrives in a file without a name, so that it takes no memory while it is incomplete.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::fs::OFlags;

use crate::mapped_file::MappedFile;

/// The bytes that have arrived. The file has no name from the beginning, so that it is gone with
/// the process, however that ends.
#[derive(Debug)]
pub(crate) struct BodyFile {
    file: File,
    len: usize,
}

/// A complete body.
#[derive(Debug)]
pub(crate) struct MappedBody(Arc<MappedFile>);

impl BodyFile {
    /// A [file without a name](nameless_file).
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn create() -> io::Result<Self> {
        nameless_file().map(|file| Self { file, len: 0 })
    }

    /// Bytes so far.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds bytes at the end. After an error the same bytes may be tried again.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.len as u64)?;
        self.len += bytes.len();
        Ok(())
    }

    /// The whole body. Its pages are read when they are looked at.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn into_body(self) -> io::Result<MappedBody> {
        MappedFile::new(self.file, self.len).map(|mapped| MappedBody(Arc::new(mapped)))
    }
}

impl MappedBody {
    /// The bytes, which keep the file as long as they are used.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::from_owner(SharedFile(Arc::clone(&self.0)))
    }

    /// True if no bytes are used any more.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

struct SharedFile(Arc<MappedFile>);

impl AsRef<[u8]> for SharedFile {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Makes a file without a name in the first folder that allows one: `TMPDIR`, `/var/tmp`, `/tmp`.
///
/// # Errors
/// Those of the last folder; no descriptor is left.
pub fn nameless_file() -> io::Result<File> {
    let mut error = io::ErrorKind::NotFound.into();
    for folder in folders() {
        match create_in(&folder) {
            Ok(file) => return Ok(file),
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

/// Iterates over the folders in which such files may be. `/tmp` is the last, because it is often
/// memory.
fn folders() -> impl Iterator<Item = PathBuf> {
    let chosen = std::env::var_os("TMPDIR").map(PathBuf::from);
    let usual = ["/var/tmp", "/tmp"].map(PathBuf::from);
    chosen.into_iter().chain(usual)
}

fn create_in(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::EXCL;
    let nameless = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(folder);
    match nameless {
        Ok(file) => Ok(file),
        // Some file systems do not know O_TMPFILE (open(2)).
        Err(error) if is_unknown(&error) => create_and_unlink(folder),
        Err(error) => Err(error),
    }
}

fn is_unknown(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let unknown = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::INVAL, Errno::NOENT];
    unknown
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn create_and_unlink(folder: &Path) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".millpond-body-{}-{number}", std::process::id()));
    // Never through a link, nor into a file that is there.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_back_and_leaves_no_name() {
        let dir = tempfile::tempdir().unwrap();
        for create in [create_in, create_and_unlink] {
            let file = create(dir.path()).unwrap();
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
            let mut body = BodyFile { file, len: 0 };
            body.append(b"one, ").unwrap();
            body.append(&[b'x'; 100_000]).unwrap();
            assert_eq!(body.len(), 100_005);
            let body = body.into_body().unwrap();
            let kept = body.bytes().slice(..6);
            assert_eq!(kept, "one, x");
            assert_eq!(body.bytes().len(), 100_005);
            assert!(!body.is_unused());
            drop(kept);
            assert!(body.is_unused());
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        assert!(create_in(Path::new("/nonexistent")).is_err());
    }
}
