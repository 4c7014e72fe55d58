//! Markdown: front matter in YAML between `---`, or in TOML between `+++`, and the body. The title
//! may be the first heading of the body.

use crate::error::{DataError, FilePlace, ReadError};
use crate::json::with_path;
use crate::row::{FieldValue, RowWriter, nul};
use crate::{toml_rows, yaml};

pub(crate) fn read(
    text: &str,
    path: Option<&str>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let MarkdownParts { front, mut body } = split(text)?;
    let mut fields = match front {
        None => Vec::new(),
        Some((fence, front)) => {
            let parsed = if fence == "---" {
                yaml::object(front)
            } else {
                toml_rows::object(front)
            };
            parsed.map_err(|error| DataError {
                place: error.place.after(1),
                ..error
            })?
        }
    };
    let place = FilePlace::line(1);
    if fields.iter().any(|(name, _)| name == "body") {
        return Err(DataError::new(place, "the front matter has a body")
            .remedy("the text below the front matter is the body: rename this key")
            .into());
    }
    if body.contains('\0') {
        return Err(nul(place, "body").into());
    }
    let has_title = fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("title"));
    if let Some((title, rest)) = heading(body).filter(|_| !has_title) {
        fields.insert(0, ("title".to_owned(), title.into()));
        body = rest;
    }
    // The slug comes first, also where the front matter has it.
    if let Some(own) = fields.iter().position(|(name, _)| name == "slug") {
        let own = fields.remove(own);
        fields.insert(0, own);
    }
    let mut row = with_path(path, fields);
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
    /// The fence and the front matter, if there is one.
    front: Option<(&'static str, &'t str)>,
    body: &'t str,
}

fn split(text: &str) -> Result<MarkdownParts<'_>, DataError> {
    let first = text.lines().next().unwrap_or_default().trim_end();
    let Some(fence) = ["---", "+++"].into_iter().find(|fence| *fence == first) else {
        return Ok(MarkdownParts {
            front: None,
            body: text,
        });
    };
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        if line.trim_end() == fence {
            let body = text[at + line.len()..].trim_start_matches(['\r', '\n']);
            return Ok(MarkdownParts {
                front: Some((fence, &text[start..at])),
                body,
            });
        }
        at += line.len();
    }
    Err(
        DataError::new(FilePlace::line(1), "the front matter has no end")
            .remedy(format!("end it with a line {fence}")),
    )
}
