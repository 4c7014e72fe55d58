//! Doc comments begin with a verb or a noun, and booleans with "True if".

use super::{Offence, files::File, rust_text};

/// Beginnings that leave a reader without the subject, each with the way to write it.
const OPENINGS: [(&str, &str); 7] = [
    (
        "What",
        "begin with a noun for a field or a type, with a verb for a function",
    ),
    ("Whether", "write `True if`, or begin with a verb"),
    (
        "The same",
        "repeat the verb or the noun, and name the difference",
    ),
    ("Where", "begin with the noun: a place, an address, a level"),
    ("Which", "begin with the noun"),
    ("Those", "repeat the noun"),
    ("Who", "name the actor"),
];

/// Finds doc comments of items that begin so.
pub(super) fn check(files: &[File]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.has_extension(&["rs"])) {
        let mut doc_line = None;
        for comment in rust_text::parts(&file.text).comments {
            let Some(text) = comment.text.strip_prefix("/// ") else {
                if comment.text == "///" {
                    doc_line = Some(comment.line);
                }
                continue;
            };
            let is_first = doc_line != Some(comment.line - 1);
            doc_line = Some(comment.line);
            let begins = |(opening, _): &&(&str, &str)| {
                let rest = text.strip_prefix(opening);
                rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            };
            if is_first && let Some((opening, instead)) = OPENINGS.iter().find(begins) {
                offences.push(Offence {
                    file: file.path.clone(),
                    line: comment.line,
                    what: format!("a doc comment begins with \"{opening}\"; {instead}"),
                });
            }
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::{OPENINGS, check};
    use crate::tidy::files::File;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File {
            path: path.into(),
            text: text.to_owned(),
        };
        check(&[file]).iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn docs_that_begin_without_a_subject_are_found() {
        for (opening, _) in OPENINGS {
            for end in [" is read.", ".", ", if it is there."] {
                let text = format!("struct A {{\n    /// {opening}{end}\n    a: u8,\n}}\n");
                assert_eq!(lines("a/src/a.rs", &text), [2], "{opening}{end}");
            }
        }
        let two = "/// A.\nfn a() {}\n/// What.\nfn b() {}\n";
        assert_eq!(lines("a/src/a.rs", two), [3]);
    }

    #[test]
    fn later_lines_other_comments_and_words_pass() {
        let later = "/// A.\n/// What is read.\n///\n/// Whether it is.\nfn a() {}\n";
        let others = "//! What.\n// Whether.\nlet a = \"/// What\";\n/// Whatsit.\nfn a() {}\n";
        for text in [later, others] {
            assert_eq!(lines("a/src/a.rs", text), [0; 0], "{text}");
        }
        assert_eq!(lines("a.md", "/// What.\n"), [0; 0]);
    }
}
