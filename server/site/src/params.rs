//! The declared parameters of a page, from the request to typed values and to the cache key.

use std::borrow::Cow;

use millpond_db::{Value, ValueKind};

/// A parameter that a page's queries use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) kind: ValueKind,
    pub(crate) default: Option<Value>,
    /// Its place among the path's parameters, if it is one.
    pub(crate) in_path: Option<usize>,
}

/// What is wrong with a request's parameters: the sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadParam(pub(crate) String);

impl BadParam {
    /// A parameter that the database does not take.
    pub(crate) fn refused(name: &str, message: &str) -> Self {
        Self(format!(
            "The parameter \"{name}\" is not right: {}.",
            message.trim_end_matches('.')
        ))
    }
}

/// The sources of a request's parameters: the path, then the form, then the query string. An
/// undeclared parameter is ignored (coherence.md, rule 15).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'r> {
    pub(crate) path: &'r [&'r str],
    pub(crate) form: &'r [(Cow<'r, str>, Cow<'r, str>)],
    pub(crate) query: Option<&'r str>,
}

impl Given<'_> {
    /// The declared parameters, typed.
    pub(crate) fn values(&self, params: &[Param]) -> Result<Vec<Value>, BadParam> {
        params
            .iter()
            .map(|param| {
                self.find(param, |found| match found {
                    ParamInput::Text(text) => TypedText::of(param, text).map(TypedText::into_value),
                    ParamInput::Default(value) => Ok(value.clone()),
                })
            })
            .collect()
    }

    /// Appends the keys of the declared parameters: the same bytes as [`push_key`] for each of
    /// [`Given::values`], without an allocation.
    pub(crate) fn push_keys(&self, params: &[Param], key: &mut Vec<u8>) -> Result<(), BadParam> {
        params.iter().try_for_each(|param| {
            self.find(param, |found| {
                match found {
                    ParamInput::Text(text) => TypedText::of(param, text)?.push_key(key),
                    ParamInput::Default(value) => push_key(key, value),
                }
                Ok(())
            })
        })
    }

    fn find<T>(
        &self,
        param: &Param,
        then: impl FnOnce(ParamInput<'_>) -> Result<T, BadParam>,
    ) -> Result<T, BadParam> {
        if let Some(text) = param.in_path.and_then(|at| self.path.get(at)) {
            return then(ParamInput::Text(text));
        }
        let in_form = self.form.iter().filter(|(name, _)| *name == param.name);
        if let Some(text) = single(param, in_form.map(|(_, text)| text))? {
            return then(ParamInput::Text(text));
        }
        let query = self.query.unwrap_or_default();
        if let Some(text) = single(param, in_query(query, &param.name))? {
            return then(ParamInput::Text(&text));
        }
        match &param.default {
            Some(default) => then(ParamInput::Default(default)),
            None => Err(BadParam(format!(
                "The parameter \"{}\" is missing.",
                param.name
            ))),
        }
    }
}

/// What there is for a parameter.
enum ParamInput<'f> {
    Text(&'f str),
    Default(&'f Value),
}

/// The values of `name` in a query string. Pairs without an escape, which most are, are compared in
/// place.
fn in_query<'q>(query: &'q str, name: &'q str) -> impl Iterator<Item = Cow<'q, str>> {
    let mut rest = query;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let pair = Pair::first(rest);
            rest = rest.get(pair.text.len() + 1..).unwrap_or_default();
            if let Some(value) = pair.value_of(name) {
                return Some(value);
            }
        }
        None
    })
}

/// One `name=value` of a query string.
struct Pair<'q> {
    text: &'q str,
    equals: Option<usize>,
    escaped: bool,
}

impl<'q> Pair<'q> {
    /// Up to the first ampersand, looked at once.
    fn first(query: &'q str) -> Self {
        let (mut end, mut equals, mut escaped) = (query.len(), None, false);
        for (at, byte) in query.bytes().enumerate() {
            match byte {
                b'&' => {
                    end = at;
                    break;
                }
                b'=' if equals.is_none() => equals = Some(at),
                b'%' | b'+' => escaped = true,
                _ => {}
            }
        }
        Self {
            text: &query[..end],
            equals,
            escaped,
        }
    }

