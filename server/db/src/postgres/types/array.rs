//! Arrays: lists there and back.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::column::Decoder;
use crate::Value;

/// PostgreSQL's own limit.
const MAX_DIMENSIONS: usize = 6;

/// Reads the binary form; its lower bounds are left out, as a list has none.
pub(super) fn read(bytes: &[u8], element: &Decoder) -> Option<Json> {
    let mut input = Input(bytes);
    let dimensions = usize::try_from(input.number()?).ok()?;
    let _has_nulls = input.number()?;
    let _element_type = input.number()?;
    if dimensions == 0 {
        return Some(Json::Array(Vec::new()));
    }
    if dimensions > MAX_DIMENSIONS {
        return None;
    }
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(input.number()?).ok()?);
        let _lower_bound = input.number()?;
    }
    let list = input.list(&lengths, element)?;
    input.0.is_empty().then_some(list)
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn number(&mut self) -> Option<i32> {
        let (number, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(i32::from_be_bytes(*number))
    }

    fn list(&mut self, lengths: &[usize], element: &Decoder) -> Option<Json> {
        let (length, inner) = lengths.split_first()?;
        let items = (0..*length).map(|_| {
            if inner.is_empty() {
                self.item(element)
            } else {
                self.list(inner, element)
            }
        });
        items.collect::<Option<Vec<Json>>>().map(Json::Array)
    }

    fn item(&mut self, element: &Decoder) -> Option<Json> {
        let length = self.number()?;
        if length == -1 {
            return Some(Json::Null);
        }
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        element.read(bytes).map(json)
    }
}

/// A value as an item of a list.
fn json(value: Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(integer) => integer.into(),
        Value::Real(real) => serde_json::Number::from_f64(real)
            .map_or_else(|| Json::String(super::parameter::real(real)), Json::Number),
        Value::Text(text) => Json::String(text.as_ref().to_owned()),
        Value::Blob(bytes) => Json::String(super::parameter::hex(&bytes)),
        Value::Boolean(truth) => Json::Bool(truth),
        Value::Json(json) => json.as_ref().clone(),
    }
}

/// Writes a list as PostgreSQL reads arrays. `of_json`: the items are JSON documents themselves.
pub(super) fn write(list: &[Json], of_json: bool, into: &mut String) {
    into.push('{');
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            into.push(',');
        }
        match item {
            Json::Null => into.push_str("NULL"),
            Json::Array(inner) if !of_json => write(inner, of_json, into),
            Json::String(text) if !of_json => quote(text, into),
            Json::Bool(_) | Json::Number(_) => {
                // A String takes all that is written.
                let _ = write!(into, "{item}");
            }
            _ => quote(&item.to_string(), into),
        }
    }
    into.push('}');
}

fn quote(text: &str, into: &mut String) {
    into.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            into.push('\\');
        }
        into.push(c);
    }
    into.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(list: &serde_json::Value, of_json: bool) -> String {
        let mut text = String::new();
        write(list.as_array().unwrap(), of_json, &mut text);
        text
    }

    #[test]
    fn lists_are_written_as_arrays() {
        let list = serde_json::json!([1, null, "a\"b\\c,{}", "NULL", true, [1.5, "x"], []]);
        assert_eq!(
            written(&list, false),
            r#"{1,NULL,"a\"b\\c,{}","NULL",true,{1.5,"x"},{}}"#
        );
        assert_eq!(
            written(&serde_json::json!([{"a": "b"}, "c", [1]]), true),
            r#"{"{\"a\":\"b\"}","\"c\"","[1]"}"#
        );
    }

    #[test]
    fn what_is_no_array_is_refused() {
        assert_eq!(read(&[], &Decoder::Text), None);
        assert_eq!(
            read(
                &[
                    0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 127, 255, 255, 255, 0, 0, 0, 1
                ],
                &Decoder::Text
            ),
            None
        );
        assert_eq!(
            read(&[0; 12], &Decoder::Text),
            Some(Json::Array(Vec::new()))
        );
    }
}
