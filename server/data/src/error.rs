//! What is wrong with a file, and where.

use std::fmt;

use crate::row::Stop;

/// Place of something in a file, as far as it is known. All numbers are from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePlace {
    /// The line.
    pub line: Option<u64>,
    /// The column in the line, in characters or, where lines are not held, in bytes.
    pub column: Option<u64>,
    /// The row, where the format does not tell its line.
    pub row: Option<u64>,
}

impl FilePlace {
    /// A line as a whole.
    #[must_use]
    pub const fn line(line: u64) -> Self {
        Self {
            line: Some(line),
            column: None,
            row: None,
        }
    }

    /// A line and a column in it.
    #[must_use]
    pub const fn at(line: u64, column: u64) -> Self {
        Self {
            line: Some(line),
            column: Some(column),
            row: None,
        }
    }

    /// A row whose line is not known.
    #[must_use]
    pub const fn row(row: u64) -> Self {
        Self {
            line: None,
            column: None,
            row: Some(row),
        }
    }

    /// The place of a byte of a text.
    pub(crate) fn in_text(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Self::at(
            before.matches('\n').count() as u64 + 1,
            before[start..].chars().count() as u64 + 1,
        )
    }

    /// Moves the place into a text that begins after this number of lines.
    pub(crate) fn after(self, lines: u64) -> Self {
        Self {
            line: self.line.map(|line| line + lines),
            ..self
        }
    }
}

/// A file that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// Place of the fault.
    pub place: FilePlace,
    /// Description of the fault, in one sentence.
    pub message: String,
    /// Remedy.
    pub remedy: Option<String>,
}

impl DataError {
    /// An error at a place.
    pub fn new(place: FilePlace, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            remedy: None,
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.place.line, self.place.column, self.place.row) {
            (Some(line), Some(column), _) => write!(f, "line {line}, column {column}: ")?,
            (Some(line), None, _) => write!(f, "line {line}: ")?,
            (None, _, Some(row)) => write!(f, "row {row}: ")?,
            (None, _, None) => {}
        }
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for DataError {}

/// Why a file was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The file cannot be understood.
    Data(DataError),
    /// The caller did not want more rows.
    Stopped,
}

impl From<DataError> for ReadError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<Stop> for ReadError {
    fn from(_: Stop) -> Self {
        Self::Stopped
    }
}
