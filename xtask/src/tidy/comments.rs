//! Rules about comments: their width and their words.

use super::{Offence, files::File, rust_text};

/// Columns of a line with a comment, as of a line of code.
const MAX_WIDTH: usize = 100;

/// Words that readers have to read twice, each with what to write. Spelt as they are compared: in
/// lower case and as whole words.
const BANNED: [(&str, &str); 12] = [
    ("whoever", "name the caller"),
    ("whatever", "name what may come"),
    ("nobody", "write `no` and the noun"),
    ("somebody", "name who it is"),
    ("anybody", "write `any` and the noun"),
    ("so many", "give the number or its name"),
    ("in vain", "say what failed"),
    ("dearer", "write `costs more`"),
    ("befall", "write `happen to`"),
    ("thereof", "repeat the noun"),
    ("is told of", "write `is notified of`"),
    ("has come", "write `arrived` or name the event"),
];

/// Lines with comments that are too wide.
pub(super) fn widths(files: &[File]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.has_extension(&["rs"])) {
        let lines: Vec<&str> = file.text.lines().collect();
        for comment in rust_text::parts(&file.text).comments {
            let line = lines.get(comment.line - 1).unwrap_or(&"");
            let width = line.chars().count();
            if width > MAX_WIDTH && !has_too_long_url(line, comment.text) {
                let what = format!("{width} columns; break the comment at {MAX_WIDTH}");
                offences.push(offence(file, comment.line, what));
            }
        }
    }
    offences
}

/// True if a URL in `comment`, which is on `line`, does not fit on a line of its own. Punctuation
/// beside the URL counts, because no line can end between them.
fn has_too_long_url(line: &str, comment: &str) -> bool {
    let width_where = |text: &str, is_part: fn(char) -> bool| {
        let part = text.chars().take_while(|c| is_part(*c));
        part.count()
    };
    let indentation = width_where(line, char::is_whitespace);
    let mark = width_where(comment.trim_start(), |c| matches!(c, '/' | '!' | '*'));
    let prefix = indentation + mark + usize::from(mark > 0);
    let mut urls = comment
        .split_whitespace()
        .filter(|word| word.contains("://"));
    urls.any(|url| prefix + url.chars().count() > MAX_WIDTH)
}

/// Banned words in comments, also where a line ends between two of them.
pub(super) fn words(files: &[File]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for file in files.iter().filter(|file| file.has_extension(&["rs"])) {
        let mut before: Option<(usize, String)> = None;
        for comment in rust_text::parts(&file.text).comments {
            let words = words_of(comment.text);
            let (last, joined) = match &before {
                Some((line, last)) if line + 1 == comment.line => (last.as_str(), true),
                _ => ("", false),
            };
            for (banned, instead) in BANNED {
                let first = banned.split(' ').count() - 1;
                let here = occurs(&words, banned);
                let across = joined
                    && first > 0
                    && occurs(&format!("{} {words}", tail(last, first)), banned)
                    && !here;
                if here || across {
                    let what = format!("\"{banned}\": {instead}");
                    offences.push(offence(file, comment.line, what));
                }
            }
            before = Some((comment.line, words));
        }
    }
    offences
}

/// The words of a comment in lower case with one space between.
fn words_of(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The last words of a line.
fn tail(words: &str, count: usize) -> String {
    let mut last: Vec<&str> = words.rsplit(' ').take(count).collect();
    last.reverse();
    last.join(" ")
}

fn occurs(words: &str, banned: &str) -> bool {
    format!(" {words} ").contains(&format!(" {banned} "))
}

fn offence(file: &File, line: usize, what: String) -> Offence {
    Offence {
        file: file.path.clone(),
        line,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::{BANNED, MAX_WIDTH, widths, words};
    use crate::tidy::{Offence, files::File};

    fn lines(check: fn(&[File]) -> Vec<Offence>, path: &str, text: &str) -> Vec<usize> {
        let file = File {
            path: path.into(),
            text: text.to_owned(),
        };
        check(&[file]).iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn wide_comments_are_found() {
        let wide = "é".repeat(MAX_WIDTH - 3);
        for mark in ["//", "///", "//!"] {
            let text = format!("fn a() {{}}\n{mark} {wide}x\n");
            assert_eq!(lines(widths, "a.rs", &text), [2], "{mark}");
        }
        let beside = format!("let a = \"{}\"; // why\n", "x".repeat(MAX_WIDTH));
        assert_eq!(lines(widths, "a.rs", &beside), [1]);
    }

    /// Words before a URL that is `columns` wide.
    fn with_url(columns: usize) -> String {
        let url = "https://example.org/";
        format!("see {url}{}", "x".repeat(columns - url.len()))
    }

    #[test]
    fn a_wide_comment_is_found_if_its_url_fits_on_a_line() {
        for (before, prefix) in [("", "// "), ("", "/// "), ("        ", "//! "), ("", " * ")] {
            let (open, close) = match prefix {
                " * " => ("/*\n", "\n*/"),
                _ => ("\n", ""),
            };
            let room = MAX_WIDTH - before.len() - prefix.len();
            let with = |columns| format!("{open}{before}{prefix}{}{close}\n", with_url(columns));
            assert_eq!(lines(widths, "a.rs", &with(room)), [2], "{prefix}");
            assert_eq!(lines(widths, "a.rs", &with(room + 1)), [0; 0], "{prefix}");
        }
        let room = MAX_WIDTH - "    // ".len();
        let beside = |columns| format!("    let a = 1; // {}\n", with_url(columns));
        assert_eq!(lines(widths, "a.rs", &beside(room)), [1]);
        assert_eq!(lines(widths, "a.rs", &beside(room + 1)), [0; 0]);
    }

    #[test]
    fn narrow_comments_strings_and_prose_pass() {
        let wide = "é".repeat(MAX_WIDTH);
        let text = format!(
            "// {}\nlet a = \"// {wide}\";\n",
            &wide[..2 * (MAX_WIDTH - 3)]
        );
        assert_eq!(lines(widths, "a.rs", &text), [0; 0]);
        assert_eq!(lines(widths, "a.md", &format!("// {wide}\n")), [0; 0]);
    }

    #[test]
    fn banned_words_are_found_in_every_case_and_over_a_line_end() {
        for (banned, _) in BANNED {
            let text = format!("fn a() {{}}\n/// Text, {}.\n", banned.to_uppercase());
            assert_eq!(lines(words, "a.rs", &text), [2], "{banned}");
            let broken = format!("/// Text {}\n", banned.replacen(' ', "\n/// ", 1));
            let expected = [1 + usize::from(banned.contains(' '))];
            assert_eq!(lines(words, "a.rs", &broken), expected, "{banned}");
        }
    }

    #[test]
    fn plain_words_strings_and_other_files_pass() {
        let text =
            "// Some bodies are so manylike, in vains.\nlet a = \"nobody\";\n// so\n\n// many\n";
        assert_eq!(lines(words, "a.rs", text), [0; 0]);
        assert_eq!(lines(words, "a.md", "// nobody\n"), [0; 0]);
    }
}
