//! Standard output and the progress line.
//!
//! A reader that goes away (`millpond check | head`) is no error, and no panic as with `println!`.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use crate::failure::{CommandResult, Failure};

/// Writes a line to standard output, at once even into a pipe.
pub(crate) fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a result that is read back later. A full disk is a failure, a reader that went away is
/// not.
pub(crate) fn write_out(text: &str) -> CommandResult {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// Writes a line to standard error: for people, beside the result.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// One line on a terminal that is overwritten again and again. Shows nothing if standard error is
/// no terminal.
pub(crate) struct Progress {
    to: To,
}

/// Stream on which progress is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Terminal,
    /// A file or a pipe: only lines that stay.
    Log,
    Nowhere,
}

impl Progress {
    /// On standard error.
    pub(crate) fn new() -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self {
            to: if is_terminal { To::Terminal } else { To::Log },
        }
    }

    /// A line that shows nothing.
    pub(crate) fn silent() -> Self {
        Self { to: To::Nowhere }
    }

    /// Replaces the line.
    pub(crate) fn show(&self, line: impl Display) {
        if self.to == To::Terminal {
            // Cut, not wrapped: a wrapped line cannot be overwritten.
            let line: String = line.to_string().chars().take(79).collect();
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{line}").and_then(|()| err.flush());
        }
    }

    /// A line that stays, if there is no terminal: a log then shows the progress.
    pub(crate) fn log(&self, line: impl Display) {
        if self.to == To::Log {
            note(line);
        }
    }

    /// Clears the line, before other output.
    pub(crate) fn clear(&self) {
        self.show("");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
