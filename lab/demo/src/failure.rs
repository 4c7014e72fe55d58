//! Why the demo failed, in sentences.

use std::fmt::Display;

use millpond_site::Problem;

use crate::output::note;

/// A failure with an optional remedy.
#[derive(Debug)]
pub(crate) struct DemoFailure {
    message: String,
    hint: Option<String>,
}

/// The result of a part of the demo.
pub(crate) type DemoResult<T = ()> = Result<T, DemoFailure>;

impl DemoFailure {
    /// A failure without a remedy; `message` is a sentence without a full stop.
    pub(crate) fn new(message: impl Display) -> Self {
        Self {
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds a remedy to the failure.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Writes the failure to standard error.
    pub(crate) fn print(&self) {
        note(format_args!("error: {}", self.message));
        if let Some(hint) = &self.hint {
            note(format_args!("  hint: {hint}"));
        }
    }
}

impl From<Vec<Problem>> for DemoFailure {
    fn from(problems: Vec<Problem>) -> Self {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Self::new(lines.join("\nerror: "))
    }
}

impl From<Problem> for DemoFailure {
    fn from(problem: Problem) -> Self {
        Self::new(problem)
    }
}
