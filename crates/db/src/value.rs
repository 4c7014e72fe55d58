//! Values, and the rows that queries give.

use std::sync::Arc;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// One value, in SQLite's five storage classes.
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
}

/// What a column or a parameter is meant to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 64-bit integer.
    Integer,
    /// A double.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Blob,
}

impl Value {
    /// The bytes that the value holds outside itself; for limits and accounting.
    #[must_use]
    pub fn heap_size(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) => 0,
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
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
        }))
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// What one statement gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// The names of the columns, as SQLite gives them.
    pub columns: Arc<[Arc<str>]>,
    /// The rows, in order; each has one value for each column.
    pub rows: Vec<Vec<Value>>,
}
