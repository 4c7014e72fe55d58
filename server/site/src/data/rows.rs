//! The second reading of a file: its rows on their way to the table.

use std::sync::Arc;

use millpond_data::{FilePlace, ReadError, Stop, read};
use millpond_db::{Error, RowSource, Value};
use parking_lot::Mutex;

use super::{
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
    /// The database refused the row at this place.
    Refused(FilePlace),
}

/// The rows of a file that was checked.
pub(super) struct FileRows {
    pub(super) file: DataFile,
    pub(super) filled: FilledColumns,
    /// The hash that its content must have.
    pub(super) hash: u128,
    pub(super) end: Arc<Mutex<Option<RowsEnd>>>,
}

impl FileRows {
    fn changed(&self) -> Error {
        *self.end.lock() = Some(RowsEnd::Changed);
        Error::Unavailable {
            message: "the file was changed while it was read".to_owned(),
        }
    }
}

impl RowSource for FileRows {
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
        let Some(opened) = open(&self.file) else {
            return Err(self.changed());
        };
        let mut refused = None;
        let mut values = Vec::with_capacity(self.filled.columns.len());
        let (filled, file) = (&self.filled, &self.file);
        let outcome = read(file.format, &opened, file.row_path.as_deref(), &mut |row| {
            if convert::row(filled, row.values, &mut values).is_err() {
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
        match outcome {
            Ok(digest) if digest.hash == self.hash && is_unchanged(&self.file, &opened) => Ok(()),
            Ok(_) | Err(ReadError::Data(_) | ReadError::Stopped) => Err(self.changed()),
        }
    }
}
