//! Faults of a site folder, described so that its owner can correct them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use millpond_data::{DataError, FilePlace};

/// The name of the file of settings in the site's folder.
pub const SETTINGS: &str = "millpond.toml";

/// One fault in a file of the site: where it is, what it is, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The file, relative to the site folder.
    pub file: PathBuf,
    /// Line and column, both from 1, where they are known.
    pub at: Option<(usize, usize)>,
    /// Description of the fault, in one sentence.
    pub message: String,
    /// Remedy.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a file as a whole.
    pub fn new(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            at: None,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds line and column, both from 1.
    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Self {
        self.at = Some((line, column));
        self
    }

    /// Adds the place of a byte `offset` in `text`.
    #[must_use]
    pub fn at_offset(self, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        self.at(line, column)
    }

    /// A text that cannot be read.
    pub fn unread(file: impl Into<PathBuf>, error: DataError) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let FilePlace { line, column, row } = error.place;
        let message = match (line, row) {
            (None, Some(row)) => format!("row {row}: {}", error.message),
            _ => error.message,
        };
        Self {
            at: line.map(|line| (number(line), number(column.unwrap_or(1)))),
            hint: error.remedy,
            ..Self::new(file, message)
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The problems of a site, with their files named from the folder of the server.
pub fn below(shown: &Path, mut problems: Vec<Problem>) -> Vec<Problem> {
    for problem in &mut problems {
        problem.file = shown.join(&problem.file);
    }
    problems
}
