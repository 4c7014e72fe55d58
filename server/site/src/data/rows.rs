//! The rows of a file on their way to the table: held, or read a second time.

use std::sync::Arc;

use millpond_data::{FilePlace, ReadError, Stop, read};
use millpond_db::{Error, RowSource, Value};
use parking_lot::Mutex;

use super::{
    Inbox,
    columns::FilledColumns,
    convert,
    scan::DataFile,
    survey::{is_as_found, is_unchanged, open},
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

/// The rows have ended before the file, for this reason.
fn ended(at: &Mutex<Option<RowsEnd>>, end: RowsEnd) -> Error {
    let message = match end {
        RowsEnd::Stopped => "the site stops",
        RowsEnd::Changed | RowsEnd::Refused(_) => "the file was changed while it was read",
    };
    *at.lock() = Some(end);
    Error::Unavailable {
        message: message.to_owned(),
    }
}

impl RowSource for FileRows {
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
        *self.end.lock() = None;
        let Ok(Some(opened)) = open(&self.file) else {
            return Err(ended(&self.end, RowsEnd::Changed));
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
            return Err(ended(&self.end, RowsEnd::Stopped));
        }
        match outcome {
            Ok(digest) if digest.hash == self.hash && is_unchanged(&self.file, &opened) => Ok(()),
            Ok(_) | Err(ReadError::Data(_) | ReadError::Stopped) => {
                Err(ended(&self.end, RowsEnd::Changed))
            }
        }
    }
}

/// The rows of a small file, which are held.
pub(super) struct HeldRows {
    pub(super) file: DataFile,
    pub(super) held: RowsInMemory,
    pub(super) end: Arc<Mutex<Option<RowsEnd>>>,
}

/// Rows, each with its place in its file.
#[derive(Debug, Default)]
pub(super) struct RowsInMemory {
    pub(super) rows: Vec<(FilePlace, Vec<Value>)>,
    /// About the bytes that they take.
    pub(super) bytes: usize,
}

impl RowsInMemory {
    pub(super) fn push(&mut self, place: FilePlace, values: &[Value]) {
        self.bytes += values.iter().map(bytes).sum::<usize>();
        self.rows.push((place, values.to_vec()));
    }
}

/// About the bytes that a value takes.
fn bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Blob(blob) => blob.len(),
            Value::Json(json) => json_bytes(json),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Boolean(_) => 0,
        }
}

fn json_bytes(json: &serde_json::Value) -> usize {
    use serde_json::Value as Json;
    size_of::<Json>()
        + match json {
            Json::String(text) => text.len(),
            Json::Array(list) => list.iter().map(json_bytes).sum(),
            Json::Object(map) => map.iter().map(|(key, it)| key.len() + json_bytes(it)).sum(),
            Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        }
}

impl RowSource for HeldRows {
    fn rows(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), Error>) -> Result<(), Error> {
        *self.end.lock() = None;
        // Counterexample: the file is changed, and another node of the same folder, which has the
        // lock before this one, applies it; these rows would take the place of newer ones.
        if !is_as_found(&self.file) {
            return Err(ended(&self.end, RowsEnd::Changed));
        }
        for (place, values) in &self.held.rows {
            each(values).inspect_err(|_| *self.end.lock() = Some(RowsEnd::Refused(*place)))?;
        }
        Ok(())
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
