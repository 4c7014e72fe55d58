//! Reads the write-ahead log of an open connection, and the header of the log's index.
//!
//! Both are read through the files that SQLite itself has open. Counterexample: the index is opened
//! and closed a second time. POSIX locks belong to the process, so closing it drops the locks of
//! all connections of this process.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rusqlite::{Connection, ffi};

/// The words of the two copies of the index's header.
pub(crate) const INDEX_WORDS: usize = 24;

/// The size of the first part of the index, by which it is mapped.
const INDEX_PART: c_int = 32_768;

/// The log's two files, as one connection has them open. The connection must be in WAL mode and
/// have read once.
pub(crate) struct LogFile<'a>(&'a Connection);

impl<'a> LogFile<'a> {
    pub(crate) fn of(connection: &'a Connection) -> Self {
        Self(connection)
    }

    /// The file that SQLite has open: the database for `SQLITE_FCNTL_FILE_POINTER`, the log for
    /// `SQLITE_FCNTL_JOURNAL_POINTER`.
    fn file(&self, operation: c_int) -> Option<(*mut ffi::sqlite3_file, &ffi::sqlite3_io_methods)> {
        let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
        // SAFETY: the handle is valid while the connection is borrowed; both operations store one
        // pointer at the given place.
        let code = unsafe {
            ffi::sqlite3_file_control(
                self.0.handle(),
                c"main".as_ptr(),
                operation,
                ptr::from_mut(&mut file).cast::<c_void>(),
            )
        };
        if code != ffi::SQLITE_OK || file.is_null() {
            return None;
        }
        // SAFETY: SQLite keeps the file object while the connection is open. Its methods are null
        // for a file that is not open, and otherwise static.
        unsafe { (*file).pMethods.as_ref() }.map(|methods| (file, methods))
    }

    /// Both copies of the index's header, the second one read after the first.
    pub(crate) fn index(&self) -> Option<[u32; INDEX_WORDS]> {
        let (file, methods) = self.file(ffi::SQLITE_FCNTL_FILE_POINTER)?;
        if methods.iVersion < 2 {
            return None;
        }
        let map = methods.xShmMap?;
        let mut memory: *mut c_void = ptr::null_mut();
        // SAFETY: `file` is the open database file of this connection, which only this thread uses;
        // SQLite asks for the same part with the same size. 0: the index is not extended.
        let code = unsafe { map(file, 0, INDEX_PART, 0, &raw mut memory) };
        if code != ffi::SQLITE_OK || memory.is_null() {
            return None;
        }
        let words = memory.cast::<u32>();
        let mut copied = [0; INDEX_WORDS];
        for (index, word) in copied.iter_mut().enumerate() {
            if index == INDEX_WORDS / 2 {
                fence(Ordering::SeqCst);
            }
            // SAFETY: the part is mapped for at least 32,768 bytes and aligned to a page, and stays
            // mapped while the connection is open. Other processes write it meanwhile, so the
            // access is atomic; the caller compares the copies.
            *word = unsafe { AtomicU32::from_ptr(words.add(index)) }.load(Ordering::SeqCst);
        }
        Some(copied)
    }

    /// The size of the log in bytes.
    pub(crate) fn size(&self) -> Option<u64> {
        let (file, methods) = self.file(ffi::SQLITE_FCNTL_JOURNAL_POINTER)?;
        let mut size = 0;
        // SAFETY: `file` is the open log; the method stores one integer.
        let code = unsafe { methods.xFileSize?(file, &raw mut size) };
        (code == ffi::SQLITE_OK).then(|| u64::try_from(size).ok())?
    }

    /// Fills `buffer` from the log at `offset`; false if the log ends before.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let Some((file, methods)) = self.file(ffi::SQLITE_FCNTL_JOURNAL_POINTER) else {
            return false;
        };
        let (Some(read), Ok(offset), Ok(length)) = (
            methods.xRead,
            i64::try_from(offset),
            c_int::try_from(buffer.len()),
        ) else {
            return false;
        };
        // SAFETY: `file` is the open log; the method writes at most `length` bytes to the buffer.
        let code = unsafe { read(file, buffer.as_mut_ptr().cast::<c_void>(), length, offset) };
        code == ffi::SQLITE_OK
    }
}
