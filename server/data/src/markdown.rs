//! Markdown: front matter in YAML between `---`, or in TOML between `+++`, and the body. The title
//! may be the first heading of the body.

use crate::error::{DataError, FilePlace, ReadError};
use crate::name::column_name;
use crate::row::{FieldValue, RowWriter, nul};
use crate::row_name::{RowName, is_named, with_name};
use crate::{toml_rows, yaml};

pub(crate) fn read(
    text: &str,
    name: Option<&RowName>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let MarkdownParts { front, mut body } = split(text)?;
    let mut fields = match front {
        None => Vec::new(),
        Some(front) => {
            let parsed = match front.fence {
                "---" => yaml::object(front.text),
                _ => toml_rows::object(front.text),
            };
            parsed.map_err(|error| DataError {
                place: error.place.after(front.lines_before),
                ..error
            })?
        }
    };
    let place = FilePlace::line(1);
    if fields.iter().any(|(name, _)| is_named(name, "body")) {
        return Err(DataError::new(place, "the front matter has a body")
            .remedy("the text below the front matter is the body: rename this key")
            .into());
    }
    if body.contains('\0') {
        return Err(nul(place, "body").into());
    }
    let has_title = fields.iter().any(|(name, _)| is_named(name, "title"));
    if let Some((title, rest)) = heading(body).filter(|_| !has_title) {
        fields.insert(0, ("title".to_owned(), title.into()));
        body = rest;
    }
    // The slug comes first, also where the front matter has it.
    if let Some(own) = fields.iter().position(|(name, _)| is_named(name, "slug")) {
        let own = fields.remove(own);
        fields.insert(0, own);
    }
    let mut row = with_name(name, fields);
    row.push(("body".to_owned(), FieldValue::Text(body.into())));
    rows.named(place, row)
}

/// The text of the heading `# …` with which a body begins, and the body behind it.
fn heading(body: &str) -> Option<(&str, &str)> {
    let body = body.trim_start_matches(['\r', '\n']);
    let (line, rest) = body.split_once('\n').unwrap_or((body, ""));
    let text = line.strip_prefix('#')?;
    if !text.starts_with([' ', '\t']) {
        return None;
    }
    let text = text.trim();
    // Signs at the end close the heading.
    let open = text.trim_end_matches('#');
    let is_closed = open.is_empty() || open.ends_with([' ', '\t']);
    let text = if is_closed { open.trim_end() } else { text };
    (!text.is_empty()).then(|| (text, rest.trim_start_matches(['\r', '\n'])))
}

/// The parts of a file.
struct MarkdownParts<'t> {
    front: Option<FrontMatter<'t>>,
    body: &'t str,
}

/// Text between the fences.
struct FrontMatter<'t> {
    fence: &'static str,
    text: &'t str,
    /// The number of lines in front of it, with that of the fence.
    lines_before: u64,
}

/// Empty lines in front of the first fence are passed over. Behind them, a fence without a second
/// one is a line of the body.
fn split(text: &str) -> Result<MarkdownParts<'_>, DataError> {
    let body_alone = MarkdownParts {
        front: None,
        body: text,
    };
    let mut start = 0;
    let mut lines_before = 0;
    let mut lines = text.split_inclusive('\n');
    let first = lines.find_map(|line| {
        start += line.len();
        lines_before += 1;
        (!line.trim().is_empty()).then_some(line.trim_end())
    });
    let mut fences = ["---", "+++"].into_iter();
    let Some(fence) = fences.find(|fence| Some(*fence) == first) else {
        // Fields that are not read may say that it is a draft.
        let kind = first.and_then(|first| first.strip_prefix("---"));
        let is_named = |kind: &str| kind.starts_with(|sign: char| sign.is_ascii_alphabetic());
        let json = text.trim_start().strip_prefix('{').map(str::trim_start);
        if kind.is_some_and(is_named) || json.is_some_and(|json| json.starts_with('"')) {
            let place = FilePlace::line(lines_before);
            return Err(DataError::new(
                place,
                "a front matter in another format than YAML and TOML",
            )
            .remedy("write it in YAML between two lines ---"));
        }
        return Ok(body_alone);
    };
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == fence {
            let front = FrontMatter {
                fence,
                text: &text[start..at],
                lines_before,
            };
            return Ok(MarkdownParts {
                front: Some(front),
                body: text[at + line.len()..].trim_start_matches(['\r', '\n']),
            });
        }
        at += line.len();
    }
    if lines_before > 1 {
        return Ok(body_alone);
    }
    Err(
        DataError::new(FilePlace::line(1), "the front matter has no end")
            .remedy(format!("end it with a line {fence}")),
    )
}

/// The body of a file; none if its front matter has no end.
pub(crate) fn body(text: &str) -> Option<&str> {
    split(text).ok().map(|parts| parts.body)
}

/// The line of a field of the front matter, by the name of its column.
pub(crate) fn field_line(text: &str, column: &str) -> Option<u64> {
    let front = split(text).ok()?.front?;
    let sign = if front.fence == "---" { ':' } else { '=' };
    let is_field = |line: &str| {
        let name = line.split_once(sign).map(|(name, _)| name);
        let name = name.filter(|name| !name.starts_with([' ', '\t', '-', '#']));
        let name = name.map(|name| name.trim().trim_matches(['"', '\'']));
        name.and_then(column_name).as_deref() == Some(column)
    };
    let at = front.text.lines().position(is_field)?;
    Some(front.lines_before + at as u64 + 1)
}
