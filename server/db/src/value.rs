//! Values, and the rows that queries give.

use std::sync::Arc;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};

/// Bytes that one result may have.
pub(crate) const MAX_RESULT: usize = 64 << 20;

/// Bytes that a row costs for each of its values, besides texts and blobs.
pub(crate) const PER_VALUE: usize = size_of::<Value>();

pub(crate) fn size_of_row(values: &[Value]) -> usize {
    let sizes = values.iter().map(|value| PER_VALUE + value.heap_size());
    sizes.sum()
}

/// One value: SQLite's five storage classes, and PostgreSQL's types that pages distinguish. A type
/// without a variant of its own is text, in the form in which the database writes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The absence of a value.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// A double.
    Real(f64),
    /// Text. Bytes that are not UTF-8 are read as U+FFFD.
    Text(Arc<str>),
    /// Bytes.
    Blob(Arc<[u8]>),
    /// True or false. SQLite keeps it as 1 or 0.
    Boolean(bool),
    /// A JSON document, or an array of PostgreSQL as a list. SQLite keeps it as its text.
    Json(Arc<serde_json::Value>),
}

/// The kind of value that a column or a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A 64-bit integer.
    Integer,
    /// A double.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Blob,
    /// True or false.
    Boolean,
    /// Another type of the database, such as a date. Its values are given as text, which the
    /// database parses.
    Other,
}

impl Value {
    /// The bytes that the value holds on the heap; for limits and accounting.
    #[must_use]
    pub fn heap_size(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) | Self::Boolean(_) => 0,
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::Json(json) => size_of::<serde_json::Value>() + json_size(json),
        }
    }
}

/// The bytes that a document holds outside its root. A map is counted by its keys and values, with
/// one word for each link.
fn json_size(json: &serde_json::Value) -> usize {
    use serde_json::Value as Json;
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        Json::String(text) => text.len(),
        Json::Array(list) => list
            .iter()
            .map(|item| size_of::<Json>() + json_size(item))
            .sum(),
        Json::Object(map) => map
            .iter()
            .map(|(key, item)| {
                size_of::<String>() + key.len() + size_of::<Json>() + 8 + json_size(item)
            })
            .sum(),
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(integer) => Self::Integer(integer),
            ValueRef::Real(real) => Self::Real(real),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).as_ref().into()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.into()),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(integer) => ValueRef::Integer(*integer),
            Self::Real(real) => ValueRef::Real(*real),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::Boolean(truth) => ValueRef::Integer((*truth).into()),
            Self::Json(json) => return Ok(ToSqlOutput::Owned(Owned::Text(json.to_string()))),
        }))
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl From<$type> for Value {
            fn from(integer: $type) -> Self {
                Self::Integer(integer.into())
            }
        })*
    };
}

integers!(i32, u32, i16, u16, u8);

impl From<f64> for Value {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes.into())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        Self::Json(Arc::new(json))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// The rows that one statement returned.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRows {
    /// The names of the columns, as the database returns them.
    pub columns: Arc<[Arc<str>]>,
    /// The rows, in order; each has one value for each column.
    pub rows: Vec<Vec<Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_keeps_truth_as_a_number_and_a_document_as_its_text() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let kept = |value: Value| -> Value {
            let read = |row: &rusqlite::Row<'_>| Ok(row.get_ref(0)?.into());
            connection.query_row("select ?1", [value], read).unwrap()
        };
        assert_eq!(kept(true.into()), 1.into());
        assert_eq!(kept(false.into()), 0.into());
        let list = serde_json::json!(["a", 1, null]);
        assert_eq!(kept(list.into()), "[\"a\",1,null]".into());
    }

    #[test]
    fn a_document_weighs_what_it_holds() {
        let size = |json: serde_json::Value| Value::from(json).heap_size();
        let empty = size(serde_json::json!(null));
        assert!(empty > 0, "the root is outside the value");
        assert_eq!(size(serde_json::json!("four")), empty + 4);
        assert!(size(serde_json::json!({"key": ["four"]})) > empty + 7);
    }
}
