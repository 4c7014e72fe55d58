//! The rows of a query.

use std::sync::Arc;

use millpond_db::{ResultRows, Value};

use super::QueryError;

/// The rows that a statement has given.
#[derive(Clone, Debug)]
pub struct SqlRows(Arc<ResultRows>);

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct SqlRow<'r> {
    columns: &'r [Arc<str>],
    values: &'r [Value],
}

impl From<ResultRows> for SqlRows {
    fn from(rows: ResultRows) -> Self {
        Self(Arc::new(rows))
    }
}

impl SqlRows {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.rows.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.rows.is_empty()
    }

    /// The rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SqlRow<'_>> {
        self.0.rows.iter().map(|values| SqlRow {
            columns: &self.0.columns,
            values,
        })
    }

    /// The first row, if there is one.
    #[must_use]
    pub fn first(&self) -> Option<SqlRow<'_>> {
        self.iter().next()
    }
}

impl SqlRow<'_> {
    /// The value of a column as a `T`.
    ///
    /// # Errors
    /// A column that the statement does not give, or whose value is no `T`.
    pub fn get<T: FromSql>(&self, column: &str) -> Result<T, QueryError> {
        let at = self.columns.iter().position(|name| **name == *column);
        let Some(value) = at.and_then(|at| self.values.get(at)) else {
            let columns = self.columns.join(", ");
            let fault = format!("there is no column {column} among: {columns}");
            return Err(QueryError::usage(fault));
        };
        T::from_sql(value).ok_or_else(|| {
            let fault = format!("the column {column} is not {}: {value:?}", T::EXPECTED);
            QueryError::usage(fault)
        })
    }
}

/// Type that the value of a column can be read as.
pub trait FromSql: Sized {
    /// Description of a right value, for the sentence of an error.
    #[doc(hidden)]
    const EXPECTED: &'static str;

    #[doc(hidden)]
    fn from_sql(value: &Value) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl FromSql for $type {
            const EXPECTED: &'static str = concat!("a whole number that is a ", stringify!($type));

            fn from_sql(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(integer) => Self::try_from(*integer).ok(),
                    _ => None,
                }
            }
        })*
    };
}

integers!(i64, i32, u64, u32, u16, u8, usize);

impl FromSql for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_sql(value: &Value) -> Option<Self> {
        match value {
            Value::Real(real) => Some(*real),
            #[allow(clippy::cast_precision_loss, reason = "as the databases do")]
            Value::Integer(integer) => Some(*integer as Self),
            _ => None,
        }
    }
}

impl FromSql for bool {
    const EXPECTED: &'static str = "true or false";

    /// SQLite keeps it as 1 or 0.
    fn from_sql(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(truth) => Some(*truth),
            Value::Integer(0) => Some(false),
            Value::Integer(1) => Some(true),
            _ => None,
        }
    }
}

impl FromSql for String {
    const EXPECTED: &'static str = "text";

    /// A document of JSON is its text.
    fn from_sql(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some((**text).to_owned()),
            Value::Json(json) => Some(json.to_string()),
            _ => None,
        }
    }
}

impl FromSql for Vec<u8> {
    const EXPECTED: &'static str = "bytes";

    fn from_sql(value: &Value) -> Option<Self> {
        match value {
            Value::Blob(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }
}

impl<T: FromSql> FromSql for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    /// None is null.
    fn from_sql(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_sql(value).map(Some),
        }
    }
}

/// The last `N` of these results; missing ones have no rows.
pub(super) fn last<const N: usize>(results: Vec<ResultRows>) -> [SqlRows; N] {
    let skipped = results.len().saturating_sub(N);
    let mut results = results.into_iter().skip(skipped);
    std::array::from_fn(|_| {
        SqlRows(Arc::new(results.next().unwrap_or_else(|| ResultRows {
            columns: Arc::new([]),
            rows: Vec::new(),
        })))
    })
}
