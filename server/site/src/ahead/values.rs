//! The values of a page's parameters, out of its key and to and from JSON.

use std::array;

use millpond_db::{Value, ValueKind};
use serde_json::Value as Json;

use millpond_site_format::{param_value::list, params::Param};

/// The values that [`push_key`](millpond_site_format::param_value::push_key) has written: exactly
/// `count`, with nothing behind them.
pub(super) fn from_key(mut key: &[u8], count: usize) -> Option<Vec<Value>> {
    let values = (0..count).map(|_| next(&mut key)).collect::<Option<_>>()?;
    key.is_empty().then_some(values)
}

fn next(key: &mut &[u8]) -> Option<Value> {
    let [kind] = take(key)?;
    Some(match kind {
        b'n' => Value::Null,
        b'i' => Value::Integer(i64::from_le_bytes(take(key)?)),
        b'r' => Value::Real(f64::from_bits(u64::from_le_bytes(take(key)?))),
        b'o' => Value::Boolean(match take(key)? {
            [0] => false,
            [1] => true,
            _ => return None,
        }),
        b't' => Value::Text(std::str::from_utf8(take_bytes(key)?).ok()?.into()),
        b'b' => Value::Blob(take_bytes(key)?.into()),
        b'j' => serde_json::from_slice::<Json>(take_bytes(key)?)
            .ok()?
            .into(),
        _ => return None,
    })
}

fn take<const N: usize>(key: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = key.split_first_chunk::<N>()?;
    *key = rest;
    Some(array::from_fn(|at| first[at]))
}

fn take_bytes<'k>(key: &mut &'k [u8]) -> Option<&'k [u8]> {
    let len = usize::try_from(u64::from_le_bytes(take(key)?)).ok()?;
    let (bytes, rest) = key.split_at_checked(len)?;
    *key = rest;
    Some(bytes)
}

/// The value as the list has it; none for a value that no request can give.
pub(super) fn to_json(value: &Value) -> Option<Json> {
    match value {
        Value::Null => Some(Json::Null),
        Value::Integer(integer) => Some((*integer).into()),
        Value::Real(real) => serde_json::Number::from_f64(*real).map(Json::Number),
        Value::Text(text) => Some(text.to_string().into()),
        Value::Boolean(truth) => Some((*truth).into()),
        Value::Json(list) => list.is_array().then(|| list.as_ref().clone()),
        Value::Blob(_) => None,
    }
}

/// As a request for the page would give it; none of what no request for it gives.
pub(super) fn from_json(param: &Param, json: &Json) -> Option<Value> {
    if let Some(default) = &param.default
        && to_json(default).as_ref() == Some(json)
    {
        return Some(default.clone());
    }
    if param.is_list {
        let items = json.as_array()?.iter();
        let items = items.map(|item| single(param, item)).collect::<Option<_>>();
        // Another form of the list is that of another request.
        return items
            .map(list)
            .filter(|list| to_json(list).as_ref() == Some(json));
    }
    single(param, json)
}

/// One value, or one item of a list.
fn single(param: &Param, json: &Json) -> Option<Value> {
    let value = match param.kind {
        ValueKind::Integer => json.as_i64().map(Value::Integer),
        ValueKind::Real => json.as_f64().map(Value::Real),
        ValueKind::Boolean => json.as_bool().map(Value::Boolean),
        ValueKind::Text | ValueKind::Other => json.as_str().map(Value::from),
        ValueKind::Blob => None,
    };
    value.filter(|value| param.allows(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_site_format::param_value::push_key;

    fn key(values: &[Value]) -> Vec<u8> {
        let mut key = Vec::new();
        values.iter().for_each(|value| push_key(&mut key, value));
        key
    }

    fn some() -> Vec<Value> {
        vec![
            Value::Null,
            i64::MIN.into(),
            Value::Real(-0.5),
            true.into(),
            "a\"ü\n".into(),
            Value::Blob([0, 255][..].into()),
            serde_json::json!({ "a": [1, null] }).into(),
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(from_key(&key(&some()), 7), Some(some()));
        assert_eq!(from_key(&[], 0), Some(Vec::new()));
    }

    #[test]
    fn what_is_cut_or_too_long_or_garbage_is_none() {
        let whole = key(&some());
        for end in 0..whole.len() {
            assert_eq!(from_key(&whole[..end], 7), None, "{end}");
        }
        for count in [0, 6, 8] {
            assert_eq!(from_key(&whole, count), None);
        }
        for bytes in [&b"x"[..], b"o\x02", b"t\xff\xff\xff\xff\xff\xff\xff\xff"] {
            assert_eq!(from_key(bytes, 1), None);
        }
    }

    #[test]
    fn json_gives_what_a_request_would_give_and_nothing_else() {
        let param = |kind, default| Param {
            default,
            ..Param::new("p", kind)
        };
        for (kind, value) in [
            (ValueKind::Integer, Value::from(i64::MAX)),
            (ValueKind::Real, Value::Real(0.1)),
            (ValueKind::Boolean, false.into()),
            (ValueKind::Text, "x".into()),
        ] {
            let json = to_json(&value).unwrap();
            assert_eq!(from_json(&param(kind, None), &json), Some(value));
        }
        let number = param(ValueKind::Integer, Some(Value::Null));
        assert_eq!(from_json(&number, &Json::Null), Some(Value::Null));
        for json in [Json::from("1"), 1.5.into(), u64::MAX.into(), true.into()] {
            assert_eq!(from_json(&number, &json), None, "{json}");
        }
        assert_eq!(
            from_json(&param(ValueKind::Integer, None), &Json::Null),
            None
        );
        let sizes = Param {
            choices: [10.into(), 20.into()].into(),
            ..param(ValueKind::Integer, None)
        };
        assert_eq!(from_json(&sizes, &10.into()), Some(10.into()));
        assert_eq!(from_json(&sizes, &11.into()), None);
        let tracks = Param {
            is_list: true,
            ..param(ValueKind::Integer, None)
        };
        let tracks = |json: Json| from_json(&tracks, &json);
        let some = Value::from(serde_json::json!([1, 6]));
        assert_eq!(tracks(to_json(&some).unwrap()), Some(some));
        for json in [
            serde_json::json!([6, 1]),
            serde_json::json!(["1"]),
            1.into(),
        ] {
            assert_eq!(tracks(json.clone()), None, "{json}");
        }
        assert_eq!(to_json(&Value::Blob([1][..].into())), None);
        assert_eq!(to_json(&Value::Real(f64::NAN)), None);
    }
}
