//! Sorts what PostgreSQL and the driver say into [`crate::Error`] and [`SqlError`].

use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::Arc;

use tokio_postgres::error::{DbError, ErrorPosition, SqlState};

use super::sql::{Rewritten, byte_at};
use crate::{ConstraintKind, Error, SqlError};

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

/// PostgreSQL's sentence with its detail.
pub(crate) fn sentence(error: &DbError) -> String {
    match error.detail() {
        Some(detail) => format!("{} ({detail})", error.message()),
        None => error.message().to_owned(),
    }
}

/// Whether the connection is of no more use: what was sent last may or may not have been carried out.
pub(crate) fn is_lost(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        None => true,
        Some(error) => matches!(class(error), "08" | "57" | "58" | "XX") && !is_cancelled(error),
    }
}

fn is_cancelled(error: &DbError) -> bool {
    *error.code() == SqlState::QUERY_CANCELED
}

/// Two transactions were in each other's way; trying again may do.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE)
        || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// The statement was prepared for a schema that has changed: `cached plan must not change result type`.
pub(crate) fn is_outdated(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_some_and(|error| {
        let code = error.code();
        let planned = *code == SqlState::FEATURE_NOT_SUPPORTED
            && error.routine() == Some("RevalidateCachedQuery");
        // A column is gone on which a statement with casts counts.
        let counted = *code == SqlState::INVALID_COLUMN_REFERENCE;
        planned || counted || *code == SqlState::INVALID_SQL_STATEMENT_NAME
    })
}

/// The first two characters of the SQLSTATE.
fn class(error: &DbError) -> &str {
    error.code().code().get(..2).unwrap_or_default()
}

/// Sorts the error of a statement that ran. `names` are those of its parameters.
pub(crate) fn sort(
    error: &tokio_postgres::Error,
    sql: &Arc<str>,
    names: &[String],
    place: &str,
) -> Error {
    let Some(error) = error.as_db_error() else {
        return Error::unavailable(format!("{place}: {}", chain(error)));
    };
    let code = error.code();
    if let Some(kind) = ConstraintKind::of_state(code.code()) {
        // Its detail has the row that was refused, and with it what nobody should read in a log, such as the hash of a password.
        let message = error.message().to_owned();
        return Error::Constraint { kind, message };
    }
    let message = sentence(error);
    if *code == SqlState::QUERY_CANCELED || *code == SqlState::LOCK_NOT_AVAILABLE {
        return Error::Timeout;
    }
    if takes_no_writes(error) {
        return Error::unavailable(format!(
            "{place} takes no writes now ({message}); a standby or a read-only server stands there"
        ));
    }
    match class(error) {
        "08" | "53" | "57" | "58" | "XX" => Error::unavailable(format!("{place}: {message}")),
        "22" => match parameter(error, names) {
            Some(name) => Error::Parameter {
                name: name.to_owned(),
                message,
            },
            None => Error::Sql {
                message,
                sql: Arc::clone(sql),
            },
        },
        _ => Error::Sql {
            message,
            sql: Arc::clone(sql),
        },
    }
}

/// A transaction that writes was refused: as such, or by its first statement on a standby ("cannot set transaction read-write
/// mode during recovery").
fn takes_no_writes(error: &DbError) -> bool {
    let refused_by_a_standby = *error.code() == SqlState::FEATURE_NOT_SUPPORTED
        && error.routine() == Some("call_bool_check_hook");
    *error.code() == SqlState::READ_ONLY_SQL_TRANSACTION || refused_by_a_standby
}

/// Which parameter could not be read: the context says `unnamed portal parameter $2 = '…'`, in whatever language.
fn parameter<'a>(error: &DbError, names: &'a [String]) -> Option<&'a str> {
    let context = error.where_()?;
    // Errors within the statement have no context, those in functions and COPY have others.
    let bound = error.routine() != Some("exec_simple_query") && error.position().is_none();
    let after = &context[context.find('$')? + 1..];
    let digits = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    let number: usize = after[..digits].parse().ok().filter(|_| bound)?;
    names.get(number.checked_sub(1)?).map(String::as_str)
}

/// Why a statement was refused when it was prepared, with the place in the owner's text. The text that the server got has
/// `shift` characters before the statement's own.
pub(crate) fn refused(
    error: &tokio_postgres::Error,
    rewritten: &Rewritten,
    shift: u32,
) -> SqlError {
    let Some(error) = error.as_db_error() else {
        return SqlError {
            message: chain(error),
            offset: None,
            hint: None,
        };
    };
    let offset = match error.position() {
        Some(ErrorPosition::Original(character)) if *character > shift => {
            Some(rewritten.place(character - shift))
        }
        _ => None,
    };
    SqlError {
        message: sentence(error),
        offset,
        hint: hint(error),
    }
}

/// PostgreSQL's advice, or ours where it has none.
fn hint(error: &DbError) -> Option<String> {
    let ours = || match class(error) {
        "42" if *error.code() == SqlState::INDETERMINATE_DATATYPE => {
            Some("say what the parameter is, as in :name::integer")
        }
        _ => None,
    };
    error
        .hint()
        .map(str::to_owned)
        .or_else(|| ours().map(str::to_owned))
}

/// The byte of a script at which it went wrong, where PostgreSQL says so.
pub(crate) fn place_in(error: &tokio_postgres::Error, script: &str) -> Option<usize> {
    match error.as_db_error()?.position()? {
        ErrorPosition::Original(character) => Some(byte_at(script, *character)),
        ErrorPosition::Internal { .. } => None,
    }
}

impl ConstraintKind {
    /// By SQLSTATE, class 23.
    fn of_state(code: &str) -> Option<Self> {
        Some(match code {
            "23505" => Self::Unique,
            "23503" => Self::ForeignKey,
            "23514" => Self::Check,
            "23502" => Self::NotNull,
            // What a trigger or a function raises by itself (`raise exception`), and whatever else class 23 has.
            "P0001" => Self::Other,
            _ if code.starts_with("23") => Self::Other,
            _ => return None,
        })
    }
}
