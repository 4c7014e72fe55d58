//! The address of a page, from the values of its key.
//!
//! Every part of a page's path that may differ is one of its parameters, and so part of its key.
//! The values there have one spelling: for `/plays/07` and `/plays/7`, which are one entry of the
//! store, the address is the same text. So a shared page may show it.
//!
//! It is written as a link needs it: `/\evil.example`, for which a visitor may ask, would lead to
//! another host. Letters beyond ASCII stay as they are, for browsers encode them, and templates
//! compare them.

use millpond_db::Value;
use percent_encoding::percent_encode_byte;

use millpond_site_format::{
    params::Param,
    route::{Pattern, Segment},
};

/// Parts of the address of a page.
#[derive(Debug)]
pub struct PagePath(Box<[PathPart]>);

#[derive(Debug)]
enum PathPart {
    Literal(String),
    /// The place among the values of the page's parameters.
    Value(usize),
    /// The place of one that is the rest of the path.
    Rest(usize),
}

impl PagePath {
    /// The address at `pattern` of a page with these parameters, which has one for each part of the
    /// pattern that may differ.
    pub fn new(pattern: &Pattern, params: &[Param]) -> Self {
        let place = |name: &str| params.iter().position(|param| param.name == name);
        let parts = pattern.segments.iter().map(|segment| match segment {
            Segment::Literal(text) => PathPart::Literal(encoded(text)),
            Segment::Param(name) | Segment::Rest(name) => match (place(name), segment) {
                (Some(at), Segment::Rest(_)) => PathPart::Rest(at),
                (Some(at), _) => PathPart::Value(at),
                (None, _) => PathPart::Literal(String::new()),
            },
        });
        Self(parts.collect())
    }

    /// The path without host and query.
    pub fn of(&self, values: &[Value]) -> String {
        if self.0.is_empty() {
            return "/".to_owned();
        }
        let mut path = String::new();
        for part in &self.0 {
            path.push('/');
            match part {
                PathPart::Literal(text) => path.push_str(text),
                PathPart::Value(at) => push(&mut path, values.get(*at).unwrap_or(&Value::Null)),
                PathPart::Rest(at) => {
                    let Some(Value::Text(rest)) = values.get(*at) else {
                        continue;
                    };
                    let parts: Vec<String> = rest.split('/').map(encoded).collect();
                    path.push_str(&parts.join("/"));
                }
            }
        }
        path
    }
}

fn push(path: &mut String, value: &Value) {
    match value {
        Value::Text(text) => path.push_str(&encoded(text)),
        Value::Integer(integer) => path.push_str(&integer.to_string()),
        Value::Real(real) => path.push_str(&real.to_string()),
        Value::Boolean(truth) => path.push_str(if *truth { "true" } else { "false" }),
        // No part of a path is one of these.
        Value::Null | Value::Blob(_) | Value::Json(_) => {}
    }
}

/// A part of a path with its ASCII characters encoded that a link cannot have as they are.
fn encoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for c in part.chars() {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() && !is_plain(byte) => {
                text.push_str(percent_encode_byte(byte));
            }
            _ => text.push(c),
        }
    }
    text
}

/// RFC 3986 section 3.3: a character of a segment.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'$' | b'&'..=b'.' | b':'..=b';' | b'=' | b'@' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use millpond_db::ValueKind;

    use super::*;

    #[test]
    fn one_entry_has_one_address() {
        let of = |stem: &str, values: &[Value]| {
            let pattern = Pattern::parse(Path::new("x"), stem).unwrap();
            let params = ["q", "id", "lang"].map(|name| Param::new(name, ValueKind::Text));
            PagePath::new(&pattern, &params).of(values)
        };
        assert_eq!(of("index", &[]), "/");
        assert_eq!(of("plays/new", &[]), "/plays/new");
        let values = ["x".into(), 7.into(), "für".into()];
        assert_eq!(of("[lang]/plays/[id]", &values), "/für/plays/7");
        assert_eq!(of("[lang]/index", &values), "/für");
        assert_eq!(of("[id]", &[]), "/");
        let evil = ["\\evil.example".into(), "a?b#c%2F d/".into()];
        assert_eq!(of("[q]", &evil), "/%5Cevil.example");
        assert_eq!(of("x y/[id]", &evil), "/x%20y/a%3Fb%23c%252F%20d%2F");
        let plain = ["a-b_c.d~e!$&'()*+,;=:@".into()];
        assert_eq!(of("[q]", &plain), "/a-b_c.d~e!$&'()*+,;=:@");
    }
}
