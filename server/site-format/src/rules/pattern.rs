//! Path patterns of the configuration: exact, with `:name` for one segment, and with one `*` for
//! the rest of the path.

use std::fmt;

use millpond_http::path;

use crate::parameter_names::foreign_parameter;

/// A path, or many: `/about`, `/blog/:year/:slug`, `/old/*`, `/*.php`.
///
/// It is held against paths in their normal form ([`millpond_http::path::normalize`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    pieces: Vec<PatternPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    Text(String),
    /// One part of the path, not empty.
    Name(String),
    /// Any text, also with slashes and also empty, up to the text that follows.
    Rest,
}

impl PathPattern {
    /// Reads a pattern; what is wrong with it is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(mark) = text.chars().find(|c| matches!(c, '?' | '#')) {
            return Err(format!(
                "`{text}` has a `{mark}`; a rule looks at the path alone"
            ));
        }
        if let Some(fault) = foreign_parameter(text) {
            return Err(fault);
        }
        // So written they are the path's own.
        let own = [("%7B", "{"), ("%7D", "}"), ("%5B", "["), ("%5D", "]")];
        let decoded = |text: String, (code, sign): (&str, &str)| text.replace(code, sign);
        let decoded = own.into_iter().fold(text.to_owned(), decoded);
        let text = decoded.as_str();
        match path::normalize(text) {
            Err(error) => return Err(format!("`{text}` is no path: {error}")),
            Ok(normal) if normal != text => {
                return Err(format!(
                    "`{text}` is not the form in which paths are compared; write `{normal}`"
                ));
            }
            Ok(_) => {}
        }
        let pieces = pieces(text)?;
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// The path, if it is only one.
    pub fn exact(&self) -> Option<&str> {
        let is_text = |piece: &PatternPart| matches!(piece, PatternPart::Text(_));
        self.pieces.iter().all(is_text).then_some(&*self.text)
    }

    /// The part of the path between its first two slashes, if every path that matches has the same
    /// one.
    pub fn first_part(&self) -> Option<&str> {
        match self.pieces.first() {
            Some(PatternPart::Text(text)) => Some(text[1..].split_once('/')?.0),
            _ => None,
        }
    }

    /// The names that a match gives values to, in order; that of `*` is `*`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            PatternPart::Text(_) => None,
            PatternPart::Name(name) => Some(name.as_str()),
            PatternPart::Rest => Some("*"),
        })
    }

    /// True if `path` is among its paths. Allocates nothing.
    pub fn matches(&self, path: &str) -> bool {
        self.walk(path, |_| {}).is_some()
    }

    /// The text at each of [`Self::names`], if the pattern matches `path`.
    pub fn capture<'p>(&self, path: &'p str) -> Option<Vec<&'p str>> {
        let mut values = Vec::new();
        self.walk(path, |value| values.push(value))?;
        Some(values)
    }

    /// A path of it, with `word` at each name and `rest` at the `*`.
    pub fn sample(&self, word: &str, rest: &str) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            PatternPart::Text(text) => text.as_str(),
            PatternPart::Name(_) => word,
            PatternPart::Rest => rest,
        });
        pieces.collect()
    }

    fn walk<'p>(&self, path: &'p str, mut found: impl FnMut(&'p str)) -> Option<()> {
        let mut left = path;
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                PatternPart::Text(text) => left = left.strip_prefix(text.as_str())?,
                PatternPart::Name(_) => {
                    let end = left.find('/').unwrap_or(left.len());
                    if end == 0 {
                        return None;
                    }
                    found(&left[..end]);
                    left = &left[end..];
                }
                PatternPart::Rest => {
                    // Only text follows a `*`: that is checked when the pattern is read.
                    let after = match self.pieces.get(at + 1) {
                        Some(PatternPart::Text(text)) => text.as_str(),
                        _ => "",
                    };
                    found(left.strip_suffix(after)?);
                    return Some(());
                }
            }
        }
        left.is_empty().then_some(())
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Paths at which a group of settings applies: none, all, or some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nowhere.
    #[default]
    Nowhere,
    /// Everywhere.
    Everywhere,
    /// At the paths that match one of these.
    Paths(Vec<PathPattern>),
}

