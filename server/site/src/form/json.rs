//! A write's body as JSON: the members of one object are parameters.
//!
//! A member is read by its text as a form's field is: `5` and `"5"` are one whole number, `12.50`
//! is that text for a `numeric` column, and an object or an array is its JSON text for a column
//! that holds a document. So no number goes through a `f64` that is not stored as one. Only two
//! things differ from a form: null is a member that is not given, and a list is an array.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashSet},
    fmt,
};

use millpond_db::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::form::MAX_FIELDS;
use millpond_site_format::{
    param_value::{list_item, list_of, typed},
    params::{BadParam, Given, MAX_LIST, MISSING, Param},
};

/// Objects and arrays may not be nested deeper than this.
pub(crate) const MAX_NESTING: usize = 64;

/// A body may not have more values than this, nested ones counted: each takes some time of a
/// worker, and `limits.body` may be large for the sake of files.
const MAX_JSON_VALUES: usize = 100_000;

/// The members of an object by their names, each as its text.
#[derive(Debug)]
pub(crate) struct JsonBody<'b>(BTreeMap<String, &'b RawValue>);

impl<'b> JsonBody<'b> {
    /// Reads a body.
    ///
    /// # Errors
    /// A sentence, for a 400.
    pub(crate) fn read(body: &'b [u8]) -> Result<Self, String> {
        if body.starts_with(b"\xEF\xBB\xBF") {
            return Err("The JSON begins with a byte order mark. Send it without.".to_owned());
        }
        let text = std::str::from_utf8(body).map_err(|_| "The JSON is not UTF-8.".to_owned())?;
        let is_object = text
            .trim_start_matches([' ', '\t', '\r', '\n'])
            .starts_with('{');
        if !is_object {
            return Err("The body must be one JSON object.".to_owned());
        }
        let unreadable = |error: serde_json::Error| format!("The JSON cannot be read: {error}.");
        let mut reader = serde_json::Deserializer::from_str(text);
        let values = Cell::new(MAX_JSON_VALUES);
        let nested = Nested {
            depth: MAX_NESTING,
            values: &values,
        };
        nested.deserialize(&mut reader).map_err(unreadable)?;
        reader.end().map_err(unreadable)?;
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(unreadable)?;
        match members.len() {
            ..=MAX_FIELDS => Ok(Self(members)),
            _ => Err(format!("The JSON has more than {MAX_FIELDS} members.")),
        }
    }

    /// True if a member of this name is not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        let member = self.0.get(name);
        member.is_some_and(|member| member.get() != "null")
    }

    /// The value of a parameter. `given` has what does not come from the body.
    pub(crate) fn value(&self, param: &Param, given: &Given<'_>) -> Result<Value, BadParam> {
        let member = self.0.get(&param.name).filter(|_| param.in_path.is_none());
        match member.map(|member| member.get()) {
            None => given.value(param),
            Some("null") => absent(param),
            Some(text) if param.is_list => items(param, text),
            Some(text) => typed(param, &plain(text)),
        }
    }
}

/// Returns the value of null: the parameter's default, although the address may have a value.
fn absent(param: &Param) -> Result<Value, BadParam> {
    match &param.default {
        Some(default) => Ok(default.clone()),
        None if param.is_list => Ok(list_of(param, Vec::new())),
        None => Err(BadParam::new(param, MISSING)),
    }
}

/// The text of a string, and of anything else as it was written.
fn plain(text: &str) -> String {
    let string = text.starts_with('"').then(|| serde_json::from_str(text));
    // The whole body was read before.
    string
        .and_then(Result::ok)
        .unwrap_or_else(|| text.to_owned())
}

/// The items of a list.
fn items(param: &Param, text: &str) -> Result<Value, BadParam> {
    let items: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|_| BadParam::new(param, "must be an array of values"))?;
    if items.len() > MAX_LIST {
        let wrong = format!("has more than {MAX_LIST} values");
        return Err(BadParam::new(param, &wrong));
    }
    let item = |item: &&RawValue| match item.get() {
        "null" if param.is_as_sent() => Ok(Value::Null),
        "null" => Err(BadParam::new(param, "must have no null in it")),
        nested if nested.starts_with(['[', '{']) => {
            let wrong = "must have no array and no object in it";
            Err(BadParam::new(param, wrong))
        }
        text => list_item(param, &plain(text)),
    };
    let items: Result<Vec<Value>, BadParam> = items.iter().map(item).collect();
    Ok(list_of(param, items?))
}

