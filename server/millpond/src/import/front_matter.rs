//! The head of a Markdown file: `---` with simple YAML, or `+++` with TOML.
//!
//! Of YAML the part that front matter uses: `key: value`, quoted values, `[a, b]`, lists of `- a`, and `>`/`|` blocks.
//! What is nested below a key that means nothing here is passed over.

use std::collections::HashMap;

/// What is wrong, and on which line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) reason: String,
}

fn fault<T>(line: usize, reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault {
        line,
        reason: reason.into(),
    })
}

/// The values of a file's head by lower-case key.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct FrontMatter {
    values: HashMap<String, Entry>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Entry {
    line: usize,
    /// Whether it was written as a list, rather than as one value.
    list: bool,
    values: Vec<String>,
}

impl FrontMatter {
    /// The first of the keys that has a value.
    pub(super) fn one(&self, keys: &[&str]) -> Option<&str> {
        self.entry(keys)
            .and_then(|entry| entry.values.first())
            .map(String::as_str)
    }

    /// The values of all the keys, in order.
    pub(super) fn all<'a>(&'a self, keys: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.entries(keys)
            .flat_map(|entry| &entry.values)
            .map(String::as_str)
    }

    /// The same, with what was not written as a list divided at its commas.
    pub(super) fn words<'a>(&'a self, keys: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        self.entries(keys).flat_map(|entry| {
            let list = entry.list;
            entry
                .values
                .iter()
                .flat_map(move |value| value.split(move |c| c == ',' && !list))
        })
    }

    fn entries<'a>(&'a self, keys: &'a [&'a str]) -> impl Iterator<Item = &'a Entry> {
        keys.iter().filter_map(|key| self.values.get(*key))
    }

    /// The line of the first of the keys that is there, or the first line.
    pub(super) fn line(&self, keys: &[&str]) -> usize {
        self.entry(keys).map_or(1, |entry| entry.line)
    }

    fn entry(&self, keys: &[&str]) -> Option<&Entry> {
        keys.iter()
            .filter_map(|key| self.values.get(*key))
            .find(|entry| !entry.values.is_empty())
    }

    fn set(&mut self, key: &str, line: usize, list: bool, values: Vec<String>) {
        let values = values
            .into_iter()
            .filter(|value| !value.is_empty())
            .collect();
        self.values
            .insert(key.to_lowercase(), Entry { line, list, values });
    }
}

/// Splits a file into its head and its text. Nothing when it has no head at all.
///
/// # Errors
/// A head that does not end, or that cannot be read, with the line of the file.
pub(super) fn split(file: &str) -> Result<Option<(FrontMatter, &str)>, Fault> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let Some(first) = file.lines().next().map(str::trim_end) else {
        return Ok(None);
    };
    if first != "---" && first != "+++" {
        return Ok(None);
    }
    let start = file.find('\n').map_or(file.len(), |at| at + 1);
    let mut end = start;
    for line in file[start..].split_inclusive('\n') {
        if line.trim_end() == first {
            let (head, text) = (&file[start..end], &file[end + line.len()..]);
            let values = if first == "+++" {
                toml(head)?
            } else {
                yaml(head)?
            };
            return Ok(Some((values, text)));
        }
        end += line.len();
    }
    fault(
        1,
        format!("the front matter that begins here has no closing `{first}`"),
    )
}

fn toml(head: &str) -> Result<FrontMatter, Fault> {
    let table: toml::Table = match head.parse() {
        Ok(table) => table,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start.min(head.len()));
            let line = head.as_bytes()[..at]
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count();
            return fault(line + 2, one_sentence(error.message()));
        }
    };
    let mut found = FrontMatter::default();
    let nested = ["taxonomies", "extra"]
        .iter()
        .filter_map(|name| table.get(*name)?.as_table());
    for (key, value) in nested.chain([&table]).flatten() {
        let line = head
            .lines()
            .position(|line| line.trim_start().starts_with(key.as_str()))
            .map_or(1, |at| at + 2);
        let values = match value {
            toml::Value::Array(values) => values.iter().filter_map(scalar).collect(),
            value => scalar(value).into_iter().collect(),
        };
        found.set(key, line, value.is_array(), values);
    }
    Ok(found)
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.trim().to_owned()),
        toml::Value::Table(_) | toml::Value::Array(_) => None,
        other => Some(other.to_string()),
    }
}

fn one_sentence(message: &str) -> String {
    message
        .lines()
        .next()
        .unwrap_or("this is not TOML")
        .trim_end_matches('.')
        .to_owned()
}

fn yaml(head: &str) -> Result<FrontMatter, Fault> {
    let mut found = FrontMatter::default();
    // `---` is the first line of the file.
    let mut lines = head
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 2, line.trim_end()))
        .peekable();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with([' ', '\t']) || line.starts_with("- ") {
            return fault(number, "this belongs to no key");
        }
        let Some((key, value)) = key_value(line) else {
            return fault(
                number,
                format!(
                    "expected `key: value`, found `{}`",
                    super::text::cut(line, 40)
                ),
            );
        };
        let below = std::iter::from_fn(|| lines.next_if(|(_, line)| continues(line)));
        let below: Vec<_> = below.collect();
        let values = match value {
            "" => list(&below),
            ">" | ">-" | ">+" => vec![block(&below, " ")],
            "|" | "|-" | "|+" => vec![block(&below, "\n")],
            value if value.starts_with('[') => inline_list(number, value, &below)?,
            value => vec![unquoted(number, value)?],
        };
        found.set(
            key,
            number,
            value.is_empty() || value.starts_with('['),
            values,
        );
    }
    Ok(found)
}

fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '));
    let apart = value.is_empty() || value.starts_with([' ', '\t']);
    let value = value.trim();
    (plain && apart).then_some((key.trim(), if value.starts_with('#') { "" } else { value }))
}

