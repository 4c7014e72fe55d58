//! The address that a redirect leads to, from its pieces and values.

use std::ops::Range;

use millpond_db::{ResultRows, Value};
use percent_encoding::utf8_percent_encode;

use millpond_site_format::{rules::VALUE, slug::slug};

/// Source of a value in a form's statements and redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentSource {
    Param(usize),
    Column { step: usize, column: String },
}

/// A piece of a redirect's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectPiece {
    Text(String),
    Value(ArgumentSource),
    /// The value by the filter `slug`.
    Slug(ArgumentSource),
}

/// The address that a redirect leads to.
pub fn target(pieces: &[RedirectPiece], values: &[Value], results: &[ResultRows]) -> String {
    let mut target = String::new();
    let mut of_values = Vec::new();
    for piece in pieces {
        let start = target.len();
        let value = |source: &ArgumentSource| match source {
            ArgumentSource::Param(at) => Some(values[*at].clone()),
            ArgumentSource::Column { step, column: name } => column(&results[*step], name),
        };
        match piece {
            RedirectPiece::Text(text) => {
                target.push_str(text);
                continue;
            }
            RedirectPiece::Value(source) => {
                push(&mut target, &value(source).unwrap_or(Value::Null));
            }
            RedirectPiece::Slug(source) => match value(source) {
                Some(Value::Text(text)) => push(&mut target, &slug(&text).as_str().into()),
                other => push(&mut target, &other.unwrap_or(Value::Null)),
            },
        }
        of_values.push(start..target.len());
    }
    without_dot_segments(&target, &of_values)
}

/// `target` without the segments of its path that are `.` or `..` by one of the values, which are
/// in `of_values`. Such a segment would lead to another place, however it is encoded (RFC 3986
/// section 5.2.4; the URL standard reads `%2e` as a dot). It is left empty rather than refused,
/// because the form has been performed.
fn without_dot_segments(target: &str, of_values: &[Range<usize>]) -> String {
    let path_end = target.find(['?', '#']).unwrap_or(target.len());
    let mut kept = String::with_capacity(target.len());
    let mut start = 0;
    for segment in target[..path_end].split_inclusive('/') {
        let place = start..start + segment.len();
        start = place.end;
        let name = segment.strip_suffix('/').unwrap_or(segment);
        let has_value = |value: &Range<usize>| value.start < place.end && place.start < value.end;
        if matches!(name, "." | "..") && of_values.iter().any(has_value) {
            kept.push_str(&segment[name.len()..]);
        } else {
            kept.push_str(segment);
        }
    }
    kept + &target[path_end..]
}

fn push(target: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Blob(_) => {}
        Value::Integer(integer) => target.push_str(&integer.to_string()),
        Value::Real(real) => target.push_str(&real.to_string()),
        Value::Boolean(truth) => target.push_str(if *truth { "true" } else { "false" }),
        Value::Text(text) => target.extend(utf8_percent_encode(text, VALUE)),
        Value::Json(json) => target.extend(utf8_percent_encode(&json.to_string(), VALUE)),
    }
}

/// The value of a column in the first row, if there is one.
pub fn column(rows: &ResultRows, name: &str) -> Option<Value> {
    let at = rows.columns.iter().position(|column| **column == *name)?;
    rows.rows.first()?.get(at).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_does_not_leave_its_segment() {
        let text = |text: &str| RedirectPiece::Text(text.to_owned());
        let value = |at| RedirectPiece::Value(ArgumentSource::Param(at));
        let pieces = [text("/x/"), value(0), value(1), text("/y?q="), value(0)];
        for (first, second, expected) in [
            ("a", "", "/x/a/y?q=a"),
            ("..", "", "/x//y?q=.."),
            (".", "", "/x//y?q=."),
            (".", ".", "/x//y?q=."),
            ("", "..", "/x//y?q="),
            ("...", "", "/x/.../y?q=..."),
            ("..", "a", "/x/..a/y?q=.."),
            ("%2e%2e", "", "/x/%252e%252e/y?q=%252e%252e"),
            ("../..", "", "/x/..%2F../y?q=..%2F.."),
        ] {
            let values = [first, second].map(|value| Value::Text(value.into()));
            assert_eq!(target(&pieces, &values, &[]), expected, "{first} {second}");
        }
        let slug = [text("/x/"), RedirectPiece::Slug(ArgumentSource::Param(0))];
        let title = Value::Text("Tea & Cake / für".into());
        assert_eq!(target(&slug, &[title], &[]), "/x/tea-cake-fuer");
        let at_end = [text("/x/"), value(0)];
        assert_eq!(target(&at_end, &[Value::Text("..".into())], &[]), "/x/");
        let of_owner = [text("/x/../"), value(0)];
        assert_eq!(target(&of_owner, &[Value::Integer(1)], &[]), "/x/../1");
    }
}
