//! Why a database cannot be watched.

use std::fmt;

/// Why there is no probe of a PostgreSQL server; a sentence.
#[derive(Debug)]
pub struct PgError(String);

impl PgError {
    /// The URL is not one of PostgreSQL.
    pub(super) fn url(why: impl fmt::Display) -> Self {
        Self(format!(
            "the address of the PostgreSQL server is not understood: {why}; it is written as \
             postgres://user@host:5432/database"
        ))
    }

    /// The server was not reached, or refused the connection.
    pub(super) fn connect(why: impl fmt::Display) -> Self {
        Self(format!("cannot watch PostgreSQL: {why}"))
    }

    pub(super) fn version(version: &str) -> Self {
        Self(format!(
            "cannot watch PostgreSQL {version}: version 13 or later is needed"
        ))
    }

    pub(super) fn thread(source: impl fmt::Display) -> Self {
        Self(format!(
            "cannot start the thread that watches PostgreSQL: {source}"
        ))
    }
}

impl fmt::Display for PgError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for PgError {}

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
