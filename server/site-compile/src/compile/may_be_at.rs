//! What may be at an address in which values stand for parts: `/{{ lang }}/plays/{{ play.slug }}`.
//!
//! A value may be any text, with slashes too. So an address fits a path if some values make them
//! equal.

use millpond_http::path;

use crate::{compile::Pages, markup::VALUE, page::Endpoint};
use millpond_site_format::route::Segment;

/// Text that a place in a path may have.
#[derive(Clone, Copy)]
enum PathPiece {
    Char(char),
    /// One character, but no slash.
    One,
    /// Any number of characters, but no slash.
    Part,
    /// Any text.
    Any,
}

/// The endpoint that answers at an address of the site: the one that the router finds, else the
/// only one that may be there.
pub fn endpoint_at<'p>(pages: &'p Pages, target: &str) -> Option<&'p Endpoint> {
    let sample = target.replace(VALUE, "1");
    let path = path::normalize(&sample).ok()?;
    if let Some(found) = pages.router.find(&path) {
        return Some(&pages.endpoints[found.page]);
    }
    let mut all = candidates(pages, target);
    let only = all.next()?;
    all.next().is_none().then_some(only)
}

/// The endpoints that may answer at a target with values in its path; none if there are no values.
pub fn candidates<'p>(
    pages: &'p Pages,
    target: &str,
) -> impl Iterator<Item = &'p Endpoint> + use<'p> {
    let is_chosen = target.starts_with('/') && target.contains(VALUE);
    let target = of_target(target);
    let endpoints = pages.endpoints.iter().filter(move |_| is_chosen);
    endpoints.filter(move |endpoint| {
        let mut shapes = endpoint.shapes().into_iter();
        shapes.any(|shape| have_common(&of_segments(&shape.segments), &target))
    })
}

/// True if a file may be at a target.
pub fn may_be_file(path: &str, target: &str) -> bool {
    let before = target.split(VALUE).next().unwrap_or_default();
    let after = target.rsplit(VALUE).next().unwrap_or_default();
    if !path.starts_with(before) || !path.ends_with(after) {
        return false;
    }
    let path: Vec<PathPiece> = path.chars().map(PathPiece::Char).collect();
    have_common(&path, &of_target(target))
}

fn of_target(target: &str) -> Vec<PathPiece> {
    let pieces = target.chars().map(|c| match c {
        VALUE => PathPiece::Any,
        c => PathPiece::Char(c),
    });
    pieces.collect()
}

fn of_segments(segments: &[Segment]) -> Vec<PathPiece> {
    if segments.is_empty() {
        return vec![PathPiece::Char('/')];
    }
    let mut pieces = Vec::new();
    for segment in segments {
        pieces.push(PathPiece::Char('/'));
        match segment {
            Segment::Literal(text) => pieces.extend(text.chars().map(PathPiece::Char)),
            Segment::Param(_) => pieces.extend([PathPiece::One, PathPiece::Part]),
            Segment::Rest(_) => pieces.extend([PathPiece::One, PathPiece::Any]),
        }
    }
    pieces
}

/// True if a text fits both patterns. Each pair of places is looked at once.
fn have_common(one: &[PathPiece], other: &[PathPiece]) -> bool {
    let width = other.len() + 1;
    let mut seen = vec![false; (one.len() + 1) * width];
    let mut open = vec![(0, 0)];
    while let Some((at, beside)) = open.pop() {
        if std::mem::replace(&mut seen[at * width + beside], true) {
            continue;
        }
        let (first, second) = (one.get(at), other.get(beside));
        if first.is_none() && second.is_none() {
            return true;
        }
        let (repeats, others) = (first.is_some_and(repeats), second.is_some_and(repeats));
        open.extend(repeats.then_some((at + 1, beside)));
        open.extend(others.then_some((at, beside + 1)));
        if let (Some(first), Some(second)) = (first, second)
            && agree(*first, *second)
        {
            open.push((at + usize::from(!repeats), beside + usize::from(!others)));
        }
    }
    false
}

fn repeats(piece: &PathPiece) -> bool {
    matches!(piece, PathPiece::Part | PathPiece::Any)
}

/// True if a character may be both.
fn agree(one: PathPiece, other: PathPiece) -> bool {
    match (one, other) {
        (PathPiece::Char(one), PathPiece::Char(other)) => one == other,
        (PathPiece::Char(c), PathPiece::One | PathPiece::Part)
        | (PathPiece::One | PathPiece::Part, PathPiece::Char(c)) => c != '/',
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use millpond_site_format::route::Pattern;

    #[test]
    fn a_value_may_be_any_text() {
        let fits = |stem: &str, target: &str| {
            let pattern = Pattern::parse(Path::new("x"), stem).unwrap();
            let target = target.replace('*', &VALUE.to_string());
            have_common(&of_segments(&pattern.segments), &of_target(&target))
        };
        for (stem, target) in [
            ("[lang]/play/[id]", "/*/play/*"),
            ("de/play/[id]", "/*/play/7"),
            ("docs/[a]/[b]", "/docs/*"),
            ("docs/[a]/[b]", "/*"),
            ("index", "/*"),
            ("play-old", "/play-*"),
            ("play/[id]", "/play/a-*.html"),
            ("a/b", "*"),
        ] {
            assert!(fits(stem, target), "{stem} {target}");
        }
        for (stem, target) in [
            ("[lang]/play/[id]", "/*/plays/*"),
            ("docs/[a]", "/docs"),
            ("docs/[a]", "/docs/"),
            ("docs/[a]", "/dosc/*"),
            ("play", "/play-*"),
            ("a/b", "/*/c"),
        ] {
            assert!(!fits(stem, target), "{stem} {target}");
        }
        assert!(may_be_file("/img/a/1.png", "/img/\u{1}.png"));
        assert!(!may_be_file("/img/a/1.png", "/\u{1}.jpg"));
    }

    #[test]
    fn the_work_is_bounded_by_the_lengths() {
        let one = vec![PathPiece::Any; 300];
        let other: Vec<PathPiece> = "a".repeat(300).chars().map(PathPiece::Char).collect();
        assert!(have_common(&one, &other));
    }
}
