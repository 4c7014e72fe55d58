//! Copies of files' contents, which nothing changes afterwards.
//!
//! A file that stays on disk may be written while it is sent. Its copy cannot: so a response from a copy needs no look
//! at the file, and is never mixed from two states of it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_copy_in_the_kernel_cannot_be_changed() {
        let Ok(Body::File { file, offset, len }) = in_kernel(b"content") else {
            panic!("this kernel has memfd");
        };
        assert_eq!((offset, len), (0, 7));
        assert!(file.write_at(b"C", 0).is_err());
        assert!(file.set_len(3).is_err() && file.set_len(9).is_err());
        let mut content = [0; 7];
        file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(&content, b"content");
    }
}
