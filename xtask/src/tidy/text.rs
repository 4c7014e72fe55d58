//! Rules about what stands in one file.

use std::path::Path;

use super::{Offence, files::File};

/// Written by hand; a longer one holds a second idea.
const MAX_LINES: usize = 1500;
const WRITTEN: [&str; 9] = ["rs", "c", "py", "toml", "md", "sql", "html", "css", "js"];

/// Spelt in halves, so that this file does not break its own rules.
const MARKS: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
];
const MACHINE_PATHS: [&str; 4] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
];
/// All rules on one file.
pub(crate) fn check(file: &File) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut offend = |line, what: String| {
        offences.push(Offence {
            file: file.path.clone(),
            line,
            what,
        });
    };
    let lines = file.text.lines().count();
    if file.has_extension(&WRITTEN) && lines > MAX_LINES {
        offend(
            0,
            format!("{lines} lines; find the second idea in it and give that a file of its own"),
        );
    }
    if is_module(&file.path) && !file.text.starts_with("//!") {
        offend(
            1,
            "begins without //! to say what the module is for".to_owned(),
        );
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        if let Some(mark) = MARKS.iter().find(|mark| line.contains(*mark)) {
            offend(number, format!("{mark}: do it, or open an issue"));
        }
        if let Some(path) = MACHINE_PATHS.iter().find(|path| has_path(line, path)) {
            offend(
                number,
                format!(
                    "{path}… is a path of one machine; take it from the environment or a temporary folder"
                ),
            );
        }
    }
    offences
}

fn is_module(path: &Path) -> bool {
    let in_source = path.components().any(|part| part.as_os_str() == "src");
    in_source && path.extension().is_some_and(|extension| extension == "rs")
}

/// True if `path` begins in `line`, and is not the end of a longer one as in `example.org/…`.
fn has_path(line: &str, path: &str) -> bool {
    let continues =
        |at: usize| line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_.~}*/".contains(c));
    line.match_indices(path).any(|(at, _)| !continues(at))
}

#[cfg(test)]
mod tests {
    use super::{MACHINE_PATHS, MARKS, MAX_LINES, check};
    use crate::tidy::files::File;

    fn offences(path: &str, text: &str) -> Vec<usize> {
        let file = File {
            path: path.into(),
            text: text.to_owned(),
        };
        check(&file).iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn a_file_has_one_idea() {
        let text = |lines| "x\n".repeat(lines);
        assert_eq!(offences("README.md", &text(MAX_LINES)), [0; 0]);
        assert_eq!(offences("README.md", &text(MAX_LINES + 1)), [0]);
        assert_eq!(offences("words.txt", &text(MAX_LINES + 1)), [0; 0]);
    }

    #[test]
    fn a_module_says_what_it_is_for() {
        assert_eq!(offences("server/a/src/lib.rs", "//! A.\n"), [0; 0]);
        assert_eq!(offences("server/a/src/lib.rs", "fn a() {}\n"), [1]);
        assert_eq!(offences("server/a/tests/it/main.rs", "fn a() {}\n"), [0; 0]);
    }

    #[test]
    fn marks_and_machine_paths_are_found_where_they_stand() {
        for mark in MARKS {
            assert_eq!(offences("a.md", &format!("fine\n{mark} \n")), [2]);
        }
        for path in MACHINE_PATHS {
            assert_eq!(offences("a.md", &format!("see {path}x\n")), [1]);
            assert_eq!(
                offences("a.md", &format!("see example.org{path}x\n")),
                [0; 0]
            );
        }
    }
}
