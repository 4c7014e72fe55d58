//! Whether a program has a file open for writing.

#![allow(unsafe_code)]

use std::{fs::File, io, os::fd::AsRawFd};

/// Command of fcntl(2) that sets the signal for the end of a lease.
const F_SETSIG: libc::c_int = 10;

/// Programs that write a file, by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writers {
    /// No program has it open for writing.
    None,
    /// A program has.
    Some,
    /// The file is another user's, or its file system gives no leases.
    Unknown,
}

/// Asks for a lease to read, which the kernel refuses while a program has the file open for
/// writing, and gives it back at once. A program that opens the file in between waits for that.
pub(super) fn writers(file: &File) -> Writers {
    let file = file.as_raw_fd();
    // The default signal, SIGIO, ends a process that does not expect it; SIGURG does nothing.
    // SAFETY: the calls take a descriptor, which `file` keeps open, and numbers.
    let is_leased = unsafe {
        libc::fcntl(file, F_SETSIG, libc::SIGURG) == 0
            && libc::fcntl(file, libc::F_SETLEASE, libc::c_int::from(libc::F_RDLCK)) == 0
    };
    if !is_leased {
        return match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN) => Writers::Some,
            _ => Writers::Unknown,
        };
    }
    // SAFETY: as above. Without the lease there is nothing to give back.
    unsafe { libc::fcntl(file, libc::F_SETLEASE, libc::c_int::from(libc::F_UNLCK)) };
    Writers::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_open_for_writing_has_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let writer = File::create(&path).unwrap();
        let found = writers(&File::open(&path).unwrap());
        assert_ne!(found, Writers::None);
        drop(writer);
        let expected = match found {
            Writers::Some => Writers::None,
            other => other,
        };
        assert_eq!(writers(&File::open(&path).unwrap()), expected);
        // A lease that stays would make this wait.
        File::create(&path).unwrap();
    }
}
