//! The rules that no compiler checks. Each message says what to do instead.

mod conformance;
mod crates;
mod edges;
mod files;
mod text;

use std::{fmt, path::PathBuf};

use crate::root;

/// A broken rule.
#[derive(Debug, PartialEq)]
pub(crate) struct Offence {
    /// Relative to the workspace.
    file: PathBuf,
    /// From 1; 0 is the file as a whole.
    line: usize,
    what: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.what),
        }
    }
}

/// Holds every rule against every file.
pub(crate) fn check() -> Result<(), String> {
    let files = files::all(&root()).map_err(|error| format!("the project's files: {error}"))?;
    let mut offences = edges::check(&files);
    offences.extend(conformance::check(&files));
    offences.extend(crates::check(&files));
    for file in &files {
        offences.extend(text::check(file));
    }
    if offences.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = offences.iter().map(Offence::to_string).collect();
    Err(format!(
        "{} broken rules\n{}",
        lines.len(),
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    /// So that `cargo test` alone finds them too.
    #[test]
    fn the_project_is_tidy() {
        if let Err(offences) = super::check() {
            panic!("{offences}");
        }
    }
}
