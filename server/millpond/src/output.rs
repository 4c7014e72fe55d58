//! Standard output and standard error.
//!
//! A reader that goes away (`millpond check | head`) is no error, and no panic as with `println!`.

use std::fmt::Display;
use std::io::{self, Write as _};

use crate::failure::{CommandFailure, CommandResult};

/// Writes a line to standard output, at once even into a pipe.
pub(crate) fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a result to standard output: a full disk is a failure, a closed pipe is not.
pub(crate) fn write_out(text: &str) -> CommandResult {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandFailure::new(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Writes a line for people to standard error, so that it is not part of the result.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
