//! Names of dependencies, and which equalities have a canonical form (coherence.md, rule 11).
//!
//! A narrow tag means "the rows of this table in which this column equals this value". That is
//! sound only if every stored value that SQLite considers equal to a parameter has the same hash as
//! the parameter. Two classes of column have such a canonical form; a condition on any other column
//! makes the whole table a dependency.
//!
//! * [`ValueClass::Integer`]: INTEGER affinity. SQLite compares an integer with a stored
//!   integer, or with a stored real of exactly that value. Text in such a column (`'07'`, stored by
//!   other means) might be converted before the comparison, so a change that touches such a value
//!   counts as a change to all rows.
//! * [`ValueClass::Text`]: TEXT affinity with the BINARY collation, in a UTF-8 database. SQLite
//!   compares bytes. A number in such a column would be converted, so it also counts as a change to
//!   all rows.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use millpond_store::Tag;

use crate::Value;
use crate::column_set::ColumnSet;
use crate::order::{OrderHash, OrderPlace};
use crate::precision::ValueClass;

/// A fixed seed: the feed and the reads must compute the same hash in every thread.
const SEED: u64 = 0x6d69_6c6c_706f_6e64;

/// The column name for the rowid of a table in which no column is an alias of it.
pub(crate) const ROWID: &str = "rowid";

/// A stored value as the preupdate hook sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StoredValue<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl StoredValue<'_> {
    /// Its place where rows are ordered by it, ascending, a text by its bytes.
    pub(crate) fn place(self) -> OrderPlace {
        match self {
            Self::Null => OrderPlace::FIRST,
            Self::Integer(integer) => OrderPlace::number(integer as f64),
            Self::Real(real) => OrderPlace::number(real),
            Self::Text(text) => OrderPlace::text(text),
            Self::Blob(blob) => OrderPlace::blob(blob),
        }
    }
}

/// The narrow tags that a stored value touches.
#[derive(Debug, PartialEq)]
pub(crate) enum TouchedTags {
    /// No tag: no equality with a canonical form holds for the value.
    Nothing,
    /// This tag.
    One(Tag),
    /// All rows, as the tags are unknown.
    All,
}

fn hash(parts: impl Hash) -> u64 {
    FixedState::with_seed(SEED).hash_one(parts)
}

/// The tag of the whole table: every change to the table touches it.
pub(crate) fn broad(table: &str) -> Tag {
    Tag::broad(hash((0_u8, table)))
}

/// The tag of all rows at once: only changes that are too large or too unusual to list touch it. A
/// result that depends on a narrow tag of the table depends on this tag too.
pub(crate) fn bulk(table: &str) -> Tag {
    Tag::broad(hash((1_u8, table)))
}

/// The tag of the whole table for queries that read these columns: touched by rows that come or
/// go, and by changes to one of the columns.
pub(crate) fn broad_reading(table: &str, columns: &ColumnSet) -> Tag {
    match columns {
        ColumnSet::All => broad(table),
        ColumnSet::Some(names) => Tag::broad(hash((3_u8, table, names))),
    }
}

/// The names of a table and a column, hashed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnHash {
    hash: u64,
    /// None if equality has no canonical form.
    class: Option<ValueClass>,
}

impl ColumnHash {
    pub(crate) fn new(table: &str, column: &str, class: Option<ValueClass>) -> Self {
        Self {
            hash: hash((2_u8, table, column)),
            class,
        }
    }

    /// Returns the name for queries that read these columns.
    pub(crate) fn reading(self, columns: &ColumnSet) -> Self {
        let hash = match columns {
            ColumnSet::All => self.hash,
            ColumnSet::Some(names) => hash((4_u8, self.hash, names)),
        };
        Self { hash, ..self }
    }

    /// Returns the name for the rows that come first when they are ordered by the column.
    pub(crate) const fn in_order(self, is_descending: bool) -> OrderHash {
        OrderHash::new(self.hash, is_descending)
    }

    fn integer(self, integer: i64) -> Tag {
        Tag::narrow(hash((self.hash, 0_u8, integer)))
    }

    fn text(self, text: &[u8]) -> Tag {
        Tag::narrow(hash((self.hash, 1_u8, text)))
    }

    /// The tag of a text without its case: SQLite knows that of ASCII letters alone. Behind a
    /// character of code zero NOCASE compares no more.
    fn folded(self, text: &[u8]) -> Option<Tag> {
        let is_whole = !text.contains(&0);
        is_whole.then(|| self.text(&text.to_ascii_lowercase()))
    }

