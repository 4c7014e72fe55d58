//! The second reading of a file: its rows on their way to the table.

use std::sync::Arc;

use millpond_data::{FilePlace, ReadError, Stop, read};
use millpond_db::{Error, RowSource, Value};
use parking_lot::Mutex;

use super::{
    Inbox,
    columns::FilledColumns,
    convert,
    scan::DataFile,
    survey::{is_unchanged, open},
};

/// Why the rows ended before the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsEnd {
    /// The file is not the one that was checked.
    Changed,
    /// The site stops.
    Stopped,
    /// The database refused the row at this place.
    Refused(FilePlace),
}

/// The rows of a file that was checked.
pub(super) struct FileRows {
    pub(super) file: DataFile,
    pub(super) filled: FilledColumns,
    /// The hash that its content must have.
    pub(super) hash: u128,
    pub(super) inbox: Arc<Inbox>,
    pub(super) end: Arc<Mutex<Option<RowsEnd>>>,
}

impl FileRows {
    fn changed(&self) -> Error {
        self.ended(RowsEnd::Changed, "the file was changed while it was read")
    }

    fn ended(&self, end: RowsEnd, message: &str) -> Error {
        *self.end.lock() = Some(end);
        Error::Unavailable {
            message: message.to_owned(),
        }
    }
}

impl RowSource for FileRows {
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
        *self.end.lock() = None;
        let Ok(Some(opened)) = open(&self.file) else {
            return Err(self.changed());
        };
        let mut refused = None;
        let mut values = Vec::with_capacity(self.filled.columns.len());
        let (filled, file) = (&self.filled, &self.file);
        let outcome = read(file.format, &opened, file.row_path.as_deref(), &mut |row| {
            if self.inbox.is_stopped() || convert::row(filled, row.values, &mut values).is_err() {
                return Err(Stop);
            }
            each(&values).map_err(|error| {
                refused = Some((row.place, error));
                Stop
            })
        });
        if let Some((place, error)) = refused {
            *self.end.lock() = Some(RowsEnd::Refused(place));
            return Err(error);
        }
        if self.inbox.is_stopped() {
            return Err(self.ended(RowsEnd::Stopped, "the site stops"));
        }
        match outcome {
            Ok(digest) if digest.hash == self.hash && is_unchanged(&self.file, &opened) => Ok(()),
            Ok(_) | Err(ReadError::Data(_) | ReadError::Stopped) => Err(self.changed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DataSources, scan::scan};

    #[test]
    fn rows_end_when_the_site_stops() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        std::fs::write(dir.path().join("data/t.csv"), "id\n1\n2\n3\n").unwrap();
        let sources = DataSources {
            dir: dir.path().to_owned(),
            folders: Vec::new(),
        };
        let file = scan(&sources).files["t.csv"].clone();
        let inbox = Arc::new(Inbox::default());
        let mut rows = FileRows {
            file,
            filled: FilledColumns::default(),
            hash: 0,
            inbox: Arc::clone(&inbox),
            end: Arc::default(),
        };
        let mut count = 0;
        let outcome = rows.rows(&mut |_| {
            count += 1;
            inbox.stop();
            Ok(())
        });
        assert!(outcome.is_err());
        assert_eq!((count, *rows.end.lock()), (1, Some(RowsEnd::Stopped)));
    }
}
