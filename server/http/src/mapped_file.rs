//! A file without a name as bytes in memory: pages are read when they are looked at, and the kernel
//! may take them back.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The first bytes of a file, mapped for reading.
#[derive(Debug)]
pub(crate) struct MappedFile {
    start: NonNull<c_void>,
    len: usize,
}

impl MappedFile {
    /// Maps the first `len` bytes of `file`, which must have no name and no other descriptor, so
    /// that no other process can write or shorten it. Takes the only descriptor and closes it.
    ///
    /// # Errors
    /// The file is shorter, or `len` is 0; those of mmap(2).
    pub(crate) fn new(file: File, len: usize) -> io::Result<Self> {
        if file.metadata()?.len() < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the kernel chooses a range of addresses that is not in use, so no memory of the
        // program changes; the descriptor is open for the length of the call.
        let start = unsafe {
            mmap(
                null_mut(),
                len,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                &file,
                0,
            )
        }?;
        drop(file);
        let start = NonNull::new(start).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, len })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` begins a mapping of `len` bytes that lives as long as `self`, and every
        // bit pattern is a byte. The mapping is for reading only, and no other process can
        // reach the file: it has no name, and its one descriptor is closed. So the bytes do not
        // change and the file does not become shorter. A disk that cannot read its own page back
        // ends the process (SIGBUS), as it does for every program whose text is on that disk.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this start and length, is unmapped only here,
        // and every slice of it has borrowed `self`. An error would leave it mapped.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}

// SAFETY: the mapping is read-only memory of the whole process; no thread writes it, and it may be
// unmapped by any thread.
unsafe impl Send for MappedFile {}
// SAFETY: as above: a shared reference only reads.
unsafe impl Sync for MappedFile {}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_bytes_of_a_file_outlive_its_descriptor() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        let mapped = MappedFile::new(file.try_clone().unwrap(), 9_999).unwrap();
        assert_eq!(mapped.as_ref(), [7; 9_999]);
        assert!(MappedFile::new(file.try_clone().unwrap(), 10_001).is_err());
        assert!(MappedFile::new(file, 0).is_err());
        assert_eq!(mapped.as_ref().len(), 9_999);
    }
}