fn pieces(text: &str) -> Result<Vec<PatternPart>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest_of_text = text;
    while let Some(next) = rest_of_text.chars().next() {
        if next == '*' {
            if pieces.contains(&PatternPart::Rest) {
                return Err(format!("`{text}` has more than one `*`"));
            }
            flush(&mut literal, &mut pieces);
            pieces.push(PatternPart::Rest);
            rest_of_text = &rest_of_text[1..];
        } else if next == ':' && literal.ends_with('/') {
            let end = rest_of_text.find('/').unwrap_or(rest_of_text.len());
            let name = PatternPart::Name(name(text, &rest_of_text[1..end])?);
            if pieces.contains(&PatternPart::Rest) {
                return Err(format!("`{text}` has a placeholder behind its `*`"));
            }
            if pieces.contains(&name) {
                return Err(format!("`{text}` names `{}` twice", &rest_of_text[..end]));
            }
            flush(&mut literal, &mut pieces);
            pieces.push(name);
            rest_of_text = &rest_of_text[end..];
        } else {
            literal.push(next);
            rest_of_text = &rest_of_text[next.len_utf8()..];
        }
    }
    flush(&mut literal, &mut pieces);
    Ok(pieces)
}

fn flush(literal: &mut String, pieces: &mut Vec<PatternPart>) {
    if !literal.is_empty() {
        pieces.push(PatternPart::Text(std::mem::take(literal)));
    }
}

fn name(pattern: &str, name: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(good) {
        return Err(format!(
            "`:{name}` in `{pattern}` is no placeholder: it fills a whole part of the path, and its name has letters, digits \
             and underscores; before an ending stands `*`, as in `/:year/*.html`"
        ));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(pattern: &str, path: &str) -> Option<String> {
        let pattern = PathPattern::parse(pattern).unwrap();
        let captured = pattern.capture(path);
        assert_eq!(captured.is_some(), pattern.matches(path));
        captured.map(|values| values.join("|"))
    }

    #[test]
    fn what_matches() {
        for (pattern, path, values) in [
            ("/a", "/a", Some("")),
            ("/a", "/a/", None),
            ("/a", "/ab", None),
            ("/:x", "/a", Some("a")),
            ("/:x", "/", None),
            ("/:x", "/a/b", None),
            ("/:x/c", "/a/c", Some("a")),
            ("/blog/:year/:slug", "/blog/2026/tide", Some("2026|tide")),
            ("/blog/:year/", "/blog/2026", None),
            ("/wiki/Help:Contents", "/wiki/Help:Contents", Some("")),
            ("/old/*", "/old/", Some("")),
            ("/old/*", "/old/a/b", Some("a/b")),
            ("/old/*", "/old", None),
            ("/*", "/", Some("")),
            ("/*.php", "/a/b.php", Some("a/b")),
            ("/*.php", "/b.phpx", None),
            ("/a*a", "/a", None),
            ("/:lang/*/x", "/de/a/b/x", Some("de|a/b")),
            ("/ä b", "/ä b", Some("")),
            ("/a{b", "/a{b", Some("")),
            ("/chunks/[id].js", "/chunks/[id].js", Some("")),
        ] {
            assert_eq!(
                captured(pattern, path).as_deref(),
                values,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern() {
        for (pattern, said) in [
            ("a", "does not begin with a slash"),
            ("", "does not begin with a slash"),
            ("/a?b", "the path alone"),
            ("/a#b", "the path alone"),
            ("/a%20b", "write `/a b`"),
            ("/a/../b", "write `/b`"),
            ("/a\nb", "control"),
            ("/*/*", "more than one `*`"),
            ("/*/:x", "behind its `*`"),
            ("/:x/:x", "twice"),
            ("/:", "no placeholder"),
            ("/:x.html", "no placeholder"),
            ("/{lang}/admin/*", "a parameter is written `:lang`"),
            ("/{*rest}", "`{*rest}` in `/{*rest}` means nothing here"),
            ("/a-{}.csv", "a parameter is written `:name`"),
            ("/[lang]/admin/*", "a parameter is written `:lang`"),
            ("/x/<id>", "a parameter is written `:id`"),
        ] {
            let error = PathPattern::parse(pattern).expect_err(pattern);
            assert!(error.contains(said), "{pattern}: {error}");
        }
    }

    #[test]
    fn the_part_that_all_its_paths_begin_with() {
        for (pattern, part) in [
            ("/old/*", Some("old")),
            ("/old/:x", Some("old")),
            ("/old*", None),
            ("/:x/y", None),
            ("/", None),
        ] {
            let pattern = PathPattern::parse(pattern).unwrap();
            assert_eq!(pattern.first_part(), part, "{pattern}");
        }
    }
}
