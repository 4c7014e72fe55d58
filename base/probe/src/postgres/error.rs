//! Why a database cannot be watched.

use std::fmt;

/// Why there is no probe of a PostgreSQL server.
#[derive(Debug)]
pub enum PgError {
    /// The URL is not one of PostgreSQL.
    Url(String),
    /// The server was not reached, or refused the connection.
    Connect(String),
    /// The server is older than version 13.
    Version(String),
    /// The thread of the probe could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for PgError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) => write!(
                out,
                "the address of the PostgreSQL server is not understood: {why}; it is written as \
                 postgres://user@host:5432/database"
            ),
            Self::Connect(why) => write!(out, "cannot watch PostgreSQL: {why}"),
            Self::Version(version) => write!(
                out,
                "cannot watch PostgreSQL {version}: version 13 or later is needed"
            ),
            Self::Thread(source) => {
                write!(
                    out,
                    "cannot start the thread that watches PostgreSQL: {source}"
                )
            }
        }
    }
}

impl std::error::Error for PgError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(source) => Some(source),
            _ => None,
        }
    }
}

/// The text of the driver's error: its own text is often only "db error", the server's text is its
/// source.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    if let Some(said) = error.as_db_error() {
        return match said.hint() {
            Some(hint) => format!("{} ({hint})", said.message()),
            None => said.message().to_owned(),
        };
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
