//! Copies of files' contents, which nothing changes afterwards.
//!
//! A file that stays on disk may be written while it is sent. Its copy cannot: so a response from a copy needs no look
//! at the file, and is never mixed from two states of it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use millpond_http::Body;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// `content` in a file that has no name and is in memory, to be sent by `sendfile`: the socket then refers to its pages,
/// where a write would copy them. Costs a descriptor.
pub(super) fn in_kernel(content: &[u8]) -> io::Result<Body> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("millpond-static", flags)?);
    file.write_all(content)?;
    // From here on the kernel refuses every change, also by a fault of ours.
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(Body::File {
        file: Arc::new(file),
        offset: 0,
        len: content.len() as u64,
    })
}

/// What `body` sends: no more than `most` bytes of it. None if it has more, or its file cannot be read.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_the_kernel_cannot_be_changed() {
        let Ok(Body::File { file, offset, len }) = in_kernel(b"content") else {
            panic!("this kernel has memfd");
        };
        assert_eq!((offset, len), (0, 7));
        assert!(file.write_at(b"C", 0).is_err());
        assert!(file.set_len(3).is_err() && file.set_len(9).is_err());
        let body = Body::File { file, offset, len };
        assert_eq!(content(&body, 7).unwrap(), &b"content"[..]);
        assert_eq!(content(&body, 6), None);
    }
}
