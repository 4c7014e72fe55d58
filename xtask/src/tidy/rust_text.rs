//! Rust source taken apart into comments and code, as far as the rules need.

/// A comment, or one line of a comment in `/* */`.
#[derive(Debug, PartialEq)]
pub(super) struct Comment<'a> {
    /// From 1.
    pub(super) line: usize,
    /// With its `//`.
    pub(super) text: &'a str,
}

/// The parts of a source file.
pub(super) struct Parts<'a> {
    pub(super) comments: Vec<Comment<'a>>,
    /// The file without the content of comments and literals. Line ends stay.
    pub(super) code: String,
}

/// Splits a source file. Text that does not compile gives some split, never a panic.
pub(super) fn parts(source: &str) -> Parts<'_> {
    let mut comments = Vec::new();
    let mut code = String::with_capacity(source.len());
    let mut line = 1;
    let mut rest = source;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_word = before.is_alphanumeric() || before == '_';
        let (len, is_comment) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => (block_comment(rest), true),
            '"' => (string(rest), false),
            'r' | 'b' | 'c' if !is_word => (prefixed_string(rest), false),
            '\'' => (char_literal(rest), false),
            _ => (0, false),
        };
        if len == 0 {
            code.push(first);
            line += usize::from(first == '\n');
            before = first;
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (part, after) = rest.split_at(len);
        for (at, text) in part.split('\n').enumerate() {
            if at > 0 {
                code.push('\n');
            }
            if is_comment {
                let line = line + at;
                comments.push(Comment { line, text });
            }
        }
        line += part.matches('\n').count();
        before = '"';
        rest = after;
    }
    Parts { comments, code }
}

/// Length of a comment that may hold others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of a literal in double quotes.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a literal such as `r#"…"#` or `b"…"`; 0 if there is none.
fn prefixed_string(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches(['b', 'c']).len();
    if marks > 1 {
        return 0;
    }
    let Some(raw) = text[marks..].strip_prefix('r') else {
        let is_string = marks == 1 && text[marks..].starts_with('"');
        return if is_string {
            marks + string(&text[marks..])
        } else {
            0
        };
    };
    let quoted = raw.trim_start_matches('#');
    if !quoted.starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(raw.len() - quoted.len()));
    let start = text.len() - quoted.len() + 1;
    text[start..]
        .find(&end)
        .map_or(text.len(), |at| start + at + end.len())
}

/// Length of a literal in single quotes; 0 for a lifetime.
fn char_literal(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            let end = chars.find(|(_, c)| *c == '\'');
            end.map_or(0, |(at, _)| at + 1)
        }
        Some(_) => chars
            .next()
            .filter(|(_, c)| *c == '\'')
            .map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Comment, parts};

    #[test]
    fn comments_are_told_from_literals() {
        let source = "//! one\nlet a = \"// no \\\" //\"; // two\nlet b = r#\"// \" no\"#; let c = '\"';\n\
                      fn f<'a>(x: &'a str) {} /* three\n/* four */ five */ let d = '\\''; // six\nlet r = b'\"'; // seven\n";
        let parts = parts(source);
        let expected = [
            (1, "//! one"),
            (2, "// two"),
            (4, "/* three"),
            (5, "/* four */ five */"),
            (5, "// six"),
            (6, "// seven"),
        ];
        let expected = expected.map(|(line, text)| Comment { line, text });
        assert_eq!(parts.comments, expected);
        assert_eq!(parts.code.lines().count(), source.lines().count());
        assert!(!parts.code.contains("no") && parts.code.contains("fn f<'a>(x: &'a str)"));
    }

    #[test]
    fn what_does_not_end_is_no_panic() {
        for source in ["\"", "r#\"", "/* /*", "'", "'\\", "b", "br", "é'é"] {
            assert!(parts(source).code.len() <= source.len());
        }
    }
}
