//! Copies of files' contents, which nothing changes afterwards.
//!
//! A file that stays on disk may be written while it is sent. Its copy cannot: so a response from a
//! copy needs no look at the file, and is never mixed from two states of it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use millpond_http::Body;
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, open};

/// Folder in which files without a name are made: on a disk even where `/tmp` is in memory
/// (Filesystem Hierarchy Standard, section 5.15).
const UNNAMED_FILES: &str = "/var/tmp";

/// `content` in a file that has no name, to be sent by `sendfile`: the socket then refers to its
/// pages, where a write would copy them. Costs a descriptor.
///
/// It is a file of a disk's file system where that can be had, and else one in memory: of a disk's
/// file the kernel hands over many pages at once, of one in memory each by itself, which took a
/// fifth more for 100 KiB.
pub(super) fn in_kernel(content: &[u8]) -> io::Result<Body> {
    let file = on_disk(content).or_else(|_| in_memory(content))?;
    Ok(Body::File {
        file: Arc::new(file),
        offset: 0,
        len: content.len() as u64,
    })
}

/// A file without a path that other processes could open, removed when its descriptor is closed.
fn on_disk(content: &[u8]) -> io::Result<File> {
    let unnamed = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = File::from(open(UNNAMED_FILES, unnamed, Mode::RUSR | Mode::WUSR)?);
    file.write_all(content)?;
    // Opened anew for reading alone: from here on no fault of ours can change it.
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Makes a file in memory, sealed against every change.
fn in_memory(content: &[u8]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("millpond-static", flags)?);
    file.write_all(content)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file)
}

/// Returns the content that `body` sends, if it has no more than `most` bytes. None if it has more,
/// or its file cannot be read.
pub(super) fn content(body: &Body, most: u64) -> Option<Bytes> {
    match body {
        _ if body.len() > most => None,
        Body::Empty => Some(Bytes::new()),
        Body::Bytes(bytes) => Some(bytes.clone()),
        Body::File { file, offset, len } => {
            let mut content = vec![0; usize::try_from(*len).ok()?];
            file.read_exact_at(&mut content, *offset).ok()?;
            Some(content.into())
        }
        Body::Streamed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_the_kernel_cannot_be_changed() {
        let Ok(body @ Body::File { .. }) = in_kernel(b"content") else {
            panic!("this kernel has memfd");
        };
        assert_eq!(content(&body, 7).unwrap(), &b"content"[..]);
        assert_eq!(content(&body, 6), None);
        for file in [on_disk(b"content"), in_memory(b"content")] {
            // Some machines have no disk for it.
            let Ok(file) = file else { continue };
            assert!(file.write_at(b"C", 0).is_err());
            assert!(file.set_len(3).is_err() && file.set_len(9).is_err());
            assert_eq!(file.metadata().unwrap().len(), 7);
        }
    }
}
