//! Errors, as sentences for the reader of a failed test.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why there is no server, or it did not do what was asked.
#[derive(Debug)]
pub enum Error {
    /// PostgreSQL's server programs are nowhere.
    NotInstalled {
        /// The folders that were looked into.
        looked_in: Vec<PathBuf>,
    },
    /// The operating system refused something.
    System {
        /// Action that failed.
        what: String,
        /// Why it was not.
        source: io::Error,
    },
    /// `initdb` failed.
    Cluster {
        /// The end of what it said.
        said: String,
    },
    /// The server did not come up.
    Start {
        /// Event that was seen from outside.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// The server refused a statement or a connection.
    Sql {
        /// Action that failed.
        what: String,
        /// The server's answer.
        source: postgres::Error,
    },
    /// The server is stopped.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled { looked_in } => {
                let folders: Vec<String> = looked_in
                    .iter()
                    .map(|folder| folder.display().to_string())
                    .collect();
                write!(
                    out,
                    "no initdb and postgres in {}; on Debian: sudo apt-get install --yes postgresql",
                    folders.join(", ")
                )
            }
            Self::System { what, source } => write!(out, "cannot {what}: {source}"),
            Self::Cluster { said } => write!(out, "initdb made no cluster; it said:\n{said}"),
            Self::Start { what, log } => {
                write!(
                    out,
                    "PostgreSQL did not start: {what}; the end of its log:\n{log}"
                )
            }
            Self::Sql { what, source } => {
                // The driver's own message is only "db error"; the server's words are its source.
                let words = source
                    .as_db_error()
                    .map_or_else(|| source.to_string(), ToString::to_string);
                write!(out, "cannot {what}: {words}")
            }
            Self::Stopped => write!(out, "the server is stopped; restart it first"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            Self::Sql { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// For `map_err`: the operating system refused to do `what`.
pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
    let what = what.into();
    move |source| Error::System {
        what,
        source: source.into(),
    }
}

/// For `map_err`: the server refused to do `what`.
pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(postgres::Error) -> Error {
    let what = what.into();
    move |source| Error::Sql { what, source }
}
