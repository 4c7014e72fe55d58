//! What can be the value of a statement's parameter.

use millpond_db::Value;

/// A value for a parameter of a statement ([`SqlQuery::with`](crate::SqlQuery::with)): a whole
/// number, an `f64`, a text, bytes, a boolean, a [`SqlValue`](crate::SqlValue), or an [`Option`] or
/// a reference of one of these. Implement it for types of your own:
///
/// ```
/// use millpond::{IntoSql, SqlValue};
///
/// enum Size { Small, Large }
///
/// impl IntoSql for Size {
///     fn into_sql(self) -> Option<SqlValue> {
///         match self {
///             Self::Small => "small".into_sql(),
///             Self::Large => "large".into_sql(),
///         }
///     }
/// }
/// ```
pub trait IntoSql {
    /// The value; none for a whole number above 2^63 - 1, which the databases cannot hold. The
    /// statement is then not run: 400, and the sentence names the parameter.
    fn into_sql(self) -> Option<Value>;
}

macro_rules! values {
    ($($type:ty),*) => {
        $(impl IntoSql for $type {
            fn into_sql(self) -> Option<Value> {
                Some(self.into())
            }
        })*
    };
}

values!(
    Value,
    i64,
    i32,
    i16,
    u32,
    u16,
    u8,
    f64,
    bool,
    String,
    Vec<u8>,
    &str
);

macro_rules! whole_numbers {
    ($($type:ty),*) => {
        $(impl IntoSql for $type {
            fn into_sql(self) -> Option<Value> {
                i64::try_from(self).ok().map(Value::Integer)
            }
        })*
    };
}

whole_numbers!(u64, usize, isize, i8);

macro_rules! copies {
    ($($type:ty),*) => {
        $(impl IntoSql for &$type {
            fn into_sql(self) -> Option<Value> {
                (*self).into_sql()
            }
        })*
    };
}

copies!(
    i64, i32, i16, i8, isize, u64, u32, u16, u8, usize, f64, bool, &str
);

impl IntoSql for &String {
    fn into_sql(self) -> Option<Value> {
        self.as_str().into_sql()
    }
}

impl IntoSql for &[u8] {
    fn into_sql(self) -> Option<Value> {
        Some(Value::Blob(self.into()))
    }
}

impl IntoSql for &Vec<u8> {
    fn into_sql(self) -> Option<Value> {
        self.as_slice().into_sql()
    }
}

impl IntoSql for &Value {
    fn into_sql(self) -> Option<Value> {
        Some(self.clone())
    }
}

impl<T: IntoSql> IntoSql for Option<T> {
    /// None is null.
    fn into_sql(self) -> Option<Value> {
        match self {
            Some(value) => value.into_sql(),
            None => Some(Value::Null),
        }
    }
}

impl<'a, T> IntoSql for &'a Option<T>
where
    &'a T: IntoSql,
{
    fn into_sql(self) -> Option<Value> {
        self.as_ref().into_sql()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_bound_as_it_is_or_not_at_all() {
        let most = i64::MAX.unsigned_abs();
        assert_eq!(most.into_sql(), Some(Value::Integer(i64::MAX)));
        assert_eq!((most + 1).into_sql(), None);
        assert_eq!(u64::MAX.into_sql(), None);
        assert_eq!(usize::MAX.into_sql(), None);
        assert_eq!(Some(u64::MAX).into_sql(), None);
        assert_eq!((&Some(u64::MAX)).into_sql(), None);
        assert_eq!(isize::MIN.into_sql(), Some(Value::Integer(i64::MIN)));
        assert_eq!(None::<u64>.into_sql(), Some(Value::Null));
    }

    #[test]
    fn what_is_borrowed_is_bound_as_what_is_owned() {
        let text = "a".to_owned();
        assert_eq!((&text).into_sql(), "a".into_sql());
        assert_eq!((&&*text).into_sql(), text.clone().into_sql());
        assert_eq!((&Some(text.clone())).into_sql(), Some(text).into_sql());
        let bytes = vec![1, 2];
        assert_eq!((&bytes).into_sql(), bytes[..].into_sql());
        assert_eq!((&bytes).into_sql(), bytes.into_sql());
        assert_eq!((&7_usize).into_sql(), 7_i64.into_sql());
        assert_eq!((&Value::Null).into_sql(), None::<i64>.into_sql());
    }
}
