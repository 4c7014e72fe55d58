//! A type name means one thing: few types of the workspace share a name.

use std::collections::BTreeMap;

use super::{Offence, files::File, rust_text};

/// Definitions of one name.
const MAX_DEFINITIONS: usize = 3;

/// Entries of the list of exceptions.
const MAX_EXCEPTIONS: usize = 10;

/// Names that may be defined more often, each with the reason.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "Error",
    "the error type of a crate, read as `millpond_db::Error`",
)];

const THIS: &str = "xtask/src/tidy/names.rs";

/// Names that are defined too often, and exceptions that are not needed.
pub(super) fn check(files: &[File]) -> Vec<Offence> {
    check_with(files, &EXCEPTIONS)
}

fn check_with(files: &[File], exceptions: &[(&str, &str)]) -> Vec<Offence> {
    let mut places = BTreeMap::<String, Vec<(&File, usize)>>::new();
    for file in files.iter().filter(|file| file.has_extension(&["rs"])) {
        for (line, name) in definitions(&file.text) {
            places.entry(name).or_default().push((file, line));
        }
    }
    places.retain(|_, places| places.len() > MAX_DEFINITIONS);
    let mut offences = Vec::new();
    let mut offend = |what| {
        offences.push(Offence {
            file: THIS.into(),
            line: 0,
            what,
        });
    };
    if exceptions.len() > MAX_EXCEPTIONS {
        offend(format!(
            "{} exceptions; rename types until {MAX_EXCEPTIONS} are enough",
            exceptions.len()
        ));
    }
    for (name, reason) in exceptions {
        if places.remove(*name).is_none() {
            offend(format!(
                "{name} needs no exception any more; remove its line"
            ));
        }
        if reason.is_empty() {
            offend(format!("{name} has no reason; say why the name is shared"));
        }
    }
    for (name, places) in places {
        let listed: Vec<String> = places
            .iter()
            .map(|(file, line)| format!("{}:{line}", file.path.display()))
            .collect();
        let (first, line) = places[0];
        offences.push(Offence {
            file: first.path.clone(),
            line,
            what: format!(
                "{name} names {} types, at most {MAX_DEFINITIONS} may share a name; name each for what it holds: {}",
                listed.len(),
                listed.join(", ")
            ),
        });
    }
    offences
}

/// Each type that a file defines, with its line. Types in functions of test modules are left out.
fn definitions(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_test = false;
    let mut was_test_mark = false;
    for (number, line) in (1..).zip(rust_text::parts(source).code.lines()) {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        match depth {
            0 if was_test_mark && text.starts_with("mod ") => is_test = !text.ends_with(';'),
            0 if text.starts_with('}') => is_test = false,
            _ => {}
        }
        if !text.is_empty() {
            was_test_mark =
                text.starts_with("#[cfg(test)]") || was_test_mark && text.starts_with("#[");
        }
        if is_test && depth > 4 {
            continue;
        }
        // An indented alias belongs to a trait or a function.
        if depth > 0 && is_alias(text) {
            continue;
        }
        if let Some(name) = defined(text) {
            found.push((number, name.to_owned()));
        }
    }
    found
}

const ALIAS: &str = "type ";

fn is_alias(line: &str) -> bool {
    without_visibility(line).is_some_and(|rest| rest.starts_with(ALIAS))
}

/// Returns the name after `struct`, `enum`, `trait`, `union` or `type`.
fn defined(line: &str) -> Option<&str> {
    let rest = without_visibility(line)?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "trait ", "union ", ALIAS];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = name
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    let name = &name[..end];
    name.starts_with(char::is_uppercase).then_some(name)
}

/// Returns a line without `pub` or `pub(…)` at its beginning.
fn without_visibility(line: &str) -> Option<&str> {
    match line.strip_prefix("pub") {
        None => Some(line),
        Some(after) => match after.strip_prefix('(') {
            Some(within) => Some(within.split_once(") ")?.1),
            None => after.strip_prefix(' '),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::check_with;
    use crate::tidy::files::File;

    /// Messages on files with these texts.
    fn said(texts: &[&str], exceptions: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = (0..)
            .zip(texts)
            .map(|(n, text)| File {
                path: format!("server/a/src/{n}.rs").into(),
                text: (*text).to_owned(),
            })
            .collect();
        let offences = check_with(&files, exceptions);
        offences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_fourth_definition_is_found() {
        let texts = [
            "pub(super) struct State;\nstruct Other;\n",
            "pub enum State<T> {\n",
            "pub unsafe trait State: Sized {\n",
            "pub(crate) type State<'a> = &'a str;\n",
        ];
        let said = said(&texts, &[]);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("server/a/src/0.rs:1: State names 4 types"));
        assert!(said[0].ends_with("server/a/src/3.rs:1"));
    }

    #[test]
    fn a_union_in_a_function_counts() {
        let texts = [
            "struct State;\n",
            "enum State {\n",
            "trait State {\n",
            "fn f() {\n    union State {\n",
        ];
        let said = said(&texts, &[]);
        assert!(said[0].ends_with("server/a/src/3.rs:2"), "{said:?}");
    }

    #[test]
    fn three_definitions_uses_comments_and_helpers_of_tests_pass() {
        let text = "struct State;\nimpl State {\n    type State = u8;\n}\n// struct State;\n";
        let test = "#[cfg(test)]\nmod tests {\n    fn f() {\n        struct State;\n    }\n}\n";
        assert!(said(&[text, text, text, test, test], &[]).is_empty());
        assert_eq!(
            said(
                &[
                    text,
                    text,
                    text,
                    "#[cfg(test)]\nmod a {\n    struct State;\n"
                ],
                &[]
            )
            .len(),
            1
        );
    }

    #[test]
    fn exceptions_are_few_needed_and_explained() {
        let text = "struct State;\n";
        let four = [text; 4];
        assert!(said(&four, &[("State", "why")]).is_empty());
        assert!(said(&four, &[("State", "")])[0].contains("has no reason"));
        assert!(said(&four[1..], &[("State", "why")])[0].contains("needs no exception"));
        let many = [("State", "why"); 11];
        assert!(said(&four, &many)[0].contains("11 exceptions"));
    }
}
