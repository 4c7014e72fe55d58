//! A file that cannot be read, with the place.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file gives no page.
#[derive(Debug)]
pub struct BookError {
    file: PathBuf,
    /// From 1; 0 if the file as a whole is meant.
    line: usize,
    what: String,
}

impl BookError {
    pub(crate) fn new(file: &Path, line: usize, what: impl fmt::Display) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.to_string(),
        }
    }
}

impl fmt::Display for BookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what } = self;
        match line {
            0 => write!(f, "{}: {what}", file.display()),
            _ => write!(f, "{}:{line}: {what}", file.display()),
        }
    }
}

impl std::error::Error for BookError {}
