//! Standard output and standard error.
//!
//! A reader that goes away (`millpond check | head`) is no error, and no panic as with `println!`.
//! Lines of a running server are text for people, or JSON lines (`log.format`).

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use std::{fs, process};

use serde_json::json;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::failure::{CommandFailure, CommandResult};

/// Writes a line to standard output, at once even into a pipe.
pub(crate) fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", shown(line, false)).and_then(|()| out.flush());
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

/// Writes a file beside the one with this name, and renames it.
pub(crate) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.metadata().is_ok_and(|file| !file.is_file()) {
        return fs::write(path, text);
    }
    let mut draft = path.clone().into_os_string();
    draft.push(format!(".{}", process::id()));
    let mut file = match fs::File::create_new(&draft) {
        // A process of this number was ended while it wrote.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&draft)?;
            fs::File::create_new(&draft)?
        }
        created => created?,
    };
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    let written = written.and_then(|()| fs::rename(&draft, &path));
    written.inspect_err(|_| drop(fs::remove_file(&draft)))
}

/// True if what the server says is JSON lines.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Makes what follows JSON lines, also panics, or text again.
pub(crate) fn write_json(is_json: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
    match is_json {
        true => std::panic::set_hook(Box::new(|panic| log(format_args!("error: {panic}")))),
        // That of the standard library again.
        false => drop(std::panic::take_hook()),
    }
}

/// Writes a line of a running server to standard error, with the time (RFC 3339, in UTC).
pub(crate) fn log(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(line, true));
}

/// Beginnings of what sites say when nothing is wrong.
const GOOD: [&str; 5] = [
    "applied ",
    "changed, ",
    "the database is back",
    "the faults of the site folder are mended",
    "the site is open",
];

/// Returns a line as text, or as JSON by the log data model of OpenTelemetry: what stands before
/// its first colon says how serious it is.
fn shown(line: impl Display, has_time: bool) -> String {
    let (now, line) = (stamp(base_clock::wall()), line.to_string());
    if !IS_JSON.load(Ordering::Relaxed) {
        return if has_time {
            format!("{now} {line}")
        } else {
            line
        };
    }
    let line = line.trim();
    let (severity, number, body) = match line.split_once(": ") {
        Some(("error", body)) => ("ERROR", 17, body),
        Some(("warning", body)) => ("WARN", 13, body),
        Some(("note" | "hint", body)) => ("INFO", 9, body),
        // Of a site: nearly always something is wrong.
        Some(("millpond", body)) => match GOOD.iter().any(|good| body.starts_with(good)) {
            true => ("INFO", 9, body),
            false => ("WARN", 13, body),
        },
        _ => ("INFO", 9, line),
    };
    let line = json!({
        "timestamp": now,
        "severity_text": severity,
        "severity_number": number,
        "body": body,
        "service.name": "millpond",
    });
    line.to_string()
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
    let _ = writeln!(io::stderr().lock(), "{}", shown(line, false));
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