/// Reads what `serde_json` alone would take: a member that is given twice, of which programs
/// choose one or the other (RFC 8259 section 4), and what is nested too deeply.
#[derive(Clone, Copy)]
struct Nested<'c> {
    /// How many levels there may still be.
    depth: usize,
    /// How many values there may still be in the whole body.
    values: &'c Cell<usize>,
}

impl Nested<'_> {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1);
        depth.map(|depth| Self { depth, ..self }).ok_or_else(|| {
            E::custom(format_args!(
                "it is nested deeper than {MAX_NESTING} levels"
            ))
        })
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        let Some(left) = self.values.get().checked_sub(1) else {
            let message = format_args!("it has more than {MAX_JSON_VALUES} values");
            return Err(D::Error::custom(message));
        };
        self.values.set(left);
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while items.next_element_seed(inside)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            members.next_value_seed(inside)?;
            if let Some(name) = names.replace(name) {
                let shown: String = name.chars().take(64).collect();
                return Err(A::Error::custom(format_args!(
                    "the member {shown:?} is given twice"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use millpond_db::ValueKind;

    use super::*;

    fn value(param: &Param, body: &str, query: Option<&str>) -> Result<Value, String> {
        let given = Given {
            path: &[],
            form: &[],
            query,
        };
        let body = JsonBody::read(body.as_bytes())?;
        let found = body.value(param, &given);
        found.map_err(|bad| bad.sentence)
    }

    #[test]
    fn a_member_is_read_by_its_text() {
        for (kind, member, expected) in [
            (ValueKind::Integer, "9223372036854775807", i64::MAX.into()),
            (ValueKind::Integer, "-9223372036854775808", i64::MIN.into()),
            (ValueKind::Integer, "\"7\"", 7.into()),
            (ValueKind::Real, "1e2", Value::Real(100.0)),
            (ValueKind::Real, "-0.5", Value::Real(-0.5)),
            (ValueKind::Boolean, "true", true.into()),
            (ValueKind::Boolean, "false", false.into()),
            (ValueKind::Other, "12.50", "12.50".into()),
            (
                ValueKind::Other,
                "123456789012345678901234567890.10",
                "123456789012345678901234567890.10".into(),
            ),
            (
                ValueKind::Other,
                "{ \"a\": [1.0] }",
                "{ \"a\": [1.0] }".into(),
            ),
            (ValueKind::Text, "[1, 2]", "[1, 2]".into()),
            (ValueKind::Text, "\"\"", "".into()),
            (ValueKind::Text, "\"null\"", "null".into()),
            (
                ValueKind::Text,
                "\"\\ud83d\\ude00\\n\\/\"",
                "\u{1f600}\n/".into(),
            ),
        ] {
            let param = Param::new("p", kind);
            let body = format!(" {{\"other\": 1, \"p\" : {member} }}\n");
            assert_eq!(value(&param, &body, None), Ok(expected), "{member}");
        }
        for (kind, member, expected) in [
            (ValueKind::Integer, "1.0", "must be a whole number"),
            (ValueKind::Integer, "1e3", "must be a whole number"),
            (ValueKind::Integer, "9223372036854775808", "is too large"),
            (ValueKind::Integer, "[1]", "must be a whole number"),
            (ValueKind::Integer, "\"\"", "must be a whole number"),
            (ValueKind::Boolean, "{}", "must be true or false"),
            (ValueKind::Real, "\"NaN\"", "must be a number"),
        ] {
            let refused = value(&Param::new("p", kind), &format!("{{\"p\":{member}}}"), None);
            let expected = format!("The parameter \"p\" {expected}.");
            assert_eq!(refused, Err(expected), "{member}");
        }
    }

    #[test]
    fn null_is_not_given() {
        let with = |default| Param {
            default,
            ..Param::new("p", ValueKind::Integer)
        };
        for (default, expected) in [
            (Some(Value::Null), Ok(Value::Null)),
            (Some(7.into()), Ok(7.into())),
            (None, Err("The parameter \"p\" is missing.".to_owned())),
        ] {
            let found = value(&with(default), "{\"p\":null}", Some("p=3"));
            assert_eq!(found, expected);
        }
        assert_eq!(value(&with(None), "{}", Some("p=3")), Ok(3.into()));
        assert_eq!(value(&with(None), "{\"p\":4}", Some("p=3")), Ok(4.into()));
        // The path comes first.
        let in_path = Param {
            in_path: Some(0),
            ..with(None)
        };
        let given = Given {
            path: &["5"],
            form: &[],
            query: None,
        };
        let body = JsonBody::read(b"{\"p\":6}").unwrap();
        assert_eq!(body.value(&in_path, &given), Ok(5.into()));
    }

    #[test]
    fn a_list_is_an_array() {
        let list = |kind| Param {
            is_list: true,
            ..Param::new("p", kind)
        };
        for (member, expected) in [
            ("[6, 1, \"6\", -1]", "[-1,1,6]"),
            ("[]", "[]"),
            ("null", "[]"),
        ] {
            let found = value(
                &list(ValueKind::Integer),
                &format!("{{\"p\":{member}}}"),
                None,
            );
            let Ok(Value::Json(json)) = found else {
                panic!("{member}: {found:?}")
            };
            assert_eq!(json.to_string(), expected);
        }
        let many = vec!["1"; MAX_LIST + 1].join(",");
        for member in [
            "6",
            "\"6\"",
            "{}",
            "[null]",
            "[[1]]",
            "[1.5]",
            "[true]",
            &format!("[{many}]"),
        ] {
            let found = value(
                &list(ValueKind::Integer),
                &format!("{{\"p\":{member}}}"),
                None,
            );
            assert!(found.is_err(), "{member}: {found:?}");
        }
        let found = value(&list(ValueKind::Text), "{\"p\":[\"a\\u0000\"]}", None);
        assert!(found.is_err(), "{found:?}");
    }

    #[test]
    fn what_two_programs_may_read_in_two_ways_is_refused() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            format!("{{\"a\":{open}{close}}}")
        };
        assert!(JsonBody::read(nested(MAX_NESTING).as_bytes()).is_ok());
        let members = |count: usize| {
            let members = (0..count).map(|at| format!("\"{at}\":1"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        };
        assert!(JsonBody::read(members(MAX_FIELDS).as_bytes()).is_ok());
        // The object and its member count too.
        let values = |count: usize| format!("{{\"a\":[{}]}}", vec!["1"; count - 2].join(","));
        assert!(JsonBody::read(values(MAX_JSON_VALUES).as_bytes()).is_ok());
        for (body, expected) in [
            ("", "one JSON object"),
            ("[]", "one JSON object"),
            ("null", "one JSON object"),
            ("\"a\"", "one JSON object"),
            ("NaN", "one JSON object"),
            ("\u{feff}{}", "byte order mark"),
            ("\u{a0}{}", "one JSON object"),
            ("{\"a\":1,\"a\":1}", "\"a\" is given twice"),
            ("{\"a\":1,\"\\u0061\":2}", "\"a\" is given twice"),
            ("{\"a\":[{\"b\":1,\"b\":1}]}", "\"b\" is given twice"),
            ("{\"a\":NaN}", "cannot be read"),
            ("{\"a\":Infinity}", "cannot be read"),
            ("{\"a\":1e999}", "cannot be read"),
            ("{\"a\":01}", "cannot be read"),
            ("{\"a\":+1}", "cannot be read"),
            ("{\"a\":.5}", "cannot be read"),
            ("{\"a\":'b'}", "cannot be read"),
            ("{a:1}", "cannot be read"),
            ("{\"a\":1,}", "cannot be read"),
            ("{\"a\":\"\\ud800\"}", "cannot be read"),
            ("{\"a\":[\"\\udc00\"]}", "cannot be read"),
            ("{\"\\ud800\":1}", "cannot be read"),
            ("{\"a\":\"\n\"}", "cannot be read"),
            ("{\"a\":1", "cannot be read"),
            ("{} {}", "cannot be read"),
            ("{}x", "cannot be read"),
            ("{}\0", "cannot be read"),
            ("{/**/}", "cannot be read"),
            (&nested(MAX_NESTING + 1), "nested deeper"),
            (&nested(200_000), "nested deeper"),
            (&values(MAX_JSON_VALUES + 1), "more than 100000 values"),
            (&members(MAX_FIELDS + 1), "more than 1000 members"),
        ] {
            let refused = JsonBody::read(body.as_bytes()).unwrap_err();
            let shown: String = body.chars().take(40).collect();
            assert!(refused.contains(expected), "{shown}: {refused}");
            assert!(refused.len() < 200, "{shown}");
        }
        let refused = JsonBody::read(b"{\"a\":\"\xff\"}").unwrap_err();
        assert_eq!(refused, "The JSON is not UTF-8.");
    }
}
