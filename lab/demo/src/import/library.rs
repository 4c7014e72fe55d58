//! The documentation at the head of a library's root file, for components whose README says little.

/// The text of the leading `//!` lines, as Markdown. Empty when there are none.
pub(super) fn documentation(source: &str) -> String {
    let mut text = String::new();
    let mut comment = false;
    for line in source.lines() {
        let trimmed = line.trim();
        if comment {
            comment = !trimmed.contains("*/");
        } else if let Some(doc) = line.trim_start().strip_prefix("//!") {
            text.push_str(doc.strip_prefix(' ').unwrap_or(doc).trim_end());
            text.push('\n');
        } else if trimmed.starts_with("/*") {
            comment = !trimmed.contains("*/");
        } else if !(trimmed.is_empty() || trimmed.starts_with("//") || trimmed.starts_with("#!")) {
            break;
        }
    }
    without_hidden_lines(&text)
}

/// Leaves out the lines of Rust examples that begin with `# `: they are compiled, not shown.
fn without_hidden_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut fence = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        match fence {
            None if trimmed.starts_with("```") => {
                let language = trimmed
                    .trim_start_matches('`')
                    .split([',', ' '])
                    .next()
                    .unwrap_or_default();
                let marked = [
                    "",
                    "rust",
                    "no_run",
                    "ignore",
                    "should_panic",
                    "compile_fail",
                ]
                .contains(&language);
                fence = Some(marked);
                // What has no language is Rust in a library's documentation.
                if marked {
                    shown.push_str(&line[..line.len() - trimmed.len()]);
                    shown.push_str("```rust\n");
                    continue;
                }
            }
            Some(_) if trimmed.starts_with("```") => fence = None,
            Some(true) if trimmed == "#" || trimmed.starts_with("# ") => continue,
            _ => {}
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_leading_comment() {
        let source = "// Copyright\n/* more\n lines */\n#![no_std]\n//! # Title\n//!\n//!   indented\n\npub mod a;\n//! not this\n";
        assert_eq!(documentation(source), "# Title\n\n  indented\n");
        assert_eq!(documentation("pub fn a() {}"), "");
    }

    #[test]
    fn hidden_lines_of_examples_are_removed() {
        let source = "//! ```no_run\n//! # use a::b;\n//! b();\n//! #\n//! #[x]\n//! ```\n//! ```toml\n//! # kept\n//! ```\n";
        assert_eq!(
            documentation(source),
            "```rust\nb();\n#[x]\n```\n```toml\n# kept\n```\n"
        );
    }
}