    /// The tag of the rows that equal a parameter; `None` if the equality has no canonical form.
    pub(crate) fn equal_to(self, value: &Value) -> Option<Tag> {
        match (self.class, value) {
            // No value equals NULL, so the tag is never touched.
            (_, Value::Null) => Some(Tag::narrow(hash((self.hash, 2_u8)))),
            (Some(ValueClass::Integer), Value::Integer(integer)) => Some(self.integer(*integer)),
            (Some(ValueClass::Integer), Value::Boolean(truth)) => {
                Some(self.integer((*truth).into()))
            }
            (Some(ValueClass::Text), Value::Text(text)) => Some(self.text(text.as_bytes())),
            (Some(ValueClass::Folded(_)), Value::Text(text)) => self.folded(text.as_bytes()),
            // TEXT affinity applies to the parameter, and SQLite writes an integer as a decimal.
            (Some(ValueClass::Text | ValueClass::Folded(_)), Value::Integer(integer)) => {
                Some(self.text(integer.to_string().as_bytes()))
            }
            _ => None,
        }
    }

    /// The tags that a stored value, old or new, touches.
    pub(crate) fn touched_by(self, value: StoredValue<'_>) -> TouchedTags {
        match (self.class, value) {
            // A function of the text reads a blob as one: `lower(x'41') = 'a'`.
            (Some(ValueClass::Folded(_)), StoredValue::Blob(_)) => TouchedTags::All,
            (_, StoredValue::Null | StoredValue::Blob(_)) => TouchedTags::Nothing,
            (Some(ValueClass::Integer), StoredValue::Integer(integer)) => {
                TouchedTags::One(self.integer(integer))
            }
            (Some(ValueClass::Integer), StoredValue::Real(real)) => {
                exact(real).map_or(TouchedTags::Nothing, |i| TouchedTags::One(self.integer(i)))
            }
            (Some(ValueClass::Text), StoredValue::Text(text)) => TouchedTags::One(self.text(text)),
            (Some(ValueClass::Folded(_)), StoredValue::Text(text)) => {
                self.folded(text).map_or(TouchedTags::All, TouchedTags::One)
            }
            // SQLite might convert it.
            _ => TouchedTags::All,
        }
    }
}

/// The integer with exactly this value, if there is one.
fn exact(real: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (real.trunc() == real && (-LIMIT..LIMIT).contains(&real)).then_some(real as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer() -> ColumnHash {
        ColumnHash::new("t", "a", Some(ValueClass::Integer))
    }

    fn text() -> ColumnHash {
        ColumnHash::new("t", "a", Some(ValueClass::Text))
    }

    #[test]
    fn a_blob_may_be_a_text_for_a_function() {
        let folded = ValueClass::Folded(crate::precision::CaseFold::Lower);
        let folded = ColumnHash::new("t", "a", Some(folded));
        let blob = StoredValue::Blob(b"ABC");
        assert_eq!(folded.touched_by(blob), TouchedTags::All);
        assert_eq!(text().touched_by(blob), TouchedTags::Nothing);
    }

    #[test]
    fn integers_equal_reals_that_are_whole() {
        let seven = integer().equal_to(&Value::Integer(7)).unwrap();
        assert_eq!(
            integer().touched_by(StoredValue::Integer(7)),
            TouchedTags::One(seven)
        );
        assert_eq!(
            integer().touched_by(StoredValue::Real(7.0)),
            TouchedTags::One(seven)
        );
        assert_eq!(
            integer().touched_by(StoredValue::Real(7.5)),
            TouchedTags::Nothing
        );
        let zero = integer().equal_to(&Value::Integer(0)).unwrap();
        assert_eq!(
            integer().touched_by(StoredValue::Real(-0.0)),
            TouchedTags::One(zero)
        );
        for real in [f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0, -1e300] {
            assert_eq!(
                integer().touched_by(StoredValue::Real(real)),
                TouchedTags::Nothing,
                "{real}"
            );
        }
        let least = integer().equal_to(&Value::Integer(i64::MIN)).unwrap();
        assert_eq!(
            integer().touched_by(StoredValue::Real(-9_223_372_036_854_775_808.0)),
            TouchedTags::One(least)
        );
    }

    #[test]
    fn what_affinity_may_convert_is_all_rows() {
        assert_eq!(
            integer().touched_by(StoredValue::Text(b"07")),
            TouchedTags::All
        );
        assert_eq!(text().touched_by(StoredValue::Integer(7)), TouchedTags::All);
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
            ColumnHash::new("t", "b", Some(ValueClass::Integer))
                .equal_to(&Value::Integer(0))
                .unwrap(),
            ColumnHash::new("u", "a", Some(ValueClass::Integer))
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
