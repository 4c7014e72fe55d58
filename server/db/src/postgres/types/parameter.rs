//! Values of parameters, as the text that the server reads.

use std::error::Error as StdError;
use std::fmt::Write as _;

use bytes::BytesMut;
use serde_json::Value as Json;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type};

use super::array;
use crate::{Error, Value};

/// A value that is sent as text for a parameter of any type.
#[derive(Debug)]
pub(crate) struct Bound<'a>(pub(crate) &'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let base = base(kind);
        match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::Integer(integer) => write!(out, "{integer}")?,
            Value::Real(whole) if is_integer(base) => write!(out, "{whole:.0}")?,
            Value::Real(number) => out.write_str(&real(*number))?,
            Value::Text(text) => out.write_str(text)?,
            Value::Blob(bytes) if *base == Type::BYTEA => out.write_str(&hex(bytes))?,
            Value::Blob(bytes) => out.extend_from_slice(bytes),
            Value::Boolean(truth) if is_integer(base) => write!(out, "{}", u8::from(*truth))?,
            Value::Boolean(truth) => write!(out, "{truth}")?,
            Value::Json(json) => out.write_str(&document(json, base))?,
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql(kind, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }
}

/// A document as a parameter of this type.
fn document(json: &Json, base: &Type) -> String {
    match (base.kind(), json) {
        (Kind::Array(element), Json::Array(list)) => {
            let mut text = String::new();
            array::write(list, is_json(self::base(element)), &mut text);
            text
        }
        (_, Json::String(text)) if !is_json(base) => text.clone(),
        _ => json.to_string(),
    }
}

/// Returns the type that a domain is made of.
fn base(kind: &Type) -> &Type {
    match kind.kind() {
        Kind::Domain(inner) => base(inner),
        _ => kind,
    }
}

fn is_integer(base: &Type) -> bool {
    matches!(*base, Type::INT2 | Type::INT4 | Type::INT8 | Type::OID)
}

fn is_json(base: &Type) -> bool {
    matches!(*base, Type::JSON | Type::JSONB)
}

/// Says what does not fit before it is sent: then the transaction goes on, and the words are the
/// same in every language of the server. What is not certain is left to the server.
pub(crate) fn fits(name: &str, value: &Value, kind: &Type) -> Result<(), Error> {
    let base = base(kind);
    let wrong = match value {
        Value::Integer(integer) if is_integer(base) => range(base, (*integer).into()),
        Value::Real(number) if is_integer(base) => {
            // Beyond 2^63 the comparison with the range decides.
            if number.fract() == 0.0 && number.abs() < 1e19 {
                range(base, *number as i128)
            } else {
                Some("must be a whole number")
            }
        }
        Value::Text(text) if is_integer(base) => match text.trim().parse::<i128>() {
            Ok(integer) => range(base, integer),
            Err(_) => Some("must be a whole number"),
        },
        Value::Text(text) if text.contains('\0') => {
            Some("must not have a character of code zero in it")
        }
        Value::Blob(bytes) if *base != Type::BYTEA && std::str::from_utf8(bytes).is_err() => {
            Some("must be UTF-8")
        }
        _ => None,
    };
    match wrong {
        None => Ok(()),
        Some(wrong) => Err(Error::Parameter {
            name: name.to_owned(),
            message: wrong.to_owned(),
            reported: None,
        }),
    }
}

fn range(base: &Type, integer: i128) -> Option<&'static str> {
    let (least, greatest) = match *base {
        Type::INT2 => (i16::MIN.into(), i16::MAX.into()),
        Type::INT4 => (i32::MIN.into(), i32::MAX.into()),
        Type::OID => (0, u32::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    };
    if integer < least {
        return Some("is too small");
    }
    (integer > greatest).then_some("is too large")
}

/// A double as PostgreSQL writes and reads it.
pub(super) fn real(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        format!("{sign}Infinity")
    } else {
        format!("{number:?}")
    }
}

/// Bytes as PostgreSQL writes and reads them.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("\\x");
    for byte in bytes {
        // A String takes all that is written.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(value: &Value, kind: &Type) -> String {
        let mut out = BytesMut::new();
        assert!(matches!(
            Bound(value).to_sql_checked(kind, &mut out).unwrap(),
            IsNull::No
        ));
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn values_become_what_their_type_reads() {
        for (value, kind, text) in [
            (Value::Integer(7), Type::TEXT, "7"),
            (Value::Integer(-7), Type::INT4, "-7"),
            (Value::Real(7.0), Type::INT8, "7"),
            (Value::Real(0.1), Type::NUMERIC, "0.1"),
            (Value::Real(1e300), Type::FLOAT8, "1e300"),
            (Value::Real(f64::NEG_INFINITY), Type::FLOAT8, "-Infinity"),
            (Value::Boolean(true), Type::INT4, "1"),
            (Value::Boolean(false), Type::BOOL, "false"),
            (Value::Blob([1, 255].into()), Type::BYTEA, "\\x01ff"),
            (Value::from("a"), Type::JSONB, "a"),
        ] {
            assert_eq!(sent(&value, &kind), text);
        }
        let list = Value::Json(std::sync::Arc::new(serde_json::json!([1, "a"])));
        assert_eq!(sent(&list, &Type::TEXT_ARRAY), "{1,\"a\"}");
        assert_eq!(sent(&list, &Type::JSONB), "[1,\"a\"]");
        let word = Value::Json(std::sync::Arc::new(serde_json::json!("a")));
        assert_eq!(sent(&word, &Type::TEXT), "a");
        assert_eq!(sent(&word, &Type::JSON), "\"a\"");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused = |value: Value, kind: &Type| match fits("id", &value, kind) {
            Err(Error::Parameter { name, .. }) => name == "id",
            _ => false,
        };
        assert!(refused(Value::Integer(i64::MAX), &Type::INT4));
        assert!(refused(Value::Integer(-1), &Type::OID));
        assert!(refused("x".into(), &Type::INT8));
        assert!(refused("9223372036854775808".into(), &Type::INT8));
        assert!(refused("".into(), &Type::INT2));
        assert!(refused(Value::Real(0.5), &Type::INT4));
        assert!(refused(Value::Real(9.3e18), &Type::INT8));
        assert!(refused(Value::Real(f64::NAN), &Type::INT8));
        assert!(refused("a\0".into(), &Type::TEXT));
        assert!(refused(Value::Blob([255].into()), &Type::TEXT));
        assert!(!refused(" 7 ".into(), &Type::INT2));
        assert!(!refused(Value::Null, &Type::INT2));
        assert!(!refused("x".into(), &Type::DATE));
    }
}
