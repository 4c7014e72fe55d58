//! Names of dependencies, and which equalities have a canonical form (COHERENCE, rule 11).
//!
//! A narrow tag stands for "the rows of this table in which this column equals this value". That is sound only if
//! every stored value that SQLite holds equal to a parameter hashes as the parameter does. Two classes of column have
//! such a form; everything else depends on the whole table.
//!
//! * [`Class::Integer`]: INTEGER affinity. SQLite compares an integer with a stored integer, or with a stored real
//!   that is exactly that integer. Text in such a column (`'07'` put there by other means) might be converted
//!   before it is compared, so a change that touches such a value counts as a change to all rows.
//! * [`Class::Text`]: TEXT affinity with the BINARY collation, in a UTF-8 database. SQLite compares bytes. A number that
//!   found its way into such a column would be converted, so it too counts as a change to all rows.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use millpond_store::Tag;

use crate::Value;

/// A fixed seed: the feed and the reads must agree, in every thread.
const SEED: u64 = 0x6d69_6c6c_706f_6e64;

/// The column that stands for the rowid of a table in which no column does.
pub(crate) const ROWID: &str = "rowid";

/// How a column's equality can be put into one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    Integer,
    Text,
}

/// A stored value as the feed sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stored<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob,
}

/// What a stored value means for the narrow tags of its column.
#[derive(Debug, PartialEq)]
pub(crate) enum Touches {
    /// No equality with a canonical form holds for it.
    Nothing,
    /// This tag.
    One(Tag),
    /// It cannot be told; all rows.
    All,
}

fn hash(parts: impl Hash) -> u64 {
    FixedState::with_seed(SEED).hash_one(parts)
}

/// The whole table: touched by every change to it.
pub(crate) fn broad(table: &str) -> Tag {
    Tag::broad(hash((0_u8, table)))
}

/// All rows of the table at once: touched only by changes too large, or too odd, to list.
/// Whatever depends on a narrow tag of the table depends on this one too.
pub(crate) fn bulk(table: &str) -> Tag {
    Tag::broad(hash((1_u8, table)))
}

/// The names of one column, hashed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName {
    hash: u64,
    class: Class,
}

impl ColumnName {
    pub(crate) fn new(table: &str, column: &str, class: Class) -> Self {
        Self {
            hash: hash((2_u8, table, column)),
            class,
        }
    }

    fn integer(self, integer: i64) -> Tag {
        Tag::narrow(hash((self.hash, 0_u8, integer)))
    }

    fn text(self, text: &[u8]) -> Tag {
        Tag::narrow(hash((self.hash, 1_u8, text)))
    }

    /// The tag of the rows that equal a parameter; `None` if the equality has no canonical form.
    pub(crate) fn equal_to(self, value: &Value) -> Option<Tag> {
        match (self.class, value) {
            // Nothing equals NULL; the tag is never touched.
            (_, Value::Null) => Some(Tag::narrow(hash((self.hash, 2_u8)))),
            (Class::Integer, Value::Integer(integer)) => Some(self.integer(*integer)),
            (Class::Integer, Value::Boolean(truth)) => Some(self.integer((*truth).into())),
            (Class::Text, Value::Text(text)) => Some(self.text(text.as_bytes())),
            // TEXT affinity is applied to the parameter, and a decimal is how SQLite writes an integer.
            (Class::Text, Value::Integer(integer)) => {
                Some(self.text(integer.to_string().as_bytes()))
            }
            _ => None,
        }
    }

    /// What a stored value, old or new, touches.
    pub(crate) fn touched_by(self, value: Stored<'_>) -> Touches {
        match (self.class, value) {
            (_, Stored::Null | Stored::Blob) => Touches::Nothing,
            (Class::Integer, Stored::Integer(integer)) => Touches::One(self.integer(integer)),
            (Class::Integer, Stored::Real(real)) => {
                exact(real).map_or(Touches::Nothing, |i| Touches::One(self.integer(i)))
            }
            (Class::Text, Stored::Text(text)) => Touches::One(self.text(text)),
            (Class::Integer, Stored::Text(_))
            | (Class::Text, Stored::Integer(_) | Stored::Real(_)) => Touches::All,
        }
    }
}

/// The integer that a real is exactly, if it is one.
fn exact(real: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (real.trunc() == real && (-LIMIT..LIMIT).contains(&real)).then_some(real as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer() -> ColumnName {
        ColumnName::new("t", "a", Class::Integer)
    }

    fn text() -> ColumnName {
        ColumnName::new("t", "a", Class::Text)
    }

    #[test]
    fn integers_equal_reals_that_are_whole() {
        let seven = integer().equal_to(&Value::Integer(7)).unwrap();
        assert_eq!(
            integer().touched_by(Stored::Integer(7)),
            Touches::One(seven)
        );
        assert_eq!(integer().touched_by(Stored::Real(7.0)), Touches::One(seven));
        assert_eq!(integer().touched_by(Stored::Real(7.5)), Touches::Nothing);
        let zero = integer().equal_to(&Value::Integer(0)).unwrap();
        assert_eq!(integer().touched_by(Stored::Real(-0.0)), Touches::One(zero));
        for real in [f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0, -1e300] {
            assert_eq!(
                integer().touched_by(Stored::Real(real)),
                Touches::Nothing,
                "{real}"
            );
        }
        let least = integer().equal_to(&Value::Integer(i64::MIN)).unwrap();
        assert_eq!(
            integer().touched_by(Stored::Real(-9_223_372_036_854_775_808.0)),
            Touches::One(least)
        );
    }

    #[test]
    fn what_affinity_may_convert_is_all_rows() {
        assert_eq!(integer().touched_by(Stored::Text(b"07")), Touches::All);
        assert_eq!(text().touched_by(Stored::Integer(7)), Touches::All);
        assert_eq!(integer().equal_to(&"07".into()), None);
        assert_eq!(integer().equal_to(&Value::Real(7.0)), None);
        assert_eq!(
            integer().equal_to(&true.into()),
            integer().equal_to(&1.into())
        );
        assert_eq!(
            text().equal_to(&Value::Integer(-7)),
            text().equal_to(&"-7".into())
        );
        assert_ne!(text().equal_to(&"07".into()), text().equal_to(&"7".into()));
    }

    #[test]
    fn names_differ_by_table_column_and_value() {
        let tags = [
            broad("t"),
            bulk("t"),
            broad("u"),
            integer().equal_to(&Value::Null).unwrap(),
            integer().equal_to(&Value::Integer(0)).unwrap(),
            text().equal_to(&"".into()).unwrap(),
            ColumnName::new("t", "b", Class::Integer)
                .equal_to(&Value::Integer(0))
                .unwrap(),
            ColumnName::new("u", "a", Class::Integer)
                .equal_to(&Value::Integer(0))
                .unwrap(),
        ];
        for (i, a) in tags.iter().enumerate() {
            for b in &tags[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }
}
