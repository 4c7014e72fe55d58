//! Every rule in `docs/reference/conformance.md` names tests that exist, or says why it does not
//! apply.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Offence, files::File};

const PAGE: &str = "docs/reference/conformance.md";
/// How the last cell begins for a rule that has no test.
const APART: &str = "not applicable: ";

/// A test, by the folder of its crate and its own name.
type Test<'a> = (&'a str, &'a str);

/// The page, held against the tests of the crates.
pub(crate) fn check(files: &[File]) -> Vec<Offence> {
    let Some(page) = files.iter().find(|file| file.path == Path::new(PAGE)) else {
        return vec![offence(0, "is missing; it says which rule has which test")];
    };
    let there: BTreeSet<Test<'_>> = files.iter().flat_map(tests).collect();
    let mut offences = Vec::new();
    for (number, cell) in rules(&page.text) {
        if cell.strip_prefix(APART).is_some_and(|why| !why.is_empty()) {
            continue;
        }
        let named = named(cell);
        if named.is_empty() {
            let what = format!("names no test; write one, or \"{APART}\" and why");
            offences.push(offence(number, what));
        }
        for (krate, name) in named {
            if !there.contains(&(krate, name)) {
                let what = format!("{krate} has no test {name}; name the one that there is now");
                offences.push(offence(number, what));
            }
        }
    }
    offences
}

fn offence(line: usize, what: impl Into<String>) -> Offence {
    Offence {
        file: PAGE.into(),
        line,
        what: what.into(),
    }
}

/// The last cell of each row that begins with a section's number, with its line.
fn rules(page: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(page.lines()).filter_map(|(number, line)| {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let is_rule = cells.starts_with(|c: char| c.is_ascii_digit());
        let (_, last) = cells.rsplit_once(" | ")?;
        is_rule.then_some((number, last.trim()))
    })
}

/// The tests that a cell names, as in ``http `a`, `b`; site `c` ``.
fn named(cell: &str) -> Vec<Test<'_>> {
    let mut named = Vec::new();
    let mut krate = "";
    for (at, piece) in cell.split('`').enumerate() {
        if at % 2 == 1 {
            named.push((krate, piece));
        } else if let Some(word) = piece.split_whitespace().next_back()
            && word.chars().all(char::is_alphabetic)
        {
            krate = word;
        }
    }
    named
}

/// The tests in a file of a crate.
fn tests(file: &File) -> Vec<Test<'_>> {
    let krate = file.path.to_str().and_then(|path| {
        let mut folders = path.strip_suffix(".rs")?.split('/');
        let is_house = ["server", "meter", "base", "lab"].contains(&folders.next()?);
        folders.next().filter(|_| is_house)
    });
    let Some(krate) = krate else {
        return Vec::new();
    };
    let mut tests = Vec::new();
    let mut is_marked = false;
    for line in file.text.lines().map(str::trim_start) {
        let function = line.strip_prefix("async ").unwrap_or(line);
        if let Some(name) = function.strip_prefix("fn ") {
            let end = name.find(['(', '<']).unwrap_or(name.len());
            if std::mem::take(&mut is_marked) {
                tests.push((krate, &name[..end]));
            }
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_marked = true;
        } else {
            // Other attributes and comments may stand between.
            is_marked &= line.starts_with("#[") || line.starts_with("//");
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::files::File;

    const SOURCE: &str = "fn helper() {}\n\n#[test]\nfn one() {}\n\n    #[test]\n    // Why.\n    #[ignore]\n    \
                          fn two(n: u8) {}\n\n#[tokio::test]\nasync fn three() {}\n\n#[test]\n\nfn four() {}\n";

    /// The lines that are faulted in a page with these rows.
    fn faulted(rows: &str) -> Vec<usize> {
        let file = |path: &str, text: &str| File {
            path: path.into(),
            text: text.to_owned(),
        };
        let files = [
            file("server/http/src/h1/tests.rs", SOURCE),
            file("server/site/tests/it/pages.rs", "#[test]\nfn five() {}\n"),
            file("docs/reference/conformance.md", rows),
        ];
        check(&files).iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn a_rule_names_tests_that_there_are() {
        assert_eq!(faulted("| 2.2 | rule | http `one` |\n"), [0; 0]);
        assert_eq!(
            faulted("| 2.2 | rule | http `one`, `two`; site `five` |\n"),
            [0; 0]
        );
        assert_eq!(faulted("| 2.2 | rule | http `three` |\n"), [0; 0]);
        assert_eq!(faulted("# Title\n\n| 2.2 | rule | http `none` |\n"), [3]);
        assert_eq!(faulted("| 2.2 | rule | http `helper` |\n"), [1]);
        assert_eq!(faulted("| 2.2 | rule | http `four` |\n"), [1], "not marked");
        assert_eq!(
            faulted("| 2.2 | rule | site `one` |\n"),
            [1],
            "of another crate"
        );
        assert_eq!(faulted("| 2.2 | rule | `one` |\n"), [1], "of no crate");
        assert_eq!(
            faulted("| 2.2 | rule | http `one`, `none`, `six` |\n"),
            [1, 1]
        );
    }

    #[test]
    fn a_rule_without_a_test_says_why() {
        assert_eq!(faulted("| 2.2 | rule | not applicable: no TLS |\n"), [0; 0]);
        assert_eq!(faulted("| 2.2 | rule | not applicable: |\n"), [1]);
        assert_eq!(faulted("| 2.2 | rule | obvious |\n"), [1]);
        assert_eq!(
            faulted("| section | rule | test |\n|---|---|---|\n"),
            [0; 0]
        );
    }

    #[test]
    fn the_page_is_there() {
        assert_eq!(check(&[]).len(), 1);
    }
}
