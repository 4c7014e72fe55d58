//! Sorts what PostgreSQL and its connections say into [`crate::Error`] and [`SqlError`].

use std::sync::Arc;

pub(crate) use super::server_error::{DatabaseError, chain};
use super::server_error::{Position, ServerError};
use super::sql::{Rewritten, byte_at};
use crate::{ConstraintKind, Error, SqlError, Violated, foreign_key};

/// SQLSTATEs that are looked at one by one.
mod state {
    pub(super) const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub(super) const READ_ONLY_SQL_TRANSACTION: &str = "25006";
    pub(super) const INVALID_SQL_STATEMENT_NAME: &str = "26000";
    pub(super) const SERIALIZATION_FAILURE: &str = "40001";
    pub(super) const DEADLOCK_DETECTED: &str = "40P01";
    pub(super) const INSUFFICIENT_PRIVILEGE: &str = "42501";
    pub(super) const SYNTAX_ERROR: &str = "42601";
    pub(super) const INVALID_COLUMN_REFERENCE: &str = "42P10";
    pub(super) const AMBIGUOUS_PARAMETER: &str = "42P08";
    pub(super) const INDETERMINATE_DATATYPE: &str = "42P18";
    pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(super) const QUERY_CANCELED: &str = "57014";
}

impl ServerError {
    /// True if the connection is of no more use.
    fn ends_connection(&self) -> bool {
        matches!(self.class(), "08" | "57" | "58" | "XX") && self.code != state::QUERY_CANCELED
    }

    /// A transaction that writes was refused: as such, or by its first statement on a standby
    /// ("cannot set transaction read-write mode during recovery").
    fn is_read_only(&self) -> bool {
        self.code == state::READ_ONLY_SQL_TRANSACTION
            || self.code == state::FEATURE_NOT_SUPPORTED && self.is_by("call_bool_check_hook")
    }
}

impl DatabaseError {
    /// True if the connection is of no more use: what was sent last may or may not have been
    /// carried out.
    pub(crate) fn is_lost(&self) -> bool {
        self.server_error().is_none_or(ServerError::ends_connection)
    }

    /// Two transactions were in each other's way; trying again may do.
    pub(crate) fn is_conflict(&self) -> bool {
        let conflicts = [state::SERIALIZATION_FAILURE, state::DEADLOCK_DETECTED];
        self.server_error()
            .is_some_and(|error| conflicts.contains(&error.code.as_str()))
    }

    /// The server has ended the statement: it took too long, or a session cancelled it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.server_error()
            .is_some_and(|error| error.code == state::QUERY_CANCELED)
    }

    /// The statement may be good: it was ended, waited too long for a lock, or was in another's
    /// way, or the server lacked memory or room.
    pub(crate) fn is_passing(&self) -> bool {
        let of_state =
            |error: &ServerError| error.code == state::LOCK_NOT_AVAILABLE || error.class() == "53";
        let passes = self.server_error().is_some_and(of_state);
        passes || self.is_cancelled() || self.is_conflict()
    }

    /// The statement was prepared for a schema that has changed: `cached plan must not change
    /// result type`.
    pub(crate) fn is_outdated(&self) -> bool {
        self.server_error().is_some_and(|error| {
            let planned =
                error.code == state::FEATURE_NOT_SUPPORTED && error.is_by("RevalidateCachedQuery");
            // A column is gone on which a statement with casts counts.
            let counted = error.code == state::INVALID_COLUMN_REFERENCE;
            planned || counted || error.code == state::INVALID_SQL_STATEMENT_NAME
        })
    }

    /// Describes the fault, for the owner.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::Server(error) => error.sentence(),
            Self::Gone(why) => why.clone(),
        }
    }
}

/// True if the connection is of no more use.
pub(crate) fn is_lost(error: &tokio_postgres::Error) -> bool {
    DatabaseError::from(error).is_lost()
}

/// The violation of a constraint, if the error is one, with a message for the owner.
pub(super) fn constraint(error: &ServerError, message: String, sql: &Arc<str>) -> Option<Error> {
    let kind = match ConstraintKind::of_state(&error.code) {
        Some(ConstraintKind::ForeignKey) => foreign_key::violated(&error.message, sql),
        Some(other) => other,
        // A right that the role lacks has the same state, and comes from another routine.
        None if error.code == state::INSUFFICIENT_PRIVILEGE
            && error.is_by("ExecWithCheckOptions") =>
        {
            ConstraintKind::Policy
        }
        None => return None,
    };
    Some(Error::Constraint {
        kind,
        message,
        violated: Violated::of_postgres(
            error.column.as_deref(),
            error.constraint.as_deref(),
            error.detail.as_deref(),
        ),
        sql: Arc::clone(sql),
    })
}

