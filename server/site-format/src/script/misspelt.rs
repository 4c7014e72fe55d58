//! Comments that were probably meant as lines that steer.
//!
//! A comment is one if the word before its first colon is nearly such a line's, or if the line
//! would be one with a colon behind its first word. The first letter must be right, so that
//! `-- Note: …`, `-- same: …` and other words of English stay comments.

use super::{DIRECTIVES, NamedQuery, Rows, Script};
use crate::access::{DirectiveLine, WORDS};

/// The line as it was probably meant; none if the comment is one.
pub(super) fn meant(line: &str) -> Option<String> {
    let text = line.trim().strip_prefix("--")?.trim();
    match text.split_once(':') {
        Some((word, rest)) => {
            let rest = rest.trim();
            if let Some(near) = near(word).filter(|near| !is_english(near) || would_do(near, rest))
            {
                return Some(format!("-- {near}: {rest}"));
            }
        }
        None if near(text) == Some("logout") => return Some("-- logout".to_owned()),
        None => {}
    }
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let is_one = words().any(|known| known == word) && would_do(word, rest.trim());
    is_one.then(|| format!("-- {word}: {}", rest.trim()))
}

fn words() -> impl Iterator<Item = &'static str> {
    DIRECTIVES.split(' ').chain(WORDS.iter().copied())
}

/// The word of such a line that is like this one: one letter is wrong, or two of a long word.
fn near(word: &str) -> Option<&'static str> {
    let word = word.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    let distance = |known: &str| strsim::osa_distance(&word, known);
    let is_near = |known: &&str| {
        let most = if known.len() < 6 { 1 } else { 2 };
        known.as_bytes().first() == word.as_bytes().first() && distance(known) <= most
    };
    words().filter(is_near).min_by_key(|known| distance(known))
}

/// True if words of English are near: `-- Orders: newest first`, `-- Required: a title`.
fn is_english(word: &str) -> bool {
    matches!(
        word,
        "name"
            | "order"
            | "file"
            | "claims"
            | "require"
            | "hash"
            | "created"
            | "json"
            | "language"
            | "csv"
            | "bytes"
            | "invalid"
            | "message"
            | "until"
    )
}

/// True if the line would be right with a colon behind its word.
fn would_do(word: &str, rest: &str) -> bool {
    // What takes any word would take the words of a sentence.
    if rest.is_empty() || matches!(word, "depends" | "vary" | "logout") {
        return false;
    }
    let line = DirectiveLine {
        number: 1,
        text: String::new(),
    };
    let query = NamedQuery {
        name: String::new(),
        rows: Rows::Many,
        otherwise: None,
        sql: String::new(),
        offset: 0,
        line: 1,
        max_age: None,
        depends: Vec::new(),
    };
    let mut script = Script {
        queries: vec![query],
        ..Script::default()
    };
    script.apply_directive(word, rest, &line, 0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found_and_comments_stay_comments() {
        for (line, expected) in [
            ("-- parm: id integer", "-- param: id integer"),
            ("-- redirct: /x", "-- redirect: /x"),
            ("-- Param: id integer", "-- param: id integer"),
            ("-- params: id integer", "-- param: id integer"),
            ("-- name : a :one", "-- name: a :one"),
            ("--nmae: a :one", "-- name: a :one"),
            ("-- max_age: 60s", "-- max-age: 60s"),
            ("-- maxage: 60s", "-- max-age: 60s"),
            ("-- claim: user = a.id", "-- claims: user = a.id"),
            ("-- requires: claims.user", "-- require: claims.user"),
            ("-- logut", "-- logout"),
            ("-- byte: a.data", "-- bytes: a.data"),
            (
                "-- bytes a.data type a.kind",
                "-- bytes: a.data type a.kind",
            ),
            ("-- name a :one", "-- name: a :one"),
            ("-- param id integer = 1", "-- param: id integer = 1"),
            ("-- redirect /x?id=:id", "-- redirect: /x?id=:id"),
            ("-- max-age 60s", "-- max-age: 60s"),
            ("-- createt: /items/:id", "-- created: /items/:id"),
            ("-- JSON: items", "-- json: items"),
            ("-- json items", "-- json: items"),
            ("-- invald: /albums/new", "-- invalid: /albums/new"),
            ("-- crawls: no", "-- crawl: no"),
            ("-- mesage: a = \"b\"", "-- message: a = \"b\""),
        ] {
            assert_eq!(meant(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "-- Note: this is one",
            "-- Message: of the day",
            "-- Invalid: what has no title",
            "-- message of the day",
            "-- Orders: newest first",
            "-- Created: 2026-11-26, by Ann",
            "-- creates: a row",
            "-- JSON: see below",
            "-- Language: that of the visitor",
            "-- Required: a title",
            "-- Names: of members",
            "-- note: name",
            "-- same: as above",
            "-- pages: of ten",
            "-- name of the article",
            "-- param",
            "-- claims",
            "-- redirect the visitor to /x",
            "-- depends on comment",
            "-- vary",
            "-- bytes of the picture",
            "-- Bytes: as they were sent",
            "-- The name: it is unique",
            "-- orders are kept for a year: see the law",
            "-- https://example.org/",
            "-- a : b",
            "--",
            "select 1 -- parm: x",
        ] {
            assert_eq!(meant(line), None, "{line}");
        }
    }
}
