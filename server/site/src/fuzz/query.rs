//! Query strings, as parameters and as keys.

use std::collections::BTreeSet;

use lab_torture::http::words;
use millpond_db::{Value, ValueKind};

use super::corpus;
use millpond_site_format::{
    param_value::push_key,
    params::{Given, Param},
};

fn param(name: &str, kind: ValueKind, default: Option<Value>) -> Param {
    Param {
        default,
        ..Param::new(name, kind)
    }
}

fn list(name: &str, kind: ValueKind) -> Param {
    Param {
        is_list: true,
        ..Param::new(name, kind)
    }
}

#[test]
fn query_strings() {
    let corpus = corpus("query_strings", &words::PATHS);
    let params = [
        param("q", ValueKind::Text, Some("none".into())),
        param("id", ValueKind::Integer, Some(0.into())),
        param("x", ValueKind::Real, Some(Value::Null)),
        list("id", ValueKind::Integer),
        list("q", ValueKind::Text),
    ];
    bolero::check!(name = "query_strings")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            let read: Vec<_> = corpus
                .inputs(engine)
                .iter()
                .map(|input| check(&String::from_utf8_lossy(input), &params))
                .collect();
            // Equal values have one entry in the cache, and others never the same.
            if let [Some((one, its_key)), Some((other, other_key))] = &read[..] {
                assert_eq!(one == other, its_key == other_key, "{one:?} {other:?}");
            }
        });
}

/// Holds each parameter against a reading of the whole string; gives the values and their key.
fn check(query: &str, params: &[Param]) -> Option<(Vec<Value>, Vec<u8>)> {
    let given = Given {
        path: &[],
        form: &[],
        query: Some(query),
    };
    let expected: Option<Vec<Value>> = params
        .iter()
        .map(|param| second_reading(query, param))
        .collect();
    let values = given.values(params);
    assert_eq!(values.as_ref().ok(), expected.as_ref(), "{query:?}");
    let (mut key, mut by_value) = (Vec::new(), Vec::new());
    let pushed = given.push_keys(params, &mut key);
    assert_eq!(pushed.err(), values.as_ref().err().cloned(), "{query:?}");
    let values = values.ok()?;
    values
        .iter()
        .for_each(|value| push_key(&mut by_value, value));
    assert_eq!(
        key, by_value,
        "a hit and a fill must agree on the key: {query:?}"
    );
    Some((values, key))
}

/// The value of a parameter in a query string, by the URL standard's parser; none if that is a
/// fault.
fn second_reading(query: &str, param: &Param) -> Option<Value> {
    let mut found =
        form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| *name == param.name);
    if param.is_list {
        let texts = found.map(|(_, text)| text).filter(|text| !text.is_empty());
        let json: serde_json::Value = match param.kind {
            ValueKind::Integer => {
                let items = texts.map(|text| text.parse().ok());
                let items: BTreeSet<i64> = items.collect::<Option<_>>()?;
                items.into_iter().collect()
            }
            _ => {
                let items: BTreeSet<_> = texts.collect();
                if items.iter().any(|text| text.contains('\0')) {
                    return None;
                }
                items.into_iter().collect()
            }
        };
        return Some(json.into());
    }
    let Some((_, text)) = found.next() else {
        return param.default.clone();
    };
    if found.next().is_some() {
        return None;
    }
    if text.is_empty() {
        return param.default.clone();
    }
    match param.kind {
        ValueKind::Integer => text.parse().ok().map(Value::Integer),
        ValueKind::Real => text
            .parse()
            .ok()
            .filter(|real: &f64| real.is_finite())
            .map(Value::Real),
        _ => Some(Value::Text(text.into_owned().into())),
    }
}
