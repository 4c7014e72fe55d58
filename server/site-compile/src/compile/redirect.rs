//! Targets of redirects: `/read?id=:id#comment-:comment_id`.

use crate::page::redirect_target::{ArgumentSource, RedirectPiece};

/// Cuts a target at its `:name`s.
///
/// # Errors
/// The first name for which there is no source.
pub fn redirect(
    target: &str,
    source: impl Fn(&str) -> Option<ArgumentSource>,
) -> Result<Vec<RedirectPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = target;
    while let Some(next) = next_name(rest) {
        pieces.push(RedirectPiece::Text(rest[..next.start].to_owned()));
        let source = source(next.name).ok_or_else(|| next.name.to_owned())?;
        pieces.push(match next.is_slug {
            true => RedirectPiece::Slug(source),
            false => RedirectPiece::Value(source),
        });
        rest = &rest[next.end..];
    }
    pieces.push(RedirectPiece::Text(rest.to_owned()));
    Ok(pieces)
}

pub(super) fn names(target: &str) -> impl Iterator<Item = &str> {
    let mut rest = target;
    std::iter::from_fn(move || {
        let next = next_name(rest)?;
        rest = &rest[next.end..];
        Some(next.name)
    })
}

/// A `:name`, or a `:slug(name)`, with its place.
struct TargetName<'t> {
    start: usize,
    end: usize,
    name: &'t str,
    is_slug: bool,
}

/// The first name. A colon before a digit, as in `/at/12:30`, begins none.
fn next_name(text: &str) -> Option<TargetName<'_>> {
    text.match_indices(':').find_map(|(start, _)| {
        let name = name_at(&text[start + 1..])?;
        let end = start + 1 + name.len();
        let inner = text[end..].strip_prefix('(').and_then(name_at);
        let inner = inner.filter(|inner| text[end + 1 + inner.len()..].starts_with(')'));
        Some(match inner.filter(|_| name == "slug") {
            Some(inner) => TargetName {
                start,
                end: end + inner.len() + 2,
                name: inner,
                is_slug: true,
            },
            None => TargetName {
                start,
                end,
                name,
                is_slug: false,
            },
        })
    })
}

/// The name with which a text begins.
fn name_at(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let name = &text[..end.unwrap_or(text.len())];
    (!name.is_empty() && !name.as_bytes()[0].is_ascii_digit()).then_some(name)
}
