//! Why a command failed, in sentences.

use std::fmt::Display;
use std::process::ExitCode;

use millrace_client::Error;

use crate::output::note;

/// Why a command did not succeed.
pub(crate) enum Failure {
    /// One thing went wrong.
    Message {
        /// Message as a sentence without a full stop.
        message: String,
        /// Remedy.
        hint: Option<String>,
    },
    /// The output has the reason; only the exit status is left.
    Said,
    /// An objective was missed, and the output says so: exit status 3.
    Missed,
}

pub(crate) type CommandResult<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure without advice.
    pub(crate) fn new(message: impl Display) -> Self {
        Self::Message {
            message: message.to_string(),
            hint: None,
        }
    }

    /// A measurement that could not be carried out, with advice where there is some.
    pub(crate) fn measuring(error: Error) -> Self {
        let is_unreachable = matches!(error, Error::Unreachable { .. });
        let failure = Self::new(error);
        match is_unreachable {
            true => failure.hint("start the server, or correct the URL or --connect-to"),
            false => failure,
        }
    }

    /// Adds advice to the failure.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Message { message, .. } => Self::Message {
                message,
                hint: Some(hint.into()),
            },
            other => other,
        }
    }

    /// The exit status of the program: 1, or 3 for an objective that was missed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Missed => ExitCode::from(3),
            Self::Message { .. } | Self::Said => ExitCode::FAILURE,
        }
    }

    /// Prints the failure to standard error.
    pub(crate) fn print(&self) {
        match self {
            Self::Message { message, hint } => {
                note(format_args!("error: {message}"));
                if let Some(hint) = hint {
                    note(format_args!("  hint: {hint}"));
                }
            }
            Self::Said | Self::Missed => {}
        }
    }
}