/// Whether a line belongs to the key above it.
fn continues(line: &str) -> bool {
    line.is_empty()
        || line.starts_with([' ', '\t'])
        || line == "-"
        || line.starts_with("- ")
        || line == "]"
}

/// The items of `- a` lines. Anything else below a key is nested, and means nothing here.
fn list(below: &[(usize, &str)]) -> Vec<String> {
    let items = below.iter().filter_map(|(number, line)| {
        let item = line.trim_start().strip_prefix('-')?;
        unquoted(*number, item.trim()).ok()
    });
    items.collect()
}

fn block(below: &[(usize, &str)], joint: &str) -> String {
    let lines: Vec<&str> = below.iter().map(|(_, line)| line.trim()).collect();
    lines.join(joint).trim().to_owned()
}

/// `[a, "b, c"]`, which may go on over the next lines.
fn inline_list(number: usize, value: &str, below: &[(usize, &str)]) -> Result<Vec<String>, Fault> {
    let whole = below.iter().fold(value.to_owned(), |whole, (_, line)| {
        whole + " " + line.trim()
    });
    let whole = whole.trim().strip_prefix('[').unwrap_or_default();
    let Some((inner, rest)) = whole.rsplit_once(']') else {
        return fault(number, "this list has no closing `]`");
    };
    if !rest.trim().is_empty() && !rest.trim().starts_with('#') {
        return fault(number, "something follows the closing `]`");
    }
    let mut items = Vec::new();
    let (mut item, mut quote) = (String::new(), None);
    for letter in inner.chars() {
        match (letter, quote) {
            ('"' | '\'', None) if item.trim().is_empty() => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            (',', None) => items.push(std::mem::take(&mut item).trim().to_owned()),
            (letter, _) => item.push(letter),
        }
    }
    if quote.is_some() {
        return fault(number, "a quotation mark in this list is not closed");
    }
    items.push(item.trim().to_owned());
    Ok(items)
}

/// A value without its quotes, or without the comment behind it.
fn unquoted(number: usize, value: &str) -> Result<String, Fault> {
    let Some(quote @ ('"' | '\'')) = value.chars().next() else {
        let end = value.find(" #").unwrap_or(value.len());
        return Ok(value[..end].trim().to_owned());
    };
    let mut text = String::new();
    let mut letters = value[1..].chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if quote == '"' => match letters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            '\'' if quote == '\'' && letters.as_str().starts_with('\'') => {
                letters.next();
                text.push('\'');
            }
            letter if letter == quote => return Ok(text),
            letter => text.push(letter),
        }
    }
    fault(number, "this value has no closing quotation mark")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn head(file: &str) -> FrontMatter {
        split(file).unwrap().unwrap().0
    }

    #[test]
    fn yaml_as_blogs_write_it() {
        let file = "\u{feff}---\r\nTitle: \"Tides: \\\"high\\\"\" \r\ndate: 2026-03-01 # a Sunday\r\ntags: [a, 'b, c', ]\r\n\
                    authors:\r\n  - One\r\n- 'It''s two'\r\nsummary: >\r\n  folded\r\n  text\r\nheader:\r\n  image: x\r\n\
                    draft: false\r\nempty:\r\n---\r\nBody\r\n";
        let (head, text) = split(file).unwrap().unwrap();
        assert_eq!(text, "Body\r\n");
        assert_eq!(head.one(&["title"]), Some("Tides: \"high\""));
        assert_eq!(head.one(&["date"]), Some("2026-03-01"));
        assert_eq!(head.all(&["tags"]).collect::<Vec<_>>(), ["a", "b, c"]);
        assert_eq!(
            head.all(&["authors"]).collect::<Vec<_>>(),
            ["One", "It's two"]
        );
        assert_eq!(head.one(&["description", "summary"]), Some("folded text"));
        assert_eq!(head.one(&["draft"]), Some("false"));
        assert_eq!(head.one(&["empty"]), None);
        assert_eq!(head.words(&["tags"]).collect::<Vec<_>>(), ["a", "b, c"]);
        let plain = split("---\ntags: a, b\n---\n").unwrap().unwrap().0;
        assert_eq!(
            plain.words(&["tags"]).map(str::trim).collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(head.line(&["date"]), 3);
    }

    #[test]
    fn toml_as_blogs_write_it() {
        let head = head(
            "+++\ntitle = \"T\"\ndate = 2026-03-01T10:00:00Z\ndraft = true\n[taxonomies]\ntags = [\"a\", \"b\"]\n+++\n",
        );
        assert_eq!(head.one(&["title"]), Some("T"));
        assert_eq!(head.one(&["date"]), Some("2026-03-01T10:00:00Z"));
        assert_eq!(head.one(&["draft"]), Some("true"));
        assert_eq!(head.all(&["tags"]).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn faults_name_the_line() {
        for (file, line) in [
            ("---\ntitle: x\n", 1),
            ("---\ntitle: x\nnonsense\n---\n", 3),
            ("---\n  floating: x\n---\n", 2),
            ("---\n\ntitle: \"open\n---\n", 3),
            ("---\ntags: [a, b\n---\n", 2),
            ("---\ntags: [a, 'b]\n---\n", 2),
            ("---\nurl:http\n---\n", 2),
            ("+++\na = 1\nb = = 2\n+++\n", 3),
        ] {
            assert_eq!(split(file).unwrap_err().line, line, "{file}");
        }
    }

    #[test]
    fn no_head_is_no_fault() {
        assert_eq!(split("# Text\n"), Ok(None));
        assert_eq!(split(""), Ok(None));
        assert_eq!(split("----\n"), Ok(None));
    }
}
