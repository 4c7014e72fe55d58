//! The rules that no compiler checks. Each message says what to do instead.

mod comments;
mod conformance;
mod crates;
mod edges;
mod files;
mod imports;
mod layers;
mod licences;
mod names;
mod openings;
mod packages;
mod pages;
mod rust_text;
mod text;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{limits, root};
use files::File;

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

/// Finds the offences against one kind of rule.
type Rule = fn(&[File]) -> Vec<Offence>;

const RULES: [Rule; 13] = [
    edges::check,
    layers::check,
    conformance::check,
    crates::check,
    |files| files.iter().flat_map(text::check).collect(),
    comments::widths,
    comments::words,
    openings::check,
    names::check,
    |_| packages::sources(),
    |_| packages::programs(),
    limits_page,
    pages::check,
];

/// `docs/reference/limits.md` has the values that the code has.
fn limits_page(files: &[File]) -> Vec<Offence> {
    let is_page = |file: &&File| file.path == Path::new(limits::PAGE);
    let written = files.iter().find(is_page).map(|file| file.text.as_str());
    let what = match limits::page(&sources(files)) {
        Ok(page) if Some(page.as_str()) == written => return Vec::new(),
        Ok(_) => "differs from the code; run cargo xtask limits and read the difference".to_owned(),
        Err(reason) => reason,
    };
    vec![Offence {
        file: limits::PAGE.into(),
        line: 0,
        what,
    }]
}

/// Writes `docs/reference/limits.md`.
pub(crate) fn write_limits() -> Result<(), String> {
    let page = limits::page(&sources(&all_files()?))?;
    let write = std::fs::write(root().join(limits::PAGE), page);
    write.map_err(|error| format!("{}: {error}", limits::PAGE))
}

/// The Rust files, as the table of limits reads them.
fn sources(files: &[File]) -> Vec<limits::Source<'_>> {
    let rust = files.iter().filter(|file| file.has_extension(&["rs"]));
    rust.filter_map(|file| Some((file.path.to_str()?, file.text.as_str())))
        .collect()
}

fn all_files() -> Result<Vec<File>, String> {
    files::all(&root()).map_err(|error| format!("the project's files: {error}"))
}

/// Holds every rule against every file.
pub(crate) fn check() -> Result<(), String> {
    let files = all_files()?;
    let offences = RULES.iter().flat_map(|rule| rule(&files));
    let lines: Vec<String> = offences.map(|offence| offence.to_string()).collect();
    if lines.is_empty() {
        return Ok(());
    }
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
