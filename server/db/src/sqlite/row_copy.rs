//! A copy of a whole database, for trying what depends on its rows.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rusqlite::Connection;

use super::backup::{copy_pages, open};
use super::triggers::install::remove_all;
use super::triggers::recording::Present;
use crate::Error;

/// Creates the database `to` with all that `from` has in one state, without what
/// records changes; nothing where that is more than `limit` bytes. Nothing is written to `from`.
/// Gives the size of `from` in bytes.
///
/// # Errors
/// If `from` cannot be read, or `to` not be written.
pub fn copy_rows(from: &Path, to: &Path, limit: u64) -> Result<u64, Error> {
    copy(&open(from)?, to, limit)
        .map_err(|error| Error::unavailable(super::failure::sentence(&error)))
}

fn copy(source: &Connection, to: &Path, limit: u64) -> rusqlite::Result<u64> {
    let size: i64 = source.query_row(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        [],
        |row| row.get(0),
    )?;
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    if size <= limit {
        let copy = copy_pages(source, to, &AtomicBool::new(false))?;
        copy.execute_batch(&remove_all(&Present::read(&copy)?))?;
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_rows_unless_they_are_too_many() {
        let dir = lab_testkit::fast_dir();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("b.db"));
        let source = Connection::open(&from).unwrap();
        source
            .execute_batch("pragma journal_mode = wal; create table t (a); insert into t values (1), (1); create virtual table f using fts5(x); insert into f values ('b');")
            .unwrap();
        let before = std::fs::read(&from).unwrap();
        let size = copy_rows(&from, &to, 100).unwrap();
        assert!(size > 100 && !to.exists());
        assert_eq!(copy_rows(&from, &to, size).unwrap(), size);
        let copy = Connection::open(&to).unwrap();
        let count = |sql: &str| copy.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(count("select count(*) from t"), Ok(2));
        assert_eq!(count("select count(*) from f where f match 'b'"), Ok(1));
        assert_eq!(std::fs::read(&from).unwrap(), before);
        assert!(copy_rows(&dir.path().join("none.db"), &to, size).is_err());
    }
}
