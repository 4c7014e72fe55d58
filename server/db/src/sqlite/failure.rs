//! SQLite's errors as those of this crate.

use rusqlite::{ErrorCode, ffi};

use crate::value::MAX_RESULT;
use crate::{ConstraintKind, Error, Violated, foreign_key};

impl Error {
    /// Classifies SQLite's error for the statement `sql`.
    pub(crate) fn from_sqlite(error: &rusqlite::Error, sql: &str) -> Self {
        let message = sentence(error);
        let Some(code) = error.sqlite_error() else {
            return Self::Sql {
                message,
                sql: sql.into(),
            };
        };
        match code.code {
            ErrorCode::ConstraintViolation => Self::Constraint {
                kind: constraint(code.extended_code, sql),
                violated: Violated::of_sqlite(&message),
                message,
                sql: sql.into(),
            },
            ErrorCode::OperationInterrupted => Self::Timeout {
                sql: Some(sql.into()),
            },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked { waited: None },
            ErrorCode::CannotOpen
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::OutOfMemory => Self::Unavailable { message },
            ErrorCode::TooBig => Self::TooLarge { limit: MAX_RESULT },
            _ => Self::Sql {
                message,
                sql: sql.into(),
            },
        }
    }
}

fn constraint(extended_code: i32, sql: &str) -> ConstraintKind {
    match extended_code {
        ffi::SQLITE_CONSTRAINT_UNIQUE => ConstraintKind::Unique,
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            ConstraintKind::PrimaryKey
        }
        // One code for both ends of the key.
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => foreign_key::violated_by(sql),
        ffi::SQLITE_CONSTRAINT_CHECK => ConstraintKind::Check,
        ffi::SQLITE_CONSTRAINT_NOTNULL => ConstraintKind::NotNull,
        _ => ConstraintKind::Other,
    }
}

/// SQLite's own message, without the statement that rusqlite appends.
pub(crate) fn sentence(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. }
        | rusqlite::Error::SqliteFailure(_, Some(msg)) => msg.clone(),
        other => other.to_string(),
    }
}
