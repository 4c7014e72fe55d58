//! SQLite's preupdate hook: every row change of a connection, with old and new values.
//!
//! rusqlite has a safe wrapper behind a feature that generates bindings at build time and needs
//! libclang. So the five functions are called here directly. `.cargo/config.toml` has the bundled
//! SQLite compiled with them.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use rusqlite::{Connection, ffi};

use crate::column_set::ColumnMask;
use crate::sqlite::tags::StoredValue;

/// One row change that SQLite is about to make.
pub(crate) struct RowChange<'a> {
    db: *mut ffi::sqlite3,
    operation: c_int,
    database: &'a CStr,
    table: &'a CStr,
    old_rowid: i64,
    new_rowid: i64,
}

impl RowChange<'_> {
    /// `main`, `temp` or the name of an attached database.
    pub(crate) fn database(&self) -> &[u8] {
        self.database.to_bytes()
    }

    /// The table's name as it was declared.
    pub(crate) fn table(&self) -> &[u8] {
        self.table.to_bytes()
    }

    /// The rowids before and after the change. They have no meaning in a table without rowid.
    pub(crate) fn rowids(&self) -> (Option<i64>, Option<i64>) {
        (
            (self.operation != ffi::SQLITE_INSERT).then_some(self.old_rowid),
            (self.operation != ffi::SQLITE_DELETE).then_some(self.new_rowid),
        )
    }

    /// The columns whose values an update changes, by type or bytes; all, for other changes and if
    /// SQLite cannot supply a value.
    pub(crate) fn changed_columns(&self) -> ColumnMask {
        let is_update = self.operation == ffi::SQLITE_UPDATE && self.old_rowid == self.new_rowid;
        // SAFETY: as for `is_blob_write`.
        let count = unsafe { ffi::sqlite3_preupdate_count(self.db) };
        if !is_update || self.is_blob_write() || !(0..=128).contains(&count) {
            return ColumnMask::All;
        }
        let mut mask = 0;
        for column in 0..count {
            match self.is_same(column) {
                Ok(true) => {}
                Ok(false) => mask |= 1 << column,
                Err(()) => return ColumnMask::All,
            }
        }
        ColumnMask::Some(mask)
    }

    /// True if an update leaves the value of a column as it is.
    fn is_same(&self, column: c_int) -> Result<bool, ()> {
        let old = self.pointer(ffi::sqlite3_preupdate_old, column)?;
        let new = self.pointer(ffi::sqlite3_preupdate_new, column)?;
        // SAFETY: SQLite says that both values are there, protected, and unchanged until the
        // callback returns or one of the two functions is called again.
        Ok(unsafe { is_identical(old, new) })
    }

    /// True if a part of a blob is written in place. Then the new value is unknown.
    pub(crate) fn is_blob_write(&self) -> bool {
        // SAFETY: `db` is the handle that SQLite passed to the running callback, and `self` does
        // not outlive it (it is only lent to the callback's closure); the function is made for use
        // there.
        unsafe { ffi::sqlite3_preupdate_blobwrite(self.db) >= 0 }
    }

    /// Passes the old value of a column to `f`: `Ok(None)` for an insert, `Err` if SQLite cannot
    /// supply the value.
    pub(crate) fn old_value<T>(
        &self,
        column: usize,
        f: impl FnOnce(StoredValue<'_>) -> T,
    ) -> Result<Option<T>, ()> {
        if self.operation == ffi::SQLITE_INSERT {
            return Ok(None);
        }
        self.value(ffi::sqlite3_preupdate_old, column, f).map(Some)
    }

    /// Passes the new value of a column to `f`: `Ok(None)` for a delete, `Err` if SQLite cannot
    /// supply the value.
    pub(crate) fn new_value<T>(
        &self,
        column: usize,
        f: impl FnOnce(StoredValue<'_>) -> T,
    ) -> Result<Option<T>, ()> {
        if self.operation == ffi::SQLITE_DELETE {
            return Ok(None);
        }
        self.value(ffi::sqlite3_preupdate_new, column, f).map(Some)
    }

    fn pointer(&self, fetch: Fetch, column: c_int) -> Result<*mut ffi::sqlite3_value, ()> {
        let mut value: *mut ffi::sqlite3_value = ptr::null_mut();
        // SAFETY: called inside the callback with its own handle, and with a place for one pointer.
        // SQLite checks the operation and the range of the column, and says so in the result.
        let code = unsafe { fetch(self.db, column, &raw mut value) };
        let is_there = code == ffi::SQLITE_OK && !value.is_null();
        is_there.then_some(value).ok_or(())
    }

    fn value<T>(
        &self,
        fetch: Fetch,
        column: usize,
        f: impl FnOnce(StoredValue<'_>) -> T,
    ) -> Result<T, ()> {
        let value = self.pointer(fetch, c_int::try_from(column).map_err(drop)?)?;
        // SAFETY: SQLite says that the value is there, protected, and unchanged until the callback
        // returns or the same function is called again; `f` cannot keep it, as it is lent for any
        // lifetime, and cannot call back.
        Ok(f(unsafe { stored(value) }))
    }
}

/// True if two values have the same type and the same bytes.
///
/// # Safety
/// Both must be valid protected values.
unsafe fn is_identical(a: *mut ffi::sqlite3_value, b: *mut ffi::sqlite3_value) -> bool {
    // SAFETY: the caller vouches for the values. A blob is asked for before its length, as SQLite
    // demands; the two describe one buffer, which is null only if its length is 0 or memory is out.
    unsafe {
        let of = ffi::sqlite3_value_type(a);
        if of != ffi::sqlite3_value_type(b) {
            return false;
        }
        match of {
            ffi::SQLITE_NULL => true,
            ffi::SQLITE_INTEGER => ffi::sqlite3_value_int64(a) == ffi::sqlite3_value_int64(b),
            ffi::SQLITE_FLOAT => {
                let bits = |value| ffi::sqlite3_value_double(value).to_bits();
                bits(a) == bits(b)
            }
            _ => {
                let bytes = |value| {
                    let start = ffi::sqlite3_value_blob(value).cast::<u8>();
                    let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
                    match start.is_null() {
                        true if length > 0 => None,
                        true => Some(&[][..]),
                        false => Some(std::slice::from_raw_parts(start, length)),
                    }
                };
                let (a, b) = (bytes(a), bytes(b));
                a.is_some() && a == b
            }
        }
    }
}

type Fetch = unsafe extern "C" fn(*mut ffi::sqlite3, c_int, *mut *mut ffi::sqlite3_value) -> c_int;

/// # Safety
/// `value` must be a valid protected value that stays unchanged for `'a`.
unsafe fn stored<'a>(value: *mut ffi::sqlite3_value) -> StoredValue<'a> {
    // SAFETY: the caller vouches for the value. The text is asked for before its length, as SQLite
    // demands, and the two describe one buffer; a null pointer (out of memory) is taken for an
    // empty text only if its length is 0.
    unsafe {
        match ffi::sqlite3_value_type(value) {
            ffi::SQLITE_INTEGER => StoredValue::Integer(ffi::sqlite3_value_int64(value)),
            ffi::SQLITE_FLOAT => StoredValue::Real(ffi::sqlite3_value_double(value)),
            ffi::SQLITE_TEXT => {
                let text = ffi::sqlite3_value_text(value);
                let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
                if text.is_null() {
                    StoredValue::Text(&[])
                } else {
                    StoredValue::Text(std::slice::from_raw_parts(text, length))
                }
            }
            ffi::SQLITE_BLOB => {
                let blob = ffi::sqlite3_value_blob(value).cast::<u8>();
                let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
                if blob.is_null() {
                    StoredValue::Blob(&[])
                } else {
                    StoredValue::Blob(std::slice::from_raw_parts(blob, length))
                }
            }
            _ => StoredValue::Null,
        }
    }
}

/// Called for each row change. The observer must not use the connection.
pub(crate) trait Observer: Send {
    fn row(&mut self, change: &RowChange<'_>);
    /// `row` has panicked. This method must not panic.
    fn panicked(&mut self);
}

/// A connection whose row changes are observed.
pub(crate) struct ObservedConnection {
    connection: Connection,
    /// From `Box::into_raw`; freed in `drop` once SQLite has let go of it.
    observer: *mut Box<dyn Observer>,
}

// SAFETY: the connection is `Send`, the observer is `Send` by its trait, and the pointer owns it
// like a box. SQLite calls the hook only on the thread that uses the connection, and
// `ObservedConnection` is not `Sync`.
unsafe impl Send for ObservedConnection {}

impl ObservedConnection {
    pub(crate) fn new(connection: Connection, observer: Box<dyn Observer>) -> Self {
        let observer = Box::into_raw(Box::new(observer));
        // SAFETY: the handle is valid as long as `connection`, which the new value owns and never
        // lends mutably, so it cannot be swapped for another; the argument stays valid until `drop`
        // has removed the hook.
        unsafe {
            ffi::sqlite3_preupdate_hook(
                connection.handle(),
                Some(on_change),
                observer.cast::<c_void>(),
            );
        }
        Self {
            connection,
            observer,
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for ObservedConnection {
    fn drop(&mut self) {
        // SAFETY: the handle is valid; no statement runs on it, since running one borrows `self`.
        // After the first call SQLite no longer has the pointer, which came from `Box::into_raw`
        // and is freed once.
        unsafe {
            ffi::sqlite3_preupdate_hook(self.connection.handle(), None, ptr::null_mut());
            drop(Box::from_raw(self.observer));
        }
    }
}

unsafe extern "C" fn on_change(
    observer: *mut c_void,
    db: *mut ffi::sqlite3,
    operation: c_int,
    database: *const c_char,
    table: *const c_char,
    old_rowid: i64,
    new_rowid: i64,
) {
    // SAFETY: the argument is the one given to `sqlite3_preupdate_hook`, alive until the hook is
    // removed. The hook is not entered again while it runs (the observer cannot run statements), so
    // the reference is the only one. The names are strings that SQLite keeps during the call.
    let (observer, database, table) = unsafe {
        (
            &mut *observer.cast::<Box<dyn Observer>>(),
            CStr::from_ptr(database),
            CStr::from_ptr(table),
        )
    };
    let change = RowChange {
        db,
        operation,
        database,
        table,
        old_rowid,
        new_rowid,
    };
    // A panic must not unwind into C.
    if catch_unwind(AssertUnwindSafe(|| observer.row(&change))).is_err() {
        observer.panicked();
    }
}
