//! The lines of a file around a fault.

use std::{fs, ops::Range, path::Path};

use serde_json::{Value as Json, json};

use millpond_site_format::folder::MAX_SOURCE;

/// Lines before and after.
const AROUND: usize = 4;
/// Characters of a line, or of a part of the line with the fault.
const WIDEST: usize = 160;

/// The lines around a range of bytes in `text`, with the part of the range in its first line
/// marked.
pub(super) fn around(text: &str, range: Range<usize>) -> Json {
    let (line, start) = place(text, range.start);
    let marked = text.get(range).unwrap_or_default();
    let width = marked.lines().next().unwrap_or_default().chars().count();
    lines(text, line, &(start..start + width.max(1)))
}

/// The line of an offset, from 1, and the characters before it in the line.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count())
}

/// The characters of a line that a fault at a column, from 1, is about: a name, or the rest.
pub(super) fn word(text: &str, line: usize, column: usize) -> Range<usize> {
    let start = column.saturating_sub(1);
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let rest: String = line.trim_end().chars().skip(start).collect();
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_.:-".contains(letter);
    let length =
        match rest.starts_with(|letter: char| letter.is_alphanumeric() || ":_".contains(letter)) {
            true => rest
                .chars()
                .take_while(|letter| is_of_name(*letter))
                .count(),
            false => rest.chars().count(),
        };
    start..start + length.max(1)
}

/// The lines around a line of `text`, with a range of characters in it marked, if there is
/// one.
pub(super) fn lines(text: &str, line: usize, mark: &Range<usize>) -> Json {
    let first = line.saturating_sub(AROUND).max(1);
    let shown = text.lines().enumerate().skip(first - 1);
    let shown = shown.take(line + AROUND + 1 - first).map(|(at, text)| {
        let is_marked = at + 1 == line;
        let part = |from: usize, to: usize| -> String {
            text.chars()
                .skip(from)
                .take(to.saturating_sub(from))
                .collect()
        };
        let [before, marked, after] = match is_marked && !mark.is_empty() {
            true => [
                ending(&part(0, mark.start)),
                beginning(&part(mark.start, mark.end)),
                beginning(&part(mark.end, usize::MAX)),
            ],
            false => [beginning(text), String::new(), String::new()],
        };
        json!({
            "number": at + 1,
            "is_marked": is_marked,
            "before": before,
            "mark": marked,
            "after": after,
        })
    });
    shown.collect()
}

/// At most [`WIDEST`] characters from the beginning.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// At most [`WIDEST`] characters of the end.
fn ending(text: &str) -> String {
    match text.chars().count().checked_sub(WIDEST) {
        None | Some(0) => text.to_owned(),
        Some(skipped) => format!("…{}", text.chars().skip(skipped).collect::<String>()),
    }
}

/// A template or a query of the site; nothing of a file that may have secrets.
pub(super) fn source(dir: &Path, file: &Path) -> Option<String> {
    let is_source = file
        .extension()
        .is_some_and(|ending| ending == "html" || ending == "sql");
    let path = dir.join(file);
    let is_small =
        fs::metadata(&path).is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_SOURCE);
    let open = || millpond_data::text(fs::File::open(path).ok()?).ok();
    (is_source && is_small).then(open)?
}
