//! Why a command failed, in sentences.

use std::fmt::Display;

use millpond_site::Problem;

use crate::output::{log, note};

/// The end of a command that did not do what it was asked for.
pub(crate) enum CommandFailure {
    /// One thing went wrong.
    Message {
        /// Message as a sentence without a full stop.
        message: String,
        /// Remedy.
        hint: Option<String>,
        /// True if it is a mistake on the command line.
        is_usage: bool,
    },
    /// The site folder is not in order.
    Problems(Vec<Problem>),
}

pub(crate) type CommandResult<T = ()> = Result<T, CommandFailure>;

impl CommandFailure {
    /// A failure without advice.
    pub(crate) fn new(message: impl Display) -> Self {
        Self::Message {
            message: message.to_string(),
            hint: None,
            is_usage: false,
        }
    }

    /// A mistake on the command line.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::Message {
            message: message.to_string(),
            hint: None,
            is_usage: true,
        }
    }

    /// The exit status of the program.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Message { is_usage: true, .. } => 2,
            _ => 1,
        }
    }

    /// Adds advice to the failure.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Message {
                message, is_usage, ..
            } => Self::Message {
                message,
                hint: Some(hint.into()),
                is_usage,
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
        self.lines().iter().for_each(note);
    }

    /// Says it in the log of a running server.
    pub(crate) fn log(&self) {
        self.lines().iter().for_each(log);
    }

    fn lines(&self) -> Vec<String> {
        match self {
            Self::Message { message, hint, .. } => {
                let hint = hint.iter().map(|hint| format!("  hint: {hint}"));
                [format!("error: {message}")]
                    .into_iter()
                    .chain(hint)
                    .collect()
            }
            Self::Problems(problems) => problems
                .iter()
                .map(|problem| format!("error: {problem}"))
                .collect(),
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
