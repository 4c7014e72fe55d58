//! Columns of results, from PostgreSQL's binary forms.

use std::sync::Arc;

use tokio_postgres::types::{Kind, Type};

use super::{array, calendar, network, numeric};
use crate::Value;

/// How one column is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decoder {
    Boolean,
    SmallInteger,
    Integer,
    BigInteger,
    Oid,
    Float,
    Double,
    Text,
    Bytes,
    Uuid,
    Json,
    JsonBinary,
    Numeric,
    Date,
    Time,
    Timestamp,
    TimestampWithZone,
    Network,
    Array(Box<Decoder>),
}

impl Decoder {
    /// `None` for a type that has to be cast to text.
    pub(crate) fn of(column: &Type) -> Option<Self> {
        match column.kind() {
            // A domain is sent as what it is made of, an enum as its label.
            Kind::Domain(base) => return Self::of(base),
            Kind::Enum(_) => return Some(Self::Text),
            Kind::Array(element) => {
                return Self::of(element).map(|element| Self::Array(Box::new(element)));
            }
            _ => {}
        }
        Some(match *column {
            Type::BOOL => Self::Boolean,
            Type::INT2 => Self::SmallInteger,
            Type::INT4 => Self::Integer,
            Type::INT8 => Self::BigInteger,
            Type::OID => Self::Oid,
            Type::FLOAT4 => Self::Float,
            Type::FLOAT8 => Self::Double,
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => Self::Text,
            Type::BYTEA => Self::Bytes,
            Type::UUID => Self::Uuid,
            Type::JSON => Self::Json,
            Type::JSONB => Self::JsonBinary,
            Type::NUMERIC => Self::Numeric,
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampWithZone,
            Type::INET | Type::CIDR => Self::Network,
            _ => return None,
        })
    }

    /// Reads one value that is not null; `None` if the bytes are not of this type.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<Value> {
        let text = |text: String| Value::Text(text.into());
        Some(match self {
            Self::Boolean => Value::Boolean(bytes.first()? != &0),
            Self::SmallInteger => Value::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into()),
            Self::Integer => Value::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into()),
            Self::BigInteger => Value::Integer(i64::from_be_bytes(bytes.try_into().ok()?)),
            Self::Oid => Value::Integer(u32::from_be_bytes(bytes.try_into().ok()?).into()),
            Self::Float => Value::Real(widened(f32::from_be_bytes(bytes.try_into().ok()?))),
            Self::Double => Value::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
            Self::Text => Value::Text(std::str::from_utf8(bytes).ok()?.into()),
            Self::Bytes => Value::Blob(bytes.into()),
            Self::Uuid => text(uuid(bytes.try_into().ok()?)),
            Self::Json => Value::Json(Arc::new(serde_json::from_slice(bytes).ok()?)),
            Self::JsonBinary => {
                let (version, document) = bytes.split_first()?;
                let document = Some(document).filter(|_| *version == 1)?;
                Value::Json(Arc::new(serde_json::from_slice(document).ok()?))
            }
            Self::Numeric => text(numeric::read(bytes)?),
            Self::Date => text(calendar::date(i32::from_be_bytes(bytes.try_into().ok()?))),
            Self::Time => text(calendar::time(i64::from_be_bytes(bytes.try_into().ok()?))),
            Self::Timestamp | Self::TimestampWithZone => {
                let zone = *self == Self::TimestampWithZone;
                let moment = i64::from_be_bytes(bytes.try_into().ok()?);
                text(calendar::timestamp(moment, zone))
            }
            Self::Network => text(network::read(bytes)?),
            Self::Array(element) => Value::Json(Arc::new(array::read(bytes, element)?)),
        })
    }
}

/// The double that is written as the float is: 0.1 stays 0.1.
fn widened(float: f32) -> f64 {
    float.to_string().parse().unwrap_or_else(|_| float.into())
}

fn uuid(bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_type_are_refused() {
        for decoder in [
            Decoder::Integer,
            Decoder::BigInteger,
            Decoder::Uuid,
            Decoder::Json,
            Decoder::JsonBinary,
            Decoder::Numeric,
            Decoder::Timestamp,
            Decoder::Array(Box::new(Decoder::Text)),
        ] {
            assert_eq!(decoder.read(&[1, 2, 3]), None, "{decoder:?}");
        }
        assert_eq!(Decoder::Text.read(&[0xff]), None);
    }

    #[test]
    fn a_float_keeps_its_digits() {
        assert_eq!(widened(0.1), 0.1);
        assert_eq!(widened(f32::NEG_INFINITY), f64::NEG_INFINITY);
        assert!(widened(f32::NAN).is_nan());
    }
}
