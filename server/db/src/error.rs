//! The errors of a database: variants for the caller, messages for the owner's log.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Violated;

/// Why a read, a write or a migration failed. The messages contain SQL and paths: they are for the
/// owner's log, never for a client.
#[derive(Clone, Debug)]
pub enum Error {
    /// The queue is full: the caller should answer 503 with Retry-After.
    Overloaded,
    /// A write would have violated a constraint; it was rolled back.
    Constraint {
        /// Kind of the constraint.
        kind: ConstraintKind,
        /// SQLite's message, which names the table and the columns.
        message: String,
        /// Constraint that the message names.
        violated: Violated,
        /// The statement; the one that commits for a constraint that is deferred.
        sql: Arc<str>,
    },
    /// A step that expects a row ([`crate::Expect::One`], or a step whose column a later step
    /// binds) returned none; the write was rolled back.
    NoRow {
        /// The index of the step that returned no row.
        step: usize,
    },
    /// A statement ran longer than [`crate::SqliteOptions::statement_timeout`], or a server did not
    /// answer for as long.
    Timeout {
        /// The statement, if it is known which one.
        sql: Option<Arc<str>>,
    },
    /// Another program holds a lock that is needed.
    Locked {
        /// How long it was waited for: [`crate::SqliteOptions::busy_timeout`], for a transaction
        /// that writes.
        waited: Option<Duration>,
    },
    /// The server refuses the user or the password, which does not mend itself.
    Login {
        /// Message of the server.
        message: String,
    },
    /// The result is larger than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// SQLite refused a statement.
    Sql {
        /// SQLite's message.
        message: String,
        /// The statement.
        sql: Arc<str>,
    },
    /// A migration failed and was rolled back. Earlier migrations stay applied.
    Migration {
        /// The migration's name.
        name: String,
        /// The line of the failing statement or token, from 1.
        line: usize,
        /// Its column, from 1.
        column: usize,
        /// Description of the fault.
        message: String,
    },
    /// An applied migration was edited afterwards.
    MigrationChanged {
        /// The migration's name.
        name: String,
    },
    /// The caller gave the wrong number of parameters, or named a column that the step does not
    /// have.
    Usage {
        /// Description of the fault.
        message: String,
    },
    /// A value does not fit the type of its parameter: the caller should answer 400 and name it.
    Parameter {
        /// The parameter's name.
        name: String,
        /// Description of the value's fault, to stand after the name: `must be a whole number`.
        message: String,
        /// The database's own message, for the owner's log: it may quote the value. None if the
        /// value never got there.
        reported: Option<String>,
    },
    /// The statement failed at a value that it was given: the caller should answer 400. Examples
    /// are a text that is no search expression, and a number that overflows.
    Value {
        /// The names of the statement's parameters: which of their values it was is not known.
        names: Vec<String>,
        /// The database's message.
        message: String,
        /// The statement.
        sql: Arc<str>,
    },
    /// The database cannot be used now: the file is missing, damaged or on a failing disk, or the
    /// program is stopping.
    Unavailable {
        /// Description of the fault.
        message: String,
    },
    /// The connection was lost while a write was committed: it is not known whether it was.
    OutcomeUnknown {
        /// Description of the fault.
        message: String,
    },
}

/// The constraint that a write would have violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    /// UNIQUE.
    Unique,
    /// PRIMARY KEY, or the rowid.
    PrimaryKey,
    /// FOREIGN KEY: a row would refer to one that does not exist.
    ForeignKey,
    /// FOREIGN KEY: other rows refer to the row that would go.
    StillReferenced,
    /// FOREIGN KEY: one of both; the database does not say which.
    EitherReference,
    /// CHECK.
    Check,
    /// NOT NULL.
    NotNull,
    /// A policy of PostgreSQL's row security: this role may not write such a row.
    Policy,
    /// Any other constraint, such as a trigger's RAISE or the type of a STRICT table.
    Other,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded => f.write_str("the database's queue is full"),
            Self::Constraint { message, .. } => write!(f, "a constraint is violated: {message}"),
            Self::NoRow { step } => {
                write!(f, "statement {} gave no row where one is needed", step + 1)
            }
            Self::Timeout { sql: None } => {
                f.write_str("the database did not answer within the timeout of a statement")
            }
            Self::Timeout { sql: Some(sql) } => {
                write!(f, "the statement took longer than its timeout: {sql}")
            }
            Self::Locked { waited: None } => {
                f.write_str("the database is locked by another program")
            }
            Self::Locked {
                waited: Some(waited),
            } => write!(
                f,
                "the database is locked: another program has held the lock for writing for more than {waited:?}"
            ),
            Self::Login { message } => f.write_str(message),
            Self::TooLarge { limit } => {
                write!(f, "the result is larger than {limit} bytes; add a LIMIT")
            }
            Self::Sql { message, sql } => write!(f, "{message}, in: {sql}"),
            Self::Migration {
                name,
                line,
                column,
                message,
            } => write!(f, "{name}:{line}:{column}: {message}"),
            Self::MigrationChanged { name } => write!(
                f,
                "migration {name} has been edited since it was applied; restore it, and put the change into a new migration"
            ),
            Self::Usage { message } => f.write_str(message),
            Self::Parameter { name, message, .. } => write!(f, "parameter {name} {message}"),
            Self::Value {
                names,
                message,
                sql,
            } => write!(
                f,
                "a value of {} cannot be used: {message}, in: {sql}",
                names.join(", ")
            ),
            Self::Unavailable { message } | Self::OutcomeUnknown { message } => {
                write!(f, "the database is unavailable: {message}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The statement that failed, if the error is one of a statement.
    #[must_use]
    pub fn sql(&self) -> Option<&str> {
        match self {
            Self::Sql { sql, .. }
            | Self::Value { sql, .. }
            | Self::Constraint { sql, .. }
            | Self::Timeout { sql: Some(sql) } => Some(sql),
            _ => None,
        }
    }

    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::Unavailable {
            message: message.to_string(),
        }
    }

    pub(crate) fn stopping() -> Self {
        Self::unavailable("it is stopping")
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
        }
    }
}

/// Why a statement could not be prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The message of SQLite, or of this crate.
    pub message: String,
    /// The byte offset of the error in the statement, if it is known.
    pub offset: Option<usize>,
    /// How to fix the statement.
    pub hint: Option<String>,
}

impl SqlError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            offset: None,
            hint: None,
        }
    }

    pub(crate) fn no_query(message: &str) -> Self {
        Self::new(message).with_hint("write one SELECT, INSERT, UPDATE or DELETE")
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { hint, ..self }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlError {}
