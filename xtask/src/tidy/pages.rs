//! README.md and ARCHITECTURE.md stay short enough to be read.

use std::path::Path;

use super::{Offence, files::File};

const README: &str = "README.md";
const MAX_README_LINES: usize = 130;
/// Words in one cell of a table of README.md.
const MAX_CELL_WORDS: usize = 12;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MAX_ARCHITECTURE_BYTES: usize = 15 << 10;

/// Both pages.
pub(super) fn check(files: &[File]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut offend = |file: &str, line, what| {
        offences.push(Offence {
            file: file.into(),
            line,
            what,
        });
    };
    let text_of = |path: &str| {
        let file = files.iter().find(|file| file.path == Path::new(path));
        file.map(|file| file.text.as_str())
    };
    if let Some(text) = text_of(README) {
        let lines = text.lines().count();
        if lines > MAX_README_LINES {
            offend(
                README,
                0,
                format!("{lines} lines; move parts to docs/ until {MAX_README_LINES} are enough"),
            );
        }
        for (number, words) in widest_cells(text) {
            if words > MAX_CELL_WORDS {
                offend(
                    README,
                    number,
                    format!(
                        "a cell of {words} words; give one figure and a link, at most {MAX_CELL_WORDS} words"
                    ),
                );
            }
        }
    }
    if let Some(text) = text_of(ARCHITECTURE)
        && text.len() > MAX_ARCHITECTURE_BYTES
    {
        offend(
            ARCHITECTURE,
            0,
            format!(
                "{} bytes; move what binds one crate into its docs until {MAX_ARCHITECTURE_BYTES} are enough",
                text.len()
            ),
        );
    }
    offences
}

/// Each row of a table with the number of words in its longest cell. Code blocks have no tables.
fn widest_cells(page: &str) -> Vec<(usize, usize)> {
    let mut is_code = false;
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && line.starts_with('|') {
            let cells = line.split('|').map(|cell| cell.split_whitespace().count());
            rows.push((number, cells.max().unwrap_or(0)));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::{ARCHITECTURE, MAX_ARCHITECTURE_BYTES, MAX_README_LINES, README, check};
    use crate::tidy::files::File;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = File {
            path: path.into(),
            text: text.to_owned(),
        };
        check(&[file]).iter().map(|offence| offence.line).collect()
    }

    #[test]
    fn long_pages_and_long_cells_are_found() {
        assert_eq!(lines(README, &"x\n".repeat(MAX_README_LINES + 1)), [0]);
        let row = format!("text\n| a | {}|\n", "word ".repeat(13));
        assert_eq!(lines(README, &row), [2]);
        let long = "x".repeat(MAX_ARCHITECTURE_BYTES + 1);
        assert_eq!(lines(ARCHITECTURE, &long), [0]);
    }

    #[test]
    fn short_pages_other_pages_and_code_pass() {
        assert_eq!(lines(README, &"x\n".repeat(MAX_README_LINES)), [0; 0]);
        let row = format!("| a | {}|\n", "word ".repeat(12));
        assert_eq!(lines(README, &row), [0; 0]);
        let code = format!(
            "```\n| {}|\n```\n{}\n",
            "word ".repeat(13),
            "word ".repeat(50)
        );
        assert_eq!(lines(README, &code), [0; 0]);
        let long = "x\n".repeat(MAX_ARCHITECTURE_BYTES);
        assert_eq!(lines("docs/reference/data.md", &long), [0; 0]);
        assert_eq!(
            lines(ARCHITECTURE, &"x".repeat(MAX_ARCHITECTURE_BYTES)),
            [0; 0]
        );
    }
}