    fn value_of(&self, name: &str) -> Option<Cow<'q, str>> {
        if self.escaped {
            let (found, value) = form_urlencoded::parse(self.text.as_bytes()).next()?;
            return (found == name).then_some(value);
        }
        let (found, value) = match self.equals {
            Some(at) => (&self.text[..at], &self.text[at + 1..]),
            None => (self.text, ""),
        };
        (found == name && !self.text.is_empty()).then_some(Cow::Borrowed(value))
    }
}

fn single<T>(param: &Param, mut all: impl Iterator<Item = T>) -> Result<Option<T>, BadParam> {
    let first = all.next();
    match all.next() {
        Some(_) => Err(BadParam(format!(
            "The parameter \"{}\" is given twice.",
            param.name
        ))),
        None => Ok(first),
    }
}

/// A parameter's text, read as what the parameter is declared to be.
enum TypedText<'t> {
    Integer(i64),
    Real(f64),
    Boolean(bool),
    Text(&'t str),
}

impl<'t> TypedText<'t> {
    fn of(param: &Param, text: &'t str) -> Result<Self, BadParam> {
        let wrong =
            |what: &str| BadParam(format!("The parameter \"{}\" must be {what}.", param.name));
        match param.kind {
            ValueKind::Integer => text
                .parse()
                .map(Self::Integer)
                .map_err(|_| wrong("a whole number")),
            ValueKind::Real => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Self::Real(number)),
                _ => Err(wrong("a number")),
            },
            ValueKind::Boolean => truth(text)
                .map(Self::Boolean)
                .ok_or_else(|| wrong("true or false")),
            // The database reads a value of another kind, and refuses it if it cannot.
            ValueKind::Text | ValueKind::Other => Ok(Self::Text(text)),
            ValueKind::Blob => Err(wrong("bytes, which no request can give")),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Integer(integer) => Value::Integer(integer),
            Self::Real(real) => Value::Real(real),
            Self::Boolean(truth) => Value::Boolean(truth),
            Self::Text(text) => Value::Text(text.into()),
        }
    }

    fn push_key(&self, key: &mut Vec<u8>) {
        match self {
            Self::Integer(integer) => push_integer(key, *integer),
            Self::Real(real) => push_real(key, *real),
            Self::Boolean(truth) => push_boolean(key, *truth),
            Self::Text(text) => push_bytes(key, b't', text.as_bytes()),
        }
    }
}

/// Appends a value to a key so that no two lists of values give the same bytes.
pub(crate) fn push_key(key: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => key.push(b'n'),
        Value::Integer(integer) => push_integer(key, *integer),
        Value::Real(real) => push_real(key, *real),
        Value::Text(text) => push_bytes(key, b't', text.as_bytes()),
        Value::Blob(bytes) => push_bytes(key, b'b', bytes),
        Value::Boolean(truth) => push_boolean(key, *truth),
        Value::Json(json) => push_bytes(key, b'j', json.to_string().as_bytes()),
    }
}

/// The spellings of true and false in a request; a ticked box sends `on`, and an empty box sends
/// nothing.
fn truth(text: &str) -> Option<bool> {
    const WORDS: [(&str, bool); 8] = [
        ("true", true),
        ("on", true),
        ("yes", true),
        ("1", true),
        ("false", false),
        ("off", false),
        ("no", false),
        ("0", false),
    ];
    let named = WORDS
        .iter()
        .find(|(word, _)| text.eq_ignore_ascii_case(word));
    named.map(|(_, truth)| *truth)
}

fn push_boolean(key: &mut Vec<u8>, truth: bool) {
    key.extend_from_slice(&[b'o', truth.into()]);
}

