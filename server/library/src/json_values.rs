//! A JSON object of a body as named texts, as a form gives them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::param::quoted;
use crate::values::NamedValues;

/// The members of an object. An array gives a value for each of its items, and null gives none.
///
/// # Errors
/// 400: it is no JSON object, a member is an object, or there is null, an array or an object in an
/// array.
pub(crate) fn members(body: &[u8]) -> Result<NamedValues<'_>, Failure> {
    // The reader's own message would have the whole value in it.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Failure::bad_request("the body must be one JSON object"));
    }
    let members: Members<'_> = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let mut values = NamedValues::new();
    for (name, member) in members.0 {
        match member.get() {
            "null" => {}
            array if array.starts_with('[') => {
                let items = items(&name, array)?;
                values.push_all(name, items);
            }
            object if object.starts_with('{') => {
                return Err(nested(&name, "is an object"));
            }
            other => values.push(name, text(other)?),
        }
    }
    Ok(values)
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::bad_request(format!("the JSON cannot be read: {error}"))
}

/// The texts of the items of an array.
fn items<'a>(name: &str, array: &'a str) -> Result<Vec<Cow<'a, str>>, Failure> {
    let items: Vec<&RawValue> = serde_json::from_str(array).map_err(|error| unreadable(&error))?;
    let item = |item: &&'a RawValue| match item.get() {
        "null" => {
            let message = format!("{} has null in its array", quoted(name));
            Err(Failure::bad_request(message))
        }
        json if json.starts_with('{') => Err(nested(name, "has an object in its array")),
        json if json.starts_with('[') => Err(nested(name, "has an array in its array")),
        json => text(json),
    };
    items.iter().map(item).collect()
}

/// Refuses a value that a program would have to take apart again, as no form gives one.
fn nested(name: &str, what: &str) -> Failure {
    Failure::bad_request(format!(
        "{} {what}, and a text, a number, true or false is expected",
        quoted(name)
    ))
}

/// The text of a string, and of anything else as it was written: so no number loses digits.
fn text(json: &str) -> Result<Cow<'_, str>, Failure> {
    if !json.starts_with('"') {
        return Ok(json.into());
    }
    let Text(text) = serde_json::from_str(json).map_err(|error| unreadable(&error))?;
    Ok(text)
}

/// A text, borrowed if nothing in it is escaped.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object in their order, also those of one name.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;

        impl<'de> Visitor<'de> for OfMap {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), member)) = map.next_entry()? {
                    members.push((name, member));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OfMap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<NamedValues<'_>, Failure> {
        members(body.as_bytes())
    }

    #[test]
    fn members_are_read_as_fields_of_a_form() {
        let values = read(
            r#" {"count": 3, "big": 18446744073709551615, "price": 12.50, "on": true, "none": null,
            "name": "Ada\u0021", "tags": ["a", 2, "ü"], "empty": []} "#,
        );
        let values = values.unwrap();
        assert_eq!(values.get("count"), Ok(3_u8));
        assert_eq!(values.get("big"), Ok(u64::MAX));
        assert_eq!(values.get("price"), Ok("12.50".to_owned()));
        assert_eq!(values.get("on"), Ok(true));
        assert_eq!(values.get("none"), Ok(None::<u8>));
        assert_eq!(values.get("name"), Ok("Ada!".to_owned()));
        assert_eq!(values.all("tags").collect::<Vec<_>>(), ["a", "2", "ü"]);
        assert_eq!(values.all("empty").count(), 0);
        let failure = values.get::<u8>("none").unwrap_err();
        assert_eq!(
            failure.message(),
            "none is missing (a whole number from 0 to 255)"
        );
    }

    #[test]
    fn what_is_no_object_is_a_400_that_says_where() {
        let long = format!("\"{}\"", "x".repeat(100_000));
        for (body, said) in [
            ("", "the body must be one JSON object"),
            ("[1]", "the body must be one JSON object"),
            (&long, "the body must be one JSON object"),
            (
                "{\"a\": 1,}",
                "the JSON cannot be read: trailing comma at line 1 column 9",
            ),
            ("{\"a\": 1} x", "trailing characters at line 1 column 10"),
            ("{\"a\": 01}", "line 1 column 8"),
            ("{\"a\": \"\\ud800\"}", "unexpected end of hex escape"),
            ("{\"a\": [\"\\ud800\"]}", "unexpected end of hex escape"),
            ("{\"\\ud800\": 1}", "unexpected end of hex escape"),
        ] {
            let failure = read(body).unwrap_err();
            assert_eq!(failure.status(), 400);
            assert!(failure.message().contains(said), "{}", failure.message());
        }
        let failure = members(b"{\"a\": \"\xff\"}").unwrap_err();
        assert!(
            failure.message().contains("line 1"),
            "{}",
            failure.message()
        );
        let failure = read("{\"a\": [1, null]}").unwrap_err();
        assert_eq!(failure.message(), "\"a\" has null in its array");
        let twice = read("{\"a\": 1, \"a\": 2}").unwrap();
        assert!(twice.get::<u8>("a").is_err());
    }

    #[test]
    fn what_is_nested_is_a_400_that_names_the_member() {
        let expected = "and a text, a number, true or false is expected";
        let long = "x".repeat(100);
        for (body, said) in [
            (
                r#"{"at": {"x": [1]}}"#.to_owned(),
                r#""at" is an object"#.to_owned(),
            ),
            (
                r#"{"a": 1, "at": [2, {}]}"#.to_owned(),
                r#""at" has an object in its array"#.to_owned(),
            ),
            (
                r#"{"at": [[1]]}"#.to_owned(),
                r#""at" has an array in its array"#.to_owned(),
            ),
            (
                format!(r#"{{"{long}": {{}}}}"#),
                format!("\"{}\"… is an object", &long[..60]),
            ),
        ] {
            let failure = read(&body).unwrap_err();
            assert_eq!(failure.status(), 400);
            assert_eq!(failure.message(), format!("{said}, {expected}"));
        }
    }

    #[test]
    fn many_values_of_a_long_name_take_no_more_memory_than_the_body() {
        let name = format!("\\u0061{}", "a".repeat(30_000));
        let items = vec!["1"; 15_000].join(",");
        let body = format!("{{\"{name}\": [{items}], \"b\": 2}}");
        let values = read(&body).unwrap();
        assert_eq!(values.names.len(), 2);
        assert_eq!(values.all(&"a".repeat(30_001)).count(), 15_000);
        assert_eq!(values.get("b"), Ok(2_u8));
    }

    #[test]
    fn deep_nesting_is_no_deep_recursion() {
        let depth = 400_000;
        let body = format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(read(&body).unwrap_err().status(), 400);
    }
}
