//! Bodies of JSON, good and broken. The oracle is `serde_json`'s own reading.

use lab_torture::Choices;
use millpond_db::{Value, ValueKind};
use serde_json::Value as Json;

use super::corpus;
use crate::form::json::{JsonBody, MAX_NESTING};
use millpond_site_format::params::{Given, Param};

const WORDS: &[&[u8]] = &[
    b"{\"a\":1}",
    b"\"a\":",
    b"\\u0061",
    b"\\ud800",
    b"\\udc00",
    b"null",
    b"true",
    b"-0.0e+9",
    b"1e999",
    b"18446744073709551616",
    b"[[[[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b"\"",
    b"\xef\xbb\xbf",
    b"\xff",
    b" \n",
];

/// Checks that a body is read as `serde_json` reads it, or refused with a short sentence.
fn check(body: &[u8]) {
    let shown = body.escape_ascii();
    let read = match JsonBody::read(body) {
        Ok(read) => read,
        Err(sentence) => {
            return assert!(
                sentence.ends_with('.') && sentence.len() < 300,
                "{shown}: {sentence}"
            );
        }
    };
    let Ok(Json::Object(members)) = serde_json::from_slice(body) else {
        panic!("{shown} is no object")
    };
    let given = Given {
        path: &[],
        form: &[],
        query: None,
    };
    for (name, member) in &members {
        let param = Param::new(name, ValueKind::Other);
        let found = read.value(&param, &given);
        let text = match found {
            Ok(Value::Text(text)) => text,
            other => {
                let text = member.as_str().unwrap_or_default();
                let is_refused = member.is_null() || text.contains('\0');
                assert!(is_refused && other.is_err(), "{shown}: {name}");
                continue;
            }
        };
        match member {
            Json::String(string) => assert_eq!(**string, *text, "{shown}"),
            other => assert_eq!(
                serde_json::from_str::<Json>(&text).ok().as_ref(),
                Some(other),
                "{shown}"
            ),
        }
    }
}

#[test]
fn json_bodies() {
    let corpus = corpus("json_bodies", WORDS);
    bolero::check!(name = "json_bodies")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for body in corpus.inputs(engine) {
                check(&body);
            }
            let mut choices = Choices::of(engine);
            let document = object(&mut choices, MAX_NESTING);
            let body = document.to_string();
            check(body.as_bytes());
            let read = JsonBody::read(body.as_bytes());
            assert!(read.is_ok(), "{body}: {read:?}");
        });
}

fn object(choices: &mut Choices<'_>, depth: usize) -> Json {
    let members = (0..choices.below(4)).map(|_| {
        let name = String::from_utf8_lossy(&choices.bytes(3)).into_owned();
        (name, document(choices, depth - 1))
    });
    Json::Object(members.collect())
}

fn document(choices: &mut Choices<'_>, depth: usize) -> Json {
    match choices.below(if depth == 0 { 5 } else { 7 }) {
        0 => Json::Null,
        1 => true.into(),
        2 => i64::from(choices.below(1000) as u32).into(),
        3 => 0.25.into(),
        4 => String::from_utf8_lossy(&choices.bytes(8)).into(),
        5 => (0..choices.below(4))
            .map(|_| document(choices, depth - 1))
            .collect(),
        _ => object(choices, depth),
    }
}
