//! Files of pages and templates that are not looked at, as their names begin with a dot.

use std::{
    fs,
    path::{Path, PathBuf},
};

use millpond_site_format::Problem;

/// Notes on all of them. What editors and systems keep beside a file (`.#a.sql`, `._a.sql`,
/// `.a.sql.swp`) is not meant to be looked at.
pub(super) fn notes(dir: &Path) -> Vec<Problem> {
    let mut notes = Vec::new();
    for root in ["pages", "templates", "migrations"] {
        look(dir, Path::new(root), &mut notes);
    }
    notes
}

fn look(dir: &Path, below: &Path, notes: &mut Vec<Problem>) {
    let entries = fs::read_dir(dir.join(below)).into_iter().flatten();
    let mut names: Vec<PathBuf> = entries.flatten().map(|it| it.file_name().into()).collect();
    names.sort();
    for name in names {
        let file = below.join(&name);
        let shown = name.to_string_lossy();
        match shown.strip_prefix('.') {
            None if dir.join(&file).is_dir() => look(dir, &file, notes),
            Some(rest) if is_meant(rest) => {
                let note = Problem::new(&file, "is not looked at, as its name begins with a dot");
                let meant = below.join(format!("index.{rest}"));
                notes.push(note.hint(match is_method(rest) {
                    true => format!("did you mean {}?", meant.display()),
                    false => format!("name it {rest}, or move it to another folder"),
                }));
            }
            _ => {}
        }
    }
}

fn is_meant(rest: &str) -> bool {
    let ending = Path::new(rest).extension();
    let is_read = ending.is_some_and(|ending| ending == "sql" || ending == "html");
    is_read && rest.starts_with(|c: char| c.is_alphanumeric() || c == '[')
}

/// True if the name has a method and nothing before it.
fn is_method(rest: &str) -> bool {
    let word = rest.split('.').next();
    matches!(word, Some("post" | "put" | "patch" | "delete"))
}
