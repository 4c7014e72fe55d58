//! The statement of a template that is not ended: the engine says only what it found in its place.

use crate::markup::without_comments;
use millpond_site_format::Problem;

/// The statements that have an end, but for `set`, which may have one.
const WITH_END: [&str; 9] = [
    "for",
    "if",
    "block",
    "with",
    "macro",
    "call",
    "filter",
    "autoescape",
    "raw",
];

/// A statement that is open where another ends, or at the end of the template.
struct Unclosed<'t> {
    /// Byte at which the statement begins.
    at: usize,
    word: &'t str,
    /// Tag in the place of the statement's end; none at the end of the template.
    found: Option<&'t str>,
}

/// Returns the problem of a template that does not parse, with a hint, if a statement is not ended.
pub(super) fn unclosed(file: &str, source: &str) -> Option<Problem> {
    let text = without_comments(source);
    let Unclosed { at, word, found } = first(&text)?;
    let problem = Problem::new(file, "").at_offset(&text, at);
    let message = match found {
        Some(found) => {
            format!("`{{% {word} … %}}` is not ended: `{{% {found} %}}` comes first")
        }
        None => format!("`{{% {word} … %}}` is not ended"),
    };
    Some(Problem { message, ..problem }.hint(format!("write `{{% end{word} %}}` where it ends")))
}

fn first(text: &str) -> Option<Unclosed<'_>> {
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut begin = 0;
    while let Some(found) = text[begin..].find("{%") {
        let at = begin + found;
        let tag = &text[at + 2..];
        let length = tag.find("%}")?;
        begin = at + 2 + length + 2;
        let body = tag[..length].trim_start_matches(['-', '+']).trim_start();
        let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (word, rest) = body.split_at(end.unwrap_or(body.len()));
        let last = open.last().copied();
        let is_raw = last.is_some_and(|(_, word)| word == "raw");
        let opens = WITH_END.contains(&word) || word == "set" && !rest.contains('=');
        match word.strip_prefix("end") {
            _ if is_raw && word != "endraw" => {}
            Some(ended) => match last {
                Some((_, word)) if word == ended => drop(open.pop()),
                Some((at, open)) => {
                    return Some(Unclosed {
                        at,
                        word: open,
                        found: Some(word),
                    });
                }
                None => return None,
            },
            None if opens => open.push((at, word)),
            None => {}
        }
    }
    let (at, word) = open.pop()?;
    Some(Unclosed {
        at,
        word,
        found: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_statement_that_is_open_is_found() {
        let found = |text| first(text).map(|it| (it.at, it.word, it.found));
        for (text, expected) in [
            (
                "{% block a %}{% for b in c %}{{ b }}{% endblock %}",
                Some((13, "for", Some("endblock"))),
            ),
            ("{%- if a -%}x{% else %}", Some((0, "if", None))),
            ("{% set a %}{% endfor %}", Some((0, "set", Some("endfor")))),
            ("{% set a = 1 %}{% if a %}{% endif %}", None),
            ("{% raw %}{% if %}{% endraw %}", None),
            ("{% endif %}", None),
            ("{% if", None),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
