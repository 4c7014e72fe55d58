//! Detects that a statement reads the clock.
//!
//! `date(x)` depends on the database alone, unless `x` is `'now'`, which may come from a parameter,
//! a column or a view. The statement's text does not show it, but SQLite asks its VFS for the time.
//! So connections are opened through a copy of the default VFS whose two clock functions set a flag
//! before they call the original.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi;

/// The name under which the copy is registered.
const NAME: &CStr = c"millpond";

thread_local! {
    static READ: Cell<bool> = const { Cell::new(false) };
}

/// Clears the flag of this thread.
pub(crate) fn reset() {
    READ.set(false);
}

/// True if a statement on this thread has read the clock since [`reset`].
pub(crate) fn was_read() -> bool {
    READ.get()
}

struct OriginalVfs {
    current_time: Option<unsafe extern "C" fn(*mut ffi::sqlite3_vfs, *mut f64) -> c_int>,
    current_time_int64: Option<unsafe extern "C" fn(*mut ffi::sqlite3_vfs, *mut i64) -> c_int>,
}

static ORIGINAL: OnceLock<Option<OriginalVfs>> = OnceLock::new();

/// Registers the VFS once, and returns its name. `None` if SQLite has no default VFS or refused the
/// copy.
pub(crate) fn register() -> Option<&'static CStr> {
    ORIGINAL.get_or_init(install).is_some().then_some(NAME)
}

fn install() -> Option<OriginalVfs> {
    // SAFETY: `sqlite3_initialize` may be called at any time from any thread; a null name asks for
    // the default VFS, which is null or valid for ever, as nothing here unregisters it.
    let default = unsafe {
        ffi::sqlite3_initialize();
        ffi::sqlite3_vfs_find(ptr::null())
    };
    if default.is_null() {
        return None;
    }
    // SAFETY: the pointer is valid and SQLite changes none of the fields read here after
    // registration, except `pNext`, which a copy does not need. The default VFS's functions are
    // given the copy where they expect themselves; those of the unix VFS use only `pAppData` and
    // `mxPathname` of it, which are the same in both.
    let mut copy = unsafe { ptr::read(default) };
    let original = OriginalVfs {
        current_time: copy.xCurrentTime,
        current_time_int64: copy.xCurrentTimeInt64,
    };
    copy.pNext = ptr::null_mut();
    copy.zName = NAME.as_ptr();
    copy.xCurrentTime = original.current_time.map(|_| current_time as _);
    copy.xCurrentTimeInt64 = original.current_time_int64.map(|_| current_time_int64 as _);
    // SAFETY: the structure is leaked, so it is valid for ever, and its name is static. 0: not the
    // default.
    let code = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(copy)), 0) };
    (code == ffi::SQLITE_OK).then_some(original)
}

unsafe extern "C" fn current_time(vfs: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    READ.set(true);
    match ORIGINAL.get() {
        // SAFETY: the arguments are SQLite's, passed on unchanged to the function that they were
        // meant for.
        Some(Some(OriginalVfs {
            current_time: Some(original),
            ..
        })) => unsafe { original(vfs, out) },
        _ => ffi::SQLITE_ERROR,
    }
}

unsafe extern "C" fn current_time_int64(vfs: *mut ffi::sqlite3_vfs, out: *mut i64) -> c_int {
    READ.set(true);
    match ORIGINAL.get() {
        // SAFETY: as above.
        Some(Some(OriginalVfs {
            current_time_int64: Some(original),
            ..
        })) => unsafe { original(vfs, out) },
        _ => ffi::SQLITE_ERROR,
    }
}
