//! Entity tags (RFC 9110 section 8.8.3): a hash of the content, with a suffix for each coding
//! and revision of its encoder.

use std::fmt::Write;

use super::Coding;

const DIGITS: usize = 32;

/// The hash of a content, as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentHash([u8; DIGITS]);

impl ContentHash {
    pub(super) fn of(content: &[u8]) -> Self {
        let hash = twox_hash::XxHash3_128::oneshot(content);
        let digits =
            std::array::from_fn(|i| b"0123456789abcdef"[(hash >> (124 - 4 * i)) as usize & 15]);
        Self(digits)
    }

    /// The entity tag of the content in `coding`, with its quotes.
    pub(super) fn tag(&self, coding: Option<Coding>) -> String {
        let mut tag = String::with_capacity(DIGITS + 8);
        let digits = std::str::from_utf8(&self.0).unwrap_or_default();
        // Writing to a String does not fail.
        let _ = write!(tag, "\"{digits}{}\"", coding.map_or("", Coding::suffix));
        tag
    }

    /// Returns the coding of this content that `opaque`, a tag without its quotes, names; none if
    /// it is another content.
    #[inline]
    pub(super) fn names(&self, opaque: &[u8]) -> Option<Option<Coding>> {
        let suffix = opaque.strip_prefix(&self.0)?;
        if suffix.is_empty() {
            return Some(None);
        }
        Coding::ALL
            .into_iter()
            .find(|coding| coding.suffix().as_bytes() == suffix)
            .map(Some)
    }
}

/// Returns the entity tag that a [`Prepared`](super::Prepared) with this body has, with its quotes.
#[must_use]
pub fn entity_tag(body: &[u8]) -> String {
    ContentHash::of(body).tag(None)
}

/// One entity tag of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub(super) weak: bool,
    pub(super) opaque: &'a [u8],
}

/// The tags of a list such as `"a", W/"b"`, up to the first that is malformed.
pub(super) fn tags(mut list: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    std::iter::from_fn(move || {
        let start = list
            .iter()
            .position(|b| !matches!(b, b' ' | b'\t' | b','))?;
        let rest = &list[start..];
        let (weak, rest) = match rest.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let rest = rest.strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', rest)?;
        list = &rest[end + 1..];
        Some(Tag {
            weak,
            opaque: &rest[..end],
        })
    })
}

/// The tag that `value` is; none if it is anything else, or a list of them.
pub(super) fn only_tag(value: &[u8]) -> Option<Tag<'_>> {
    let tag = tags(value).next()?;
    let len = tag.opaque.len() + if tag.weak { 4 } else { 2 };
    (value.len() == len).then_some(tag)
}
