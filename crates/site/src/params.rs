//! The declared parameters of a page, from the request to typed values and to the cache key.

use std::borrow::Cow;

use millpond_db::{Kind, Value};

/// A parameter that a page's queries use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) default: Option<Value>,
    /// Its place among the path's parameters, if it is one.
    pub(crate) in_path: Option<usize>,
}

/// What is wrong with a request's parameters: the sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadParam(pub(crate) String);

/// Takes the declared parameters from the path, then the form, then the query string, typed; those that are not declared are
/// not looked at (COHERENCE, rule 15).
pub(crate) fn gather(
    params: &[Param],
    path: &[&str],
    form: &[(Cow<'_, str>, Cow<'_, str>)],
    query: Option<&str>,
) -> Result<Vec<Value>, BadParam> {
    params
        .iter()
        .map(|param| one(param, path, form, query))
        .collect()
}

fn one(
    param: &Param,
    path: &[&str],
    form: &[(Cow<'_, str>, Cow<'_, str>)],
    query: Option<&str>,
) -> Result<Value, BadParam> {
    if let Some(text) = param.in_path.and_then(|at| path.get(at)) {
        return typed(param, text);
    }
    let in_form = single(
        &param.name,
        form.iter().map(|(name, value)| (name.as_ref(), value)),
    )?;
    if let Some(text) = in_form {
        return typed(param, text);
    }
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut found: Option<Cow<'_, str>> = None;
    for (name, value) in pairs {
        if name == param.name && found.replace(value).is_some() {
            return Err(twice(&param.name));
        }
    }
    match (found, &param.default) {
        (Some(text), _) => typed(param, &text),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(BadParam(format!(
            "The parameter \"{}\" is missing.",
            param.name
        ))),
    }
}

fn single<'f>(
    name: &str,
    pairs: impl Iterator<Item = (&'f str, &'f Cow<'f, str>)>,
) -> Result<Option<&'f str>, BadParam> {
    let mut found = None;
    for (other, value) in pairs {
        if other == name && found.replace(value.as_ref()).is_some() {
            return Err(twice(name));
        }
    }
    Ok(found)
}

fn twice(name: &str) -> BadParam {
    BadParam(format!("The parameter \"{name}\" is given twice."))
}

fn typed(param: &Param, text: &str) -> Result<Value, BadParam> {
    let wrong = |what: &str| BadParam(format!("The parameter \"{}\" must be {what}.", param.name));
    match param.kind {
        Kind::Integer => text
            .parse()
            .map(Value::Integer)
            .map_err(|_| wrong("a whole number")),
        Kind::Real => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Real(number)),
            _ => Err(wrong("a number")),
        },
        Kind::Text => Ok(Value::Text(text.into())),
        Kind::Blob => Err(wrong("bytes, which no request can give")),
    }
}

/// Appends a value to a key so that no two lists of values give the same bytes.
pub(crate) fn push_key(key: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => key.push(b'n'),
        Value::Integer(integer) => {
            key.push(b'i');
            key.extend_from_slice(&integer.to_le_bytes());
        }
        Value::Real(real) => {
            key.push(b'r');
            key.extend_from_slice(&real.to_bits().to_le_bytes());
        }
        Value::Text(text) => push_bytes(key, b't', text.as_bytes()),
        Value::Blob(bytes) => push_bytes(key, b'b', bytes),
    }
}

/// Appends bytes with their kind and length.
pub(crate) fn push_bytes(key: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    key.push(kind);
    key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    key.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, kind: Kind, default: Option<Value>, in_path: Option<usize>) -> Param {
        Param {
            name: name.into(),
            kind,
            default,
            in_path,
        }
    }

    #[test]
    fn path_before_form_before_query() {
        let id = [param("id", Kind::Integer, None, None)];
        let form = [(Cow::from("id"), Cow::from("2"))];
        let in_path = [param("id", Kind::Integer, None, Some(0))];
        assert_eq!(
            gather(&in_path, &["1"], &form, Some("id=3")),
            Ok(vec![Value::Integer(1)])
        );
        assert_eq!(
            gather(&id, &[], &form, Some("id=3")),
            Ok(vec![Value::Integer(2)])
        );
        assert_eq!(
            gather(&id, &[], &[], Some("utm_source=x&id=3")),
            Ok(vec![Value::Integer(3)])
        );
    }

    #[test]
    fn bad_ones_are_named() {
        let id = [param("id", Kind::Integer, None, None)];
        for (query, expected) in [
            (None, "The parameter \"id\" is missing."),
            (Some("id=1&id=1"), "The parameter \"id\" is given twice."),
            (Some("id="), "The parameter \"id\" must be a whole number."),
            (
                Some("id=1.0"),
                "The parameter \"id\" must be a whole number.",
            ),
            (
                Some("id=9223372036854775808"),
                "The parameter \"id\" must be a whole number.",
            ),
        ] {
            assert_eq!(
                gather(&id, &[], &[], query),
                Err(BadParam(expected.into())),
                "{query:?}"
            );
        }
        let real = [param("x", Kind::Real, None, None)];
        assert!(gather(&real, &[], &[], Some("x=nan")).is_err());
    }

    #[test]
    fn equal_values_have_equal_keys_and_others_not() {
        let key = |values: &[Value]| {
            let mut key = Vec::new();
            values.iter().for_each(|value| push_key(&mut key, value));
            key
        };
        let id = [param("id", Kind::Integer, None, None)];
        assert_eq!(
            key(&gather(&id, &[], &[], Some("id=07")).unwrap()),
            key(&gather(&id, &[], &[], Some("id=%37")).unwrap())
        );
        assert_ne!(
            key(&["a".into(), "bc".into()]),
            key(&["ab".into(), "c".into()])
        );
        assert_ne!(key(&["7".into()]), key(&[7.into()]));
    }
}
