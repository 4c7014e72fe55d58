//! Why a plan was not understood, and where.

use std::fmt;
use std::path::{Path, PathBuf};

/// A mistake in a plan or in a file that it names: what, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    file: PathBuf,
    /// Line and column, from 1; none if the whole file is meant.
    place: Option<(usize, usize)>,
    message: String,
}

impl PlanError {
    /// A mistake at a byte of a file's text.
    pub(super) fn at(file: &Path, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        Self {
            file: file.to_owned(),
            place: Some((line, column)),
            message: message.into(),
        }
    }

    /// A mistake that concerns a whole file.
    pub(crate) fn of(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(out, ":{line}:{column}")?;
        }
        write!(out, ": {}", self.message)
    }
}

impl std::error::Error for PlanError {}
