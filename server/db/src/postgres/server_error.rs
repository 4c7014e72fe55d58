//! The server's error message, read by the driver or by the pipeline of reads.

use std::error::Error as _;
use std::fmt::Write as _;

use tokio_postgres::error::{DbError, ErrorPosition};

use super::feed::reader::Reader;
use crate::SqlError;

/// An error of the server. What it names of rows is in the detail alone, which does not go into
/// every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The SQLSTATE.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) position: Option<Position>,
    /// Action of the server, such as reading `$2`.
    pub(crate) context: Option<String>,
    /// The column and the constraint that the error is about.
    pub(crate) column: Option<String>,
    pub(crate) constraint: Option<String>,
    /// The function in the server's source.
    pub(crate) routine: Option<String>,
}

/// The place of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The character of the statement, from 1.
    Statement(u32),
    /// In a statement that the server made itself, such as one of a function.
    Inner,
}

impl ServerError {
    /// Reads an ErrorResponse. What is cut short or unknown is left out: an error stays one.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut error = Self::default();
        let mut reader = Reader(body);
        while let Some(kind) = reader.u8().filter(|kind| *kind != 0) {
            let Some(bytes) = reader.until_zero() else {
                break;
            };
            let text = String::from_utf8_lossy(bytes).into_owned();
            match kind {
                b'C' => error.code = text,
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                b'P' => error.position = text.parse().ok().map(Position::Statement),
                b'p' => error.position = error.position.or(Some(Position::Inner)),
                b'W' => error.context = Some(text),
                b'c' => error.column = Some(text),
                b'n' => error.constraint = Some(text),
                b'R' => error.routine = Some(text),
                _ => {}
            }
        }
        error
    }

    /// PostgreSQL's sentence with its detail.
    pub(crate) fn sentence(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.message),
            None => self.message.clone(),
        }
    }

    /// The first two characters of the SQLSTATE.
    pub(crate) fn class(&self) -> &str {
        self.code.get(..2).unwrap_or_default()
    }

    /// True if this very function of the server has refused.
    pub(crate) fn is_by(&self, routine: &str) -> bool {
        self.routine.as_deref() == Some(routine)
    }
}

impl From<&DbError> for ServerError {
    fn from(error: &DbError) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            code: error.code().code().to_owned(),
            message: error.message().to_owned(),
            detail: owned(error.detail()),
            hint: owned(error.hint()),
            position: error.position().map(|position| match position {
                ErrorPosition::Original(character) => Position::Statement(*character),
                ErrorPosition::Internal { .. } => Position::Inner,
            }),
            context: owned(error.where_()),
            column: owned(error.column()),
            constraint: owned(error.constraint()),
            routine: owned(error.routine()),
        }
    }
}

/// Why a statement failed; the driver or the pipeline of reads has sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// The server has refused it.
    Server(Box<ServerError>),
    /// The connection does not serve any more; a sentence.
    Gone(String),
}

impl DatabaseError {
    pub(crate) fn connection_lost(why: impl std::fmt::Display) -> Self {
        Self::Gone(why.to_string())
    }

    pub(crate) fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::Gone(_) => None,
        }
    }
}

impl From<&tokio_postgres::Error> for DatabaseError {
    fn from(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(error) => Self::Server(Box::new(error.into())),
            None => Self::Gone(chain(error)),
        }
    }
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        (&error).into()
    }
}

/// The driver's sentence with those of its causes; it keeps the useful one last.
pub(crate) fn chain(error: &tokio_postgres::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(message, ": {error}");
        cause = error.source();
    }
    message
}

/// Returns an error of PostgreSQL, or of the connection to it, as one of a statement.
pub(crate) fn refused(error: &tokio_postgres::Error) -> SqlError {
    let said = error.as_db_error();
    SqlError {
        message: said.map_or_else(|| error.to_string(), |said| said.message().to_owned()),
        offset: None,
        hint: said.and_then(|said| said.hint()).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"SERROR\0VERROR\0C23505\0Mtwice\0DKey (a)=(secret)\0P17\0Rcheck\0\0";

    #[test]
    fn an_error_has_its_fields_however_it_is_cut() {
        let whole = ServerError {
            code: "23505".to_owned(),
            message: "twice".to_owned(),
            detail: Some("Key (a)=(secret)".to_owned()),
            position: Some(Position::Statement(17)),
            routine: Some("check".to_owned()),
            ..ServerError::default()
        };
        assert_eq!(ServerError::read(BODY), whole);
        assert_eq!(whole.class(), "23");
        assert!(whole.is_by("check"));
        for cut in 0..BODY.len() {
            // Nothing that is not there is made up.
            let error = ServerError::read(&BODY[..cut]);
            assert!(error.code.is_empty() || error.code == whole.code);
            assert!(error.detail.is_none() || error.detail == whole.detail);
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let error = ServerError::read(b"C\xff\xff\0Mbad \xfe\0Pnowhere\0");
        assert_eq!(error.message, "bad \u{fffd}");
        assert_eq!(error.class(), "");
        assert_eq!(error.position, None);
    }
}
