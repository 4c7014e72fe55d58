//! Why a command failed, in sentences.

use std::fmt::Display;

use millpond_site::Problem;

use crate::output::note;

/// The end of a command that did not do what it was asked for.
pub(crate) enum CommandFailure {
    /// One thing went wrong.
    Message {
        /// What, as a sentence without a full stop.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The site folder is not in order.
    Problems(Vec<Problem>),
}

/// What a command gives back.
pub(crate) type CommandResult<T = ()> = Result<T, CommandFailure>;

impl CommandFailure {
    /// A failure without advice.
    pub(crate) fn new(message: impl Display) -> Self {
        Self::Message {
            message: message.to_string(),
            hint: None,
        }
    }

    /// The same failure with advice.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Message { message, .. } => Self::Message {
                message,
                hint: Some(hint.into()),
            },
            other => other,
        }
    }

    /// The number of errors that it is.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Message { .. } => 1,
            Self::Problems(problems) => problems.len(),
        }
    }

    /// Says it on standard error.
    pub(crate) fn print(&self) {
        match self {
            Self::Message { message, hint } => {
                note(format_args!("error: {message}"));
                if let Some(hint) = hint {
                    note(format_args!("  hint: {hint}"));
                }
            }
            Self::Problems(problems) => problems
                .iter()
                .for_each(|problem| note(format_args!("error: {problem}"))),
        }
    }
}

impl From<Vec<Problem>> for CommandFailure {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Problems(problems)
    }
}

impl From<Problem> for CommandFailure {
    fn from(problem: Problem) -> Self {
        Self::Problems(vec![problem])
    }
}
