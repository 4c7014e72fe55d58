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
    while let Some((at, name)) = next_name(rest) {
        pieces.push(RedirectPiece::Text(rest[..at].to_owned()));
        let source = source(name).ok_or_else(|| name.to_owned())?;
        pieces.push(RedirectPiece::Value(source));
        rest = &rest[at + 1 + name.len()..];
    }
    pieces.push(RedirectPiece::Text(rest.to_owned()));
    Ok(pieces)
}

pub(super) fn names(target: &str) -> impl Iterator<Item = &str> {
    let mut rest = target;
    std::iter::from_fn(move || {
        let (at, name) = next_name(rest)?;
        rest = &rest[at + 1 + name.len()..];
        Some(name)
    })
}

/// The first `:name` and its place. A colon before a digit, as in `/at/12:30`, begins none.
fn next_name(text: &str) -> Option<(usize, &str)> {
    text.match_indices(':').find_map(|(at, _)| {
        let after = &text[at + 1..];
        let end = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(after.len());
        let name = &after[..end];
        let is_name = !name.is_empty() && !name.as_bytes()[0].is_ascii_digit();
        is_name.then_some((at, name))
    })
}
