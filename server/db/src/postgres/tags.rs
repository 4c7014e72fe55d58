//! Names of dependencies in PostgreSQL, and which equalities have a canonical form (coherence.md,
//! rules 11 and 12).
//!
//! Tables are named by their *family* (see [`super::families`]), columns by name: partitions and
//! children of a table share the names of its columns, not their numbers.
//!
//! A narrow tag stands for "the rows of this family in which this column equals this value". It is
//! sound only if every stored value that PostgreSQL holds equal to the parameter hashes as the
//! parameter does, which is so for the [`ValueClass`]es here. Everything else depends on the whole
//! family.
//!
//! A result that depends on a narrow tag of a column also depends on [`ColumnName::unknown`] of
//! that column, which is touched by changes of which the feed does not report the column's old
//! value, and by changes too large to list. It is one generation counter, so such a change costs
//! the same however much is cached.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use millpond_store::Tag;

use crate::Value;
use crate::column_set::ColumnSet;
use crate::precision::ValueClass;

/// A fixed seed: the feed and the reads must agree, in every thread.
const SEED: u64 = 0x6d69_6c6c_7067_7167;

pub(super) fn hash(parts: impl Hash) -> u64 {
    FixedState::with_seed(SEED).hash_one(parts)
}

/// The whole family: touched by every change to any of its tables.
pub(crate) fn broad(family: u32) -> Tag {
    Tag::broad(hash((0_u8, family)))
}

/// The whole family for queries that read these columns: touched by rows that come or go, and by
/// changes to one of the columns.
pub(crate) fn broad_reading(family: u32, columns: &ColumnSet) -> Tag {
    match columns {
        ColumnSet::All => broad(family),
        ColumnSet::Some(names) => Tag::broad(hash((2_u8, family, names))),
    }
}

/// The names of one column, hashed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName {
    hash: u64,
    class: ValueClass,
}

impl ColumnName {
    pub(crate) fn new(family: u32, column: &str, class: ValueClass) -> Self {
        Self {
            hash: hash((1_u8, family, column, class)),
            class,
        }
    }

    pub(crate) const fn class(&self) -> ValueClass {
        self.class
    }

    /// Returns the name for queries that read these columns.
    pub(crate) fn reading(self, columns: &ColumnSet) -> Self {
        let hash = match columns {
            ColumnSet::All => self.hash,
            ColumnSet::Some(names) => hash((4_u8, self.hash, names)),
        };
        Self { hash, ..self }
    }

    /// All rows, as far as this column's values go: touched when it is not known which values a
    /// change took away.
    pub(crate) fn unknown(self) -> Tag {
        Tag::broad(hash((self.hash, 0_u8)))
    }

    /// The tag of the rows that equal a parameter; `None` if the equality has no canonical form.
    pub(crate) fn equal_to(self, value: &Value) -> Option<Tag> {
        match (self.class, value) {
            // Nothing equals NULL; the tag is never touched.
            (_, Value::Null) => Some(Tag::narrow(hash((self.hash, 1_u8)))),
            (ValueClass::Integer, Value::Integer(integer)) => Some(self.integer(*integer)),
            (ValueClass::Text, Value::Text(text)) => Some(self.bytes(text.as_bytes())),
            (ValueClass::Folded(_), Value::Text(text)) => self.folded(text.as_bytes()),
            (ValueClass::Uuid, Value::Text(text)) => {
                canonical_uuid(text.as_bytes()).map(|u| self.bytes(&u))
            }
            (ValueClass::Boolean, Value::Boolean(truth)) => Some(self.integer((*truth).into())),
            _ => None,
        }
    }

    /// The tag that a stored value touches, from the text in which the feed brings it (the output
    /// function's); `None` if it is not as expected, and then all rows count.
    pub(crate) fn touched_by(self, stored: &[u8]) -> Option<Tag> {
        match self.class {
            ValueClass::Integer => std::str::from_utf8(stored)
                .ok()?
                .parse()
                .ok()
                .map(|integer| self.integer(integer)),
            ValueClass::Text => Some(self.bytes(stored)),
            ValueClass::Folded(_) => self.folded(stored),
            ValueClass::Uuid => canonical_uuid(stored).map(|uuid| self.bytes(&uuid)),
            ValueClass::Boolean => match stored {
                b"t" => Some(self.integer(1)),
                b"f" => Some(self.integer(0)),
                _ => None,
            },
        }
    }

    /// The tag of a text without its case. The database's locale says what the case of a letter is
    /// that is not ASCII: `K`, the sign of kelvin, may equal `k`. Of two texts of ASCII letters it
    /// makes equal none that are not equal so.
    fn folded(self, text: &[u8]) -> Option<Tag> {
        text.is_ascii()
            .then(|| self.bytes(&text.to_ascii_lowercase()))
    }

    fn integer(self, integer: i64) -> Tag {
        Tag::narrow(hash((self.hash, 2_u8, integer)))
    }

    fn bytes(self, bytes: &[u8]) -> Tag {
        Tag::narrow(hash((self.hash, 3_u8, bytes)))
    }
}

