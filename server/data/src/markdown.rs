//! Markdown: front matter in YAML between `---`, or in TOML between `+++`, and the body.

use crate::error::{DataError, FilePlace, ReadError};
use crate::row::{FieldValue, RowWriter, nul, of_json};
use crate::{toml_rows, yaml};

pub(crate) fn read(
    text: &str,
    slug: Option<&str>,
    rows: &mut RowWriter<'_>,
) -> Result<(), ReadError> {
    let MarkdownParts { front, body } = split(text)?;
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
    let own = fields.iter().position(|(name, _)| name == "slug");
    let own = own.map(|at| of_json(fields.remove(at).1));
    let slug = own.or_else(|| slug.map(|slug| FieldValue::Text(slug.into())));
    let mut row: Vec<_> = slug
        .map(|slug| ("slug".to_owned(), slug))
        .into_iter()
        .collect();
    row.extend(fields.into_iter().map(|(name, json)| (name, of_json(json))));
    row.push(("body".to_owned(), FieldValue::Text(body.into())));
    rows.named(place, row)
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
