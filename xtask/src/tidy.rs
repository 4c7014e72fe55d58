//! The rules that no compiler checks. Each message says what to do instead.

mod comments;
mod conformance;
mod crates;
mod edges;
mod files;
mod licences;
mod names;
mod packages;
mod pages;
mod rust_text;
mod text;

use std::{
    collections::BTreeMap,
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

/// One kind of rule.
struct Rule {
    name: &'static str,
    /// Folders and files, by the beginning of their paths, in which the rule is enforced.
    enforced: &'static [&'static str],
    check: fn(&[File]) -> Vec<Offence>,
}

const EVERYWHERE: &[&str] = &[""];

/// Not enforced yet: `cargo xtask tidy --count` says how much is left.
const NOWHERE: &[&str] = &[];

const RULES: [Rule; 11] = [
    Rule {
        name: "edges",
        enforced: EVERYWHERE,
        check: edges::check,
    },
    Rule {
        name: "conformance",
        enforced: EVERYWHERE,
        check: conformance::check,
    },
    Rule {
        name: "dependencies",
        enforced: EVERYWHERE,
        check: crates::check,
    },
    Rule {
        name: "text",
        enforced: EVERYWHERE,
        check: |files| files.iter().flat_map(text::check).collect(),
    },
    Rule {
        name: "widths",
        enforced: &[
            "base/chart/",
            "base/clock/",
            "server/db/",
            "server/http/",
            "xtask/",
        ],
        check: comments::widths,
    },
    Rule {
        name: "words",
        enforced: &[
            "base/chart/",
            "base/clock/",
            "server/db/",
            "server/http/",
            "xtask/",
        ],
        check: comments::words,
    },
    Rule {
        name: "names",
        enforced: NOWHERE,
        check: names::check,
    },
    Rule {
        name: "sources",
        enforced: EVERYWHERE,
        check: |_| packages::sources(),
    },
    Rule {
        name: "programs",
        enforced: EVERYWHERE,
        check: |_| packages::programs(),
    },
    Rule {
        name: "limits",
        enforced: EVERYWHERE,
        check: limits_page,
    },
    Rule {
        name: "pages",
        enforced: EVERYWHERE,
        check: pages::check,
    },
];

impl Rule {
    fn is_enforced(&self, offence: &Offence) -> bool {
        let path = offence.file.to_string_lossy();
        self.enforced.iter().any(|folder| path.starts_with(folder))
    }
}

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

/// Holds every rule against every file where it is enforced.
pub(crate) fn check() -> Result<(), String> {
    let files = all_files()?;
    let mut lines = Vec::new();
    for rule in RULES.iter().filter(|rule| !rule.enforced.is_empty()) {
        let offences = (rule.check)(&files);
        let enforced = offences.iter().filter(|offence| rule.is_enforced(offence));
        lines.extend(enforced.map(Offence::to_string));
    }
    if lines.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} broken rules\n{}",
        lines.len(),
        lines.join("\n")
    ))
}

/// Prints how many offences each rule finds, enforced or not, and in which folders.
pub(crate) fn count() -> Result<(), String> {
    let files = all_files()?;
    for rule in &RULES {
        let offences = (rule.check)(&files);
        let mut folders = BTreeMap::<String, usize>::new();
        for offence in &offences {
            let parts: Vec<_> = offence.file.iter().take(2).collect();
            let folder: PathBuf = parts.into_iter().collect();
            *folders.entry(folder.display().to_string()).or_default() += 1;
        }
        let folders: Vec<String> = folders
            .iter()
            .map(|(folder, count)| format!("{folder} {count}"))
            .collect();
        println!("{}: {} ({})", rule.name, offences.len(), folders.join(", "));
    }
    Ok(())
}

/// Prints every offence against one rule, enforced or not.
pub(crate) fn list(name: &str) -> Result<(), String> {
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
        let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        return Err(format!(
            "no rule {name}; the rules are {}",
            names.join(", ")
        ));
    };
    for offence in (rule.check)(&all_files()?) {
        println!("{offence}");
    }
    Ok(())
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