/// The 32 digits of a UUID in lower case. Only the form with four hyphens and that without any are
/// taken: others, which PostgreSQL reads too, widen.
fn canonical_uuid(text: &[u8]) -> Option<[u8; 32]> {
    let hyphens = match text.len() {
        32 => false,
        36 => true,
        _ => return None,
    };
    let mut digits = [0; 32];
    let mut at = 0;
    for (index, byte) in text.iter().enumerate() {
        if hyphens && matches!(index, 8 | 13 | 18 | 23) {
            if *byte != b'-' {
                return None;
            }
        } else if byte.is_ascii_hexdigit() && at < 32 {
            digits[at] = byte.to_ascii_lowercase();
            at += 1;
        } else {
            return None;
        }
    }
    (at == 32).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precision::CaseFold;

    fn column(class: ValueClass) -> ColumnName {
        ColumnName::new(16_384, "a", class)
    }

    #[test]
    fn a_stored_value_touches_the_parameter_that_it_equals() {
        let integer = column(ValueClass::Integer);
        for number in [0, 7, -7, i64::MIN, i64::MAX] {
            assert_eq!(
                integer.touched_by(number.to_string().as_bytes()),
                integer.equal_to(&Value::Integer(number))
            );
        }
        let text = column(ValueClass::Text);
        for word in ["", "a", "ä", "A", " a"] {
            assert_eq!(
                text.touched_by(word.as_bytes()),
                text.equal_to(&word.into())
            );
        }
        let folded = column(ValueClass::Folded(CaseFold::Lower));
        assert_eq!(
            folded.touched_by(b"Ann@X"),
            folded.equal_to(&"aNN@x".into())
        );
        assert_ne!(folded.touched_by(b"ann"), folded.equal_to(&"anna".into()));
        // The sign of kelvin.
        assert_eq!(folded.touched_by("\u{212a}".as_bytes()), None);
        let uuid = column(ValueClass::Uuid);
        let stored = uuid.touched_by(b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        assert!(stored.is_some());
        for same in [
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert_eq!(uuid.equal_to(&same.into()), stored);
        }
        let boolean = column(ValueClass::Boolean);
        assert_eq!(
            boolean.touched_by(b"t"),
            boolean.equal_to(&Value::Boolean(true))
        );
        assert_eq!(
            boolean.touched_by(b"f"),
            boolean.equal_to(&Value::Boolean(false))
        );
    }

    #[test]
    fn what_has_no_one_form_has_no_tag() {
        assert_eq!(column(ValueClass::Integer).equal_to(&"7".into()), None);
        assert_eq!(
            column(ValueClass::Integer).equal_to(&Value::Real(7.0)),
            None
        );
        assert_eq!(column(ValueClass::Integer).touched_by(b"7.0"), None);
        assert_eq!(column(ValueClass::Text).equal_to(&Value::Integer(7)), None);
        assert_eq!(
            column(ValueClass::Boolean).equal_to(&Value::Integer(1)),
            None
        );
        assert_eq!(column(ValueClass::Integer).equal_to(&true.into()), None);
        for odd in [
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a1-",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1g",
        ] {
            assert_eq!(
                column(ValueClass::Uuid).equal_to(&odd.into()),
                None,
                "{odd}"
            );
        }
    }

    #[test]
    fn names_differ_by_family_column_class_and_value() {
        let other = |family, name| ColumnName::new(family, name, ValueClass::Integer);
        let set = |names: &[&str]| ColumnSet::of(names.iter().map(|name| (*name).to_owned()));
        let [none, one, two] = [set(&[]), set(&["a"]), set(&["a", "b"])];
        let reading = |columns| column(ValueClass::Integer).reading(columns);
        assert_eq!(broad_reading(16_384, &ColumnSet::All), broad(16_384));
        assert_eq!(reading(&ColumnSet::All), column(ValueClass::Integer));
        let tags = [
            broad_reading(16_384, &none),
            broad_reading(16_384, &one),
            broad_reading(16_384, &two),
            broad_reading(16_385, &one),
            reading(&one).unknown(),
            reading(&two).unknown(),
            reading(&one).equal_to(&Value::Integer(0)).unwrap(),
            reading(&two).equal_to(&Value::Integer(0)).unwrap(),
            broad(16_384),
            broad(16_385),
            column(ValueClass::Integer).unknown(),
            column(ValueClass::Text).unknown(),
            other(16_385, "a").unknown(),
            other(16_384, "b").unknown(),
            column(ValueClass::Integer).equal_to(&Value::Null).unwrap(),
            column(ValueClass::Integer)
                .equal_to(&Value::Integer(0))
                .unwrap(),
            column(ValueClass::Integer)
                .equal_to(&Value::Integer(1))
                .unwrap(),
            column(ValueClass::Boolean).equal_to(&true.into()).unwrap(),
            column(ValueClass::Text).equal_to(&"".into()).unwrap(),
            column(ValueClass::Text).equal_to(&"1".into()).unwrap(),
            other(16_384, "b").equal_to(&Value::Integer(0)).unwrap(),
        ];
        for (i, a) in tags.iter().enumerate() {
            for b in &tags[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }
}
