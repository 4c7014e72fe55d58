//! One value of a parameter: from its text to its kind, and to its bytes in a key.

use std::borrow::Cow;

use millpond_db::{Value, ValueKind};
use serde_json::Value as Json;

use crate::params::{BadParam, Param};

/// Fault of a text that no database is to see, to stand behind the parameter's name.
const CODE_ZERO: &str = "must not have a character of code zero in it";

/// A parameter's text, read as what the parameter is declared to be.
pub enum TypedText<'t> {
    Integer(i64),
    Real(f64),
    Boolean(bool),
    Text(Cow<'t, str>),
}

impl<'t> TypedText<'t> {
    pub fn of(param: &Param, text: &'t str) -> Result<Self, BadParam> {
        let typed = match param.kind {
            ValueKind::Integer => whole(param, text).map(Self::Integer)?,
            ValueKind::Real => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Self::Real(number),
                _ => return Err(must_be(param, "a number")),
            },
            ValueKind::Boolean => truth(text)
                .map(Self::Boolean)
                .ok_or_else(|| must_be(param, "true or false"))?,
            // PostgreSQL takes no such text. SQLite stores it, but its length() ends there, so a
            // `check` of the length would not hold.
            ValueKind::Text | ValueKind::Other if text.contains('\0') => {
                return Err(BadParam::new(param, CODE_ZERO));
            }
            // The database reads a value of another kind, and refuses it if it cannot.
            ValueKind::Text | ValueKind::Other => Self::Text(Cow::Borrowed(text)),
            ValueKind::Blob => return Err(must_be(param, "bytes, which no request can give")),
        };
        match param.takes_all() {
            true => Ok(typed),
            false => typed.permitted(param),
        }
    }

    /// Returns the value, if the rules and the choices of the parameter allow it. Most parameters
    /// have neither, so this check stands apart from the work of every page.
    #[inline(never)]
    fn permitted(self, param: &Param) -> Result<Self, BadParam> {
        let typed = match (self, &param.rules) {
            (Self::Text(Cow::Borrowed(text)), Some(rules)) => {
                let read = rules.read(text);
                Self::Text(read.map_err(|wanted| must_be(param, wanted))?)
            }
            (typed, _) => typed,
        };
        if let Some(rules) = &param.rules
            && rules.has_range()
            && !rules.is_in_range(&typed.value())
        {
            return Err(must_be(param, &rules.range().unwrap_or_default()));
        }
        if param.choices.is_empty() || param.choices.iter().any(|choice| typed.is(choice)) {
            return Ok(typed);
        }
        let choices = param.choices.iter().map(shown).collect::<Vec<_>>();
        Err(must_be(param, &format!("one of {}", choices.join(", "))))
    }

    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer(own), Value::Integer(other)) => own == other,
            (Self::Real(own), Value::Real(other)) => own == other,
            (Self::Boolean(own), Value::Boolean(other)) => own == other,
            (Self::Text(own), Value::Text(other)) => *own == **other,
            _ => false,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Integer(integer) => Value::Integer(*integer),
            Self::Real(real) => Value::Real(*real),
            Self::Boolean(truth) => Value::Boolean(*truth),
            Self::Text(text) => Value::from(&**text),
        }
    }

    pub fn push_key(&self, key: &mut Vec<u8>) {
        match self {
            Self::Integer(integer) => push_integer(key, *integer),
            Self::Real(real) => push_real(key, *real),
            Self::Boolean(truth) => push_boolean(key, *truth),
            Self::Text(text) => push_bytes(key, b't', text.as_bytes()),
        }
    }
}

fn must_be(param: &Param, what: &str) -> BadParam {
    BadParam::new(param, &format!("must be {what}"))
}

fn whole(param: &Param, text: &str) -> Result<i64, BadParam> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| {
        let wrong = match error.kind() {
            PosOverflow => "is too large",
            NegOverflow => "is too small",
            _ => return BadParam::new(param, "must be a whole number"),
        };
        BadParam::new(param, param.range().as_deref().unwrap_or(wrong))
    })
}

/// A value in a sentence.
pub fn shown(value: &Value) -> String {
    match item(value) {
        Json::String(text) if text.is_empty() => "nothing".to_owned(),
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// Appends a value to a key so that no two lists of values give the same bytes.
pub fn push_key(key: &mut Vec<u8>, value: &Value) {
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
pub fn truth(text: &str) -> Option<bool> {
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
pub fn push_bytes(key: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    key.push(kind);
    key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    key.extend_from_slice(bytes);
}

/// The text of one item of a list, typed.
pub fn list_item(param: &Param, text: &str) -> Result<Value, BadParam> {
    Ok(match TypedText::of(param, text)? {
        // Minus zero is zero.
        TypedText::Real(real) => Value::Real(real + 0.0),
        other => other.value(),
    })
}

/// The text of a parameter, typed.
pub fn typed(param: &Param, text: &str) -> Result<Value, BadParam> {
    TypedText::of(param, text).map(|typed| typed.value())
}

/// The value of a list parameter with these items.
pub fn list_of(param: &Param, items: Vec<Value>) -> Value {
    match param.is_as_sent() {
        true => Value::from(Json::Array(items.iter().map(item).collect())),
        false => list(items),
    }
}

/// The one form of a list with these items.
pub fn list(mut items: Vec<Value>) -> Value {
    items.sort_by(order);
    items.dedup();
    let items = items.iter().map(item);
    Value::from(Json::Array(items.collect()))
}

/// An order of values of one kind.
fn order(one: &Value, other: &Value) -> std::cmp::Ordering {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => one.cmp(other),
        (Value::Real(one), Value::Real(other)) => one.total_cmp(other),
        (Value::Boolean(one), Value::Boolean(other)) => one.cmp(other),
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => std::cmp::Ordering::Equal,
    }
}

fn item(value: &Value) -> Json {
    match value {
        Value::Integer(integer) => (*integer).into(),
        Value::Real(real) => (*real).into(),
        Value::Boolean(truth) => (*truth).into(),
        Value::Text(text) => text.to_string().into(),
        Value::Null | Value::Blob(_) | Value::Json(_) => Json::Null,
    }
}