fn push_integer(key: &mut Vec<u8>, integer: i64) {
    key.push(b'i');
    key.extend_from_slice(&integer.to_le_bytes());
}

fn push_real(key: &mut Vec<u8>, real: f64) {
    key.push(b'r');
    key.extend_from_slice(&real.to_bits().to_le_bytes());
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

    fn gather(
        params: &[Param],
        path: &[&str],
        form: &[(Cow<'_, str>, Cow<'_, str>)],
        query: Option<&str>,
    ) -> Result<Vec<Value>, BadParam> {
        let given = Given { path, form, query };
        let values = given.values(params);
        let (mut direct, mut by_value) = (Vec::new(), Vec::new());
        let pushed = given.push_keys(params, &mut direct);
        for value in values.iter().flatten() {
            push_key(&mut by_value, value);
        }
        assert_eq!(pushed.err(), values.as_ref().err().cloned());
        if values.is_ok() {
            assert_eq!(direct, by_value, "a hit and a fill must agree on the key");
        }
        values
    }

    fn param(name: &str, kind: ValueKind, default: Option<Value>, in_path: Option<usize>) -> Param {
        Param {
            name: name.into(),
            kind,
            default,
            in_path,
        }
    }

    #[test]
    fn path_before_form_before_query() {
        let id = [param("id", ValueKind::Integer, None, None)];
        let form = [(Cow::from("id"), Cow::from("2"))];
        let in_path = [param("id", ValueKind::Integer, None, Some(0))];
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
        let id = [param("id", ValueKind::Integer, None, None)];
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
        for (query, expected) in [
            ("%69d=5", 5),
            ("&&id=6&", 6),
            ("ids=1&xid=2&id=7", 7),
            ("id=%2B8&a+b=%zz", 8),
            ("a=b=c&id=9", 9),
        ] {
            assert_eq!(
                gather(&id, &[], &[], Some(query)),
                Ok(vec![Value::Integer(expected)]),
                "{query}"
            );
        }
        let text = [param("q", ValueKind::Text, Some("none".into()), None)];
        for (query, expected) in [
            ("q=a+b%26c", "a b&c"),
            ("q", ""),
            ("=x", "none"),
            ("", "none"),
        ] {
            assert_eq!(
                gather(&text, &[], &[], Some(query)),
                Ok(vec![expected.into()]),
                "{query}"
            );
        }
        let real = [param("x", ValueKind::Real, None, None)];
        assert!(gather(&real, &[], &[], Some("x=nan")).is_err());
        let ticked = [param("b", ValueKind::Boolean, Some(false.into()), None)];
        for (query, expected) in [
            (None, Some(false)),
            (Some("b=on"), Some(true)),
            (Some("b=TRUE"), Some(true)),
            (Some("b=0"), Some(false)),
            (Some("b=2"), None),
            (Some("b="), None),
        ] {
            assert_eq!(
                gather(&ticked, &[], &[], query).ok(),
                expected.map(|truth| vec![truth.into()]),
                "{query:?}"
            );
        }
    }

    #[test]
    fn equal_values_have_equal_keys_and_others_not() {
        let key = |values: &[Value]| {
            let mut key = Vec::new();
            values.iter().for_each(|value| push_key(&mut key, value));
            key
        };
        let id = [param("id", ValueKind::Integer, None, None)];
        assert_eq!(
            key(&gather(&id, &[], &[], Some("id=07")).unwrap()),
            key(&gather(&id, &[], &[], Some("id=%37")).unwrap())
        );
        assert_ne!(
            key(&["a".into(), "bc".into()]),
            key(&["ab".into(), "c".into()])
        );
        assert_ne!(key(&["7".into()]), key(&[7.into()]));
        assert_ne!(key(&[true.into()]), key(&[1.into()]));
        let document = serde_json::json!({ "a": 1 });
        assert_ne!(
            key(&[document.to_string().as_str().into()]),
            key(&[document.into()])
        );
    }
}