/// Sorts the error of a statement that ran. `names` are those of its parameters.
pub(crate) fn sort(
    trouble: &DatabaseError,
    sql: &Arc<str>,
    names: &[String],
    place: &str,
) -> Error {
    let error = match trouble {
        DatabaseError::Gone(why) => return Error::unavailable(format!("{place}: {why}")),
        DatabaseError::Server(error) => error,
    };
    // Its detail has the row that was refused, and with it values that must not appear in a log,
    // such as the hash of a password.
    if let Some(refused) = constraint(error, error.message.clone(), sql) {
        return refused;
    }
    let message = error.sentence();
    if error.code == state::QUERY_CANCELED {
        let sql = Some(Arc::clone(sql));
        return Error::Timeout { sql };
    }
    if error.code == state::LOCK_NOT_AVAILABLE {
        return Error::Locked { waited: None };
    }
    if error.is_read_only() {
        return Error::unavailable(format!(
            "{place} takes no writes now ({message}); a standby or a read-only server stands there"
        ));
    }
    let sql = Arc::clone(sql);
    match error.class() {
        "08" | "53" | "57" | "58" | "XX" => Error::unavailable(format!("{place}: {message}")),
        "22" => match parameter(error, names) {
            Some(name) => Error::Parameter {
                name: name.to_owned(),
                message: unreadable(&error.code).to_owned(),
                reported: Some(message),
            },
            None if !names.is_empty() => Error::Value {
                names: names.to_vec(),
                message,
                sql,
            },
            None => Error::Sql { message, sql },
        },
        _ if may_be_a_value(error) && !names.is_empty() => Error::Value {
            names: names.to_vec(),
            message,
            sql,
        },
        _ => Error::Sql { message, sql },
    }
}

/// Describes the fault of a value of a request that could not be read, to stand behind the name of
/// its parameter. The server's message names its types and may be in another language.
fn unreadable(code: &str) -> &'static str {
    match code {
        "22001" => "is too long",
        "22003" => "is out of range",
        "22007" | "22008" => "is no valid date or time",
        _ => "does not have the right form",
    }
}

/// True if a statement that was prepared may have failed at a value that it was given. Class 22 is
/// that of data: a number that overflows, a division by zero, an offset below zero, a text that is
/// no regular expression. A text that is no `tsquery` or JSON path is a syntax error that has no
/// position in the statement.
fn may_be_a_value(error: &ServerError) -> bool {
    error.class() == "22" || error.code == state::SYNTAX_ERROR && error.position.is_none()
}

/// Finds the parameter that could not be read: the context says `unnamed portal parameter $2 = '…'`
/// in the language of the server.
fn parameter<'a>(error: &ServerError, names: &'a [String]) -> Option<&'a str> {
    let context = error.context.as_deref()?;
    // Errors within the statement have no context, those in functions and COPY have others.
    let bound = !error.is_by("exec_simple_query") && error.position.is_none();
    let after = &context[context.find('$')? + 1..];
    let digits = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    let number: usize = after[..digits].parse().ok().filter(|_| bound)?;
    names.get(number.checked_sub(1)?).map(String::as_str)
}

/// Why a statement was refused when it was prepared, with the place in the owner's text. The text
/// that the server got has `shift` characters before the statement's own.
pub(crate) fn refused(
    error: &tokio_postgres::Error,
    rewritten: &Rewritten,
    shift: u32,
) -> SqlError {
    let trouble = DatabaseError::from(error);
    let offset = match trouble.server_error().and_then(|error| error.position) {
        Some(Position::Statement(character)) if character > shift => {
            Some(rewritten.place(character - shift))
        }
        _ => trouble
            .server_error()
            .and_then(|error| untyped(error, rewritten)),
    };
    SqlError {
        message: trouble.sentence(),
        offset,
        hint: trouble.server_error().and_then(hint),
    }
}

/// Finds the first place of the parameter whose type PostgreSQL does not find, as `$1` of its
/// message; the message gives no place.
fn untyped(error: &ServerError, rewritten: &Rewritten) -> Option<usize> {
    if error.code != state::INDETERMINATE_DATATYPE {
        return None;
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let after = &error.message[error.message.find('$')? + 1..];
    let number = &after[..after.find(|c| !is_digit(c)).unwrap_or(after.len())];
    let sign = format!("${number}");
    let mut places = rewritten.text.match_indices(&sign);
    let (at, _) =
        places.find(|(at, _)| !rewritten.text[at + sign.len()..].starts_with(is_digit))?;
    Some(rewritten.byte(at))
}

/// PostgreSQL's advice, or ours where it has none.
fn hint(error: &ServerError) -> Option<String> {
    let ours = || {
        match error.code.as_str() {
        state::INDETERMINATE_DATATYPE => {
            Some("say what the parameter is, in a line `-- param: name integer` or as :name::integer".to_owned())
        }
        state::AMBIGUOUS_PARAMETER => Some(
            "PostgreSQL takes its type from where it first stands: write (column = :name or :name is null), or give the type there, as in :name::integer"
                .to_owned(),
        ),
        _ => None,
    }
    };
    error.hint.clone().or_else(ours)
}

/// The byte of a script at which it went wrong, where PostgreSQL says so.
pub(crate) fn place_in(error: &tokio_postgres::Error, script: &str) -> Option<usize> {
    match DatabaseError::from(error).server_error()?.position? {
        Position::Statement(character) => Some(byte_at(script, character)),
        Position::Inner => None,
    }
}

/// PostgreSQL's sentence with its detail.
pub(crate) fn sentence(error: &tokio_postgres::error::DbError) -> String {
    ServerError::from(error).sentence()
}

impl ConstraintKind {
    /// By SQLSTATE: class 23, and the check option of a view.
    pub(super) fn of_state(code: &str) -> Option<Self> {
        Some(match code {
            "23505" => Self::Unique,
            "23503" => Self::ForeignKey,
            // ON DELETE RESTRICT, from PostgreSQL 18 on.
            "23001" => Self::StillReferenced,
            "23514" | "44000" => Self::Check,
            "23502" => Self::NotNull,
            // What a trigger or a function raises by itself (`raise exception`), and the rest of
            // class 23.
            "P0001" => Self::Other,
            _ if code.starts_with("23") => Self::Other,
            _ => return None,
        })
    }
}
