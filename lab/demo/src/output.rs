//! Standard output, standard error and the progress line.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

/// Writes a line to standard output and flushes it. A reader that closed the pipe is no error.
pub(crate) fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a line to standard error.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// One line on a terminal that is overwritten. It writes nothing if standard error is no terminal.
pub(crate) struct ProgressLine {
    is_terminal: bool,
}

impl ProgressLine {
    /// A progress line on standard error.
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: io::stderr().is_terminal(),
        }
    }

    /// Replaces the line.
    pub(crate) fn show(&self, line: impl Display) {
        if self.is_terminal {
            // The line is cut: a line that wraps cannot be overwritten.
            let line: String = line.to_string().chars().take(79).collect();
            let mut err = io::stderr().lock();
            let _ = write!(err, "\r\x1b[K{line}").and_then(|()| err.flush());
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.show("");
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}
