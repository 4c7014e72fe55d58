//! Why a query gives no rows.

use std::fmt;
use std::io::Write as _;

use millpond_db::{ConstraintKind, Error, SqlError, Violated};

use crate::error::debug_as_display;
use crate::failure::Failure;
use crate::response::{IntoResponse, Response};

/// Message for a client while the database is away, or took too long.
const NO_RESPONSE: &str = "the database does not respond, try again";

/// Why a query gives no rows, or a write does nothing. Its text is for the owner: it names the
/// statement.
///
/// As a [`Failure`] it is what the client may know: 503 if the database has too much to do, is away
/// or took too long, 409 for a violated UNIQUE or FOREIGN KEY or another constraint between rows,
/// 400 for a value that the statement cannot use or that violates CHECK or NOT NULL, otherwise 500.
/// The cause of a 500 is written to standard error; so is, once, that the database is away and that
/// it is back, and at most once a second that a statement took too long.
#[derive(Clone)]
pub struct QueryError {
    status: u16,
    message: String,
    /// Message for the client, where it is more than the status.
    shown: Option<String>,
}

impl QueryError {
    /// A mistake of the program.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            status: 500,
            message: message.into(),
            shown: None,
        }
    }

    /// A statement that cannot be prepared.
    pub(super) fn refused(error: &SqlError, sql: &str) -> Self {
        let place = error.offset.and_then(|offset| sql.get(..offset));
        let place = place.map_or_else(String::new, |before| {
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default();
            format!(" at line {line}, column {}", column.chars().count() + 1)
        });
        Self::usage(format!("{error}{place}, in: {sql}"))
    }

    /// A number that the databases cannot hold.
    pub(super) fn too_large(name: &str, sql: &str) -> Self {
        let shown = format!("{name} must be at most {}", i64::MAX);
        Self {
            status: 400,
            message: format!("the value of {shown}, in: {sql}"),
            shown: Some(shown),
        }
    }

    /// The rows of an earlier read changed.
    pub(super) fn torn() -> Self {
        Self {
            status: 503,
            message: "the rows of an earlier query of this page have changed".to_owned(),
            shown: None,
        }
    }

    /// The status of the answer that it makes.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }
}

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        let (status, shown) = match &error {
            Error::Overloaded => (503, None),
            Error::Timeout { .. } | Error::Locked { .. } | Error::Unavailable { .. } => {
                (503, Some(NO_RESPONSE.to_owned()))
            }
            Error::Constraint { kind, violated, .. } => {
                let (status, sentence) = constraint(*kind, violated);
                (status, Some(sentence))
            }
            Error::Parameter { name, message, .. } => (400, Some(format!("{name} {message}"))),
            Error::Value { names, .. } => {
                let names = names.join(", ");
                (400, Some(format!("a value cannot be used: {names}")))
            }
            _ => (500, None),
        };
        // Other errors of a statement name it.
        let sql = match &error {
            Error::Constraint { sql, .. } => format!(", in: {sql}"),
            _ => String::new(),
        };
        Self {
            status,
            message: format!("{error}{sql}"),
            shown,
        }
    }
}

/// The status of a violated constraint, and a sentence. What no other row could mend is the value's
/// own fault: 400.
fn constraint(kind: ConstraintKind, violated: &Violated) -> (u16, String) {
    let columns = violated.columns.join(", ");
    match kind {
        ConstraintKind::NotNull => (400, format!("a value is missing: {columns}")),
        ConstraintKind::Check => (400, "a value is not one that is allowed".to_owned()),
        ConstraintKind::Policy => (403, "this may not be written".to_owned()),
        // The type of a STRICT table, which is no constraint with a name, as EXCLUDE is.
        ConstraintKind::Other if !columns.is_empty() && violated.constraint.is_none() => {
            (400, format!("a value cannot be used: {columns}"))
        }
        _ => (409, "this contradicts what is there already".to_owned()),
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

debug_as_display!(QueryError);

impl std::error::Error for QueryError {}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        match error.status {
            503 => match error.shown {
                Some(shown) => Self::busy().with_message(shown),
                None => Self::busy(),
            },
            500 => {
                // A closed standard error is no reason to panic.
                let _ = writeln!(std::io::stderr(), "millpond: {error}");
                Self::new(500, "internal server error")
            }
            status => Self::new(status, error.shown.unwrap_or_default()),
        }
    }
}

impl IntoResponse for QueryError {
    fn into_response(self) -> Response {
        Failure::from(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_told_the_statement_once() {
        let sql: std::sync::Arc<str> = "select 1".into();
        let message = "no".to_owned();
        let late = Error::Timeout {
            sql: Some(sql.clone()),
        };
        let constraint = Error::Constraint {
            kind: ConstraintKind::Unique,
            message: message.clone(),
            violated: Violated::default(),
            sql: sql.clone(),
        };
        let refused = Error::Sql {
            message: message.clone(),
            sql: sql.clone(),
        };
        let value = Error::Value {
            names: vec!["id".to_owned()],
            message,
            sql,
        };
        for (error, status) in [(late, 503), (constraint, 409), (refused, 500), (value, 400)] {
            let error = QueryError::from(error);
            assert_eq!(error.status(), status, "{error}");
            assert_eq!(error.to_string().matches("select 1").count(), 1, "{error}");
        }
    }
}
