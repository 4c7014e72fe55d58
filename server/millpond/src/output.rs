//! Standard output and standard error.
//!
//! A reader that goes away (`millpond check | head`) is no error, and no panic as with `println!`.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::time::SystemTime;

use time::OffsetDateTime;
use time::macros::format_description;

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

/// Writes a line of a running server to standard error, with the time (RFC 3339, in UTC).
pub(crate) fn log(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{} {line}", stamp(base_clock::wall()));
}

fn stamp(moment: SystemTime) -> String {
    let format =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    // A year that has no four digits has no such form.
    OffsetDateTime::from(moment)
        .format(format)
        .unwrap_or_default()
}

/// Writes a line for people to standard error, so that it is not part of the result.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_of_the_log_begins_with_the_time() {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_564_805_007);
        assert_eq!(stamp(moment), "2026-11-25T00:00:05.007Z");
    }
}
