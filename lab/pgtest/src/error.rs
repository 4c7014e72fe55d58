//! Errors, as sentences for the reader of a failed test.

use std::fmt;
use std::io;

/// Why there is no server, or it did not do what was asked.
#[derive(Debug)]
pub struct Error(pub(crate) String);

impl Error {
    pub(crate) fn stopped() -> Self {
        Self("the server is stopped; restart it first".to_owned())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// For `map_err`: the operating system refused to do `what`.
pub(crate) fn system<E: Into<io::Error>>(what: impl fmt::Display) -> impl FnOnce(E) -> Error {
    move |source| {
        let source: io::Error = source.into();
        Error(format!("cannot {what}: {source}"))
    }
}

/// For `map_err`: the server refused to do `what`.
pub(crate) fn sql(what: impl fmt::Display) -> impl FnOnce(postgres::Error) -> Error {
    move |source| {
        // The driver's own message is only "db error"; the server's words are its source.
        let words = source.as_db_error().map(ToString::to_string);
        let words = words.unwrap_or_else(|| source.to_string());
        Error(format!("cannot {what}: {words}"))
    }
}
