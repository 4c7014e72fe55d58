//! Results that a measuring command has stored as JSON.

use std::fs;
use std::path::Path;

use base_probe::Probe;
use millrace_report::StoredResult;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::failure::{CommandResult, Failure};

/// The largest file that is read. A run has some hundred kilobytes, a long sweep some tens of
/// megabytes.
const LARGEST: u64 = 1 << 30;

/// The keys that distinguish the kinds of result.
#[derive(Deserialize)]
struct Shape {
    #[serde(rename = "loop")]
    kind: Option<IgnoredAny>,
    ladder: Option<IgnoredAny>,
    trials: Option<IgnoredAny>,
    baseline: Option<IgnoredAny>,
    servers: Option<IgnoredAny>,
    remarks: Option<IgnoredAny>,
}

/// Reads a result. Its content shows its kind.
pub(crate) fn read(path: &Path) -> CommandResult<StoredResult> {
    let bytes = bytes_of(path)?;
    found(&bytes).map_err(|trouble| match trouble {
        Trouble::Json(error) => misread(path, &error),
        Trouble::Unknown => Failure::new(format!(
            "{}:1:1: this is no result of a measuring command",
            path.display()
        ))
        .hint(
            "give files that --json of load, sweep, capacity, compare or lab has written; samples of a probe go with --probe",
        ),
    })
}

/// Reads what a probe has stored.
pub(crate) fn read_probe(path: &Path) -> CommandResult<Probe> {
    let bytes = bytes_of(path)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(format!(
            "{} has no samples of a probe: {error}",
            path.display()
        ))
        .hint("give a file that `millrace load --probe-only --json` of this version has written")
    })
}

fn bytes_of(path: &Path) -> CommandResult<Vec<u8>> {
    let cannot = |error: &dyn std::fmt::Display| {
        Failure::new(format!("cannot read {}: {error}", path.display()))
    };
    let about = fs::metadata(path).map_err(|error| cannot(&error))?;
    if !about.is_file() {
        return Err(cannot(&"it is no file"));
    }
    if about.len() > LARGEST {
        return Err(cannot(&"it has more than a gigabyte, which no result has"));
    }
    fs::read(path).map_err(|error| cannot(&error))
}

enum Trouble {
    Json(serde_json::Error),
    Unknown,
}

fn found(bytes: &[u8]) -> Result<StoredResult, Trouble> {
    let shape: Shape = parse(bytes)?;
    if shape.kind.is_some() {
        return Ok(StoredResult::Run(parse(bytes)?));
    }
    // An experiment has a baseline too.
    if shape.servers.is_some() {
        return Ok(StoredResult::Lab(parse(bytes)?));
    }
    if shape.ladder.is_some() {
        return Ok(StoredResult::Sweep(parse(bytes)?));
    }
    if shape.baseline.is_some() {
        return Ok(StoredResult::Comparison(parse(bytes)?));
    }
    if shape.trials.is_some() {
        return Ok(StoredResult::Capacity(parse(bytes)?));
    }
    if shape.remarks.is_some() {
        return Ok(StoredResult::Diagnosis(parse(bytes)?));
    }
    Err(Trouble::Unknown)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Trouble> {
    serde_json::from_slice(bytes).map_err(Trouble::Json)
}

/// `FILE:LINE:COLUMN: what`, as a compiler says it.
fn misread(path: &Path, error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let place = format!(" at line {line} column {column}");
    let what = text.strip_suffix(&place).unwrap_or(&text);
    Failure::new(format!("{}:{line}:{column}: {what}", path.display())).hint(
        "give files that --json of this version's load, sweep, capacity, compare or lab has written",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match found(text.as_bytes()) {
            Err(Trouble::Json(error)) => error.to_string(),
            Err(Trouble::Unknown) => "unknown".to_owned(),
            Ok(found) => found.kind().to_owned(),
        }
    }

    #[test]
    fn what_is_no_result_is_told_with_its_place() {
        assert_eq!(refused("{}"), "unknown");
        assert_eq!(refused("{\"a\": 1}"), "unknown");
        for (text, word) in [
            ("", "line 1 column 0"),
            ("<html>", "line 1 column 1"),
            ("[1, 2", "line 1"),
            ("{\n \"loop\": \"open\",\n", "line 3"),
            ("{\"loop\": \"open\"}", "missing field"),
            ("{\"ladder\": 3}", "expected a string"),
            (
                "{\"servers\": 3, \"baseline\": \"a\"}",
                "expected a sequence",
            ),
            ("{\"remarks\": []}", "missing field"),
            ("{\"loop\": 1, \"loop\": 2}", "duplicate field"),
        ] {
            assert!(refused(text).contains(word), "{text}: {}", refused(text));
        }
        let deep = "[".repeat(100_000);
        assert!(refused(&deep).contains("line 1"), "no stack overflow");
        let deep = format!("{{\"a\": {}", "[".repeat(100_000));
        assert!(refused(&deep).contains("line 1"));
    }
}
