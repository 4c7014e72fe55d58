//! Why nothing could be learned from an access log.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A log that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// The file could not be opened or read to its end.
    Read {
        /// The log.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// At least half of the lines are damaged: the file is not an access log in the common or
    /// combined format.
    Damaged {
        /// The log.
        path: PathBuf,
        /// The first damaged line, from 1.
        line: u64,
        /// Number of damaged lines.
        damaged: u64,
        /// Number of lines.
        lines: u64,
    },
    /// The log has no request of the wanted kind.
    Nothing {
        /// The log.
        path: PathBuf,
        /// The wanted kind.
        wanted: &'static str,
    },
    /// A replay keeps every request in memory, and there are more than this.
    TooLong {
        /// The log.
        path: PathBuf,
        /// Requests, or bytes of different targets, that it may have.
        most: &'static str,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => write!(out, "cannot read {}: {source}", path.display()),
            Self::Damaged {
                path,
                line,
                damaged,
                lines,
            } => write!(
                out,
                "{}:{line}: not in the common or combined log format, as {damaged} of {lines} lines",
                path.display()
            ),
            Self::Nothing { path, wanted } => write!(out, "{} has no {wanted}", path.display()),
            Self::TooLong { path, most } => write!(
                out,
                "{} has more than {most}, which a replay would keep in memory: cut the log, or learn from it without --replay",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}
