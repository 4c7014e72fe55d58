//! The types that the values of each column have in common.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::moment::Moment;
use crate::row::{FieldValue, Row};

/// The number of values of a column whose uniqueness is checked.
const MAX_KEYS: usize = 4_000_000;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each value is true or false.
    Boolean,
    /// Each value is a 64-bit integer.
    Integer,
    /// Each value is a number.
    Real,
    /// Each value is a day, as in `2026-01-31`.
    Date,
    /// Each value is a moment, as in `2026-01-31T10:00:00Z`, or a day.
    Moment,
    /// Anything.
    Text,
    /// Some values are lists or objects.
    Json,
}

impl Kind {
    /// The type of one value; none for no value.
    fn of(value: &FieldValue<'_>) -> Option<Self> {
        Some(match value {
            FieldValue::Null => return None,
            FieldValue::Boolean(_) => Self::Boolean,
            FieldValue::Integer(_) => Self::Integer,
            FieldValue::Real(_) => Self::Real,
            FieldValue::Json(_) => Self::Json,
            FieldValue::Text(text) => time_kind(text).unwrap_or(Self::Text),
            FieldValue::Plain(text) => plain_kind(text),
        })
    }

    /// The type that fits both.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Json, _) | (_, Self::Json) => Self::Json,
            (Self::Integer, Self::Real) | (Self::Real, Self::Integer) => Self::Real,
            (Self::Date, Self::Moment) | (Self::Moment, Self::Date) => Self::Moment,
            _ => Self::Text,
        }
    }
}

fn plain_kind(text: &str) -> Kind {
    if matches!(text, "true" | "false") {
        return Kind::Boolean;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let starts = digits
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_digit());
    // A number with zeros in front is a code, such as that of a town.
    let is_code =
        digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    if !starts || is_code {
        return Kind::Text;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse::<i64>() {
            Ok(_) => Kind::Integer,
            Err(_) => Kind::Text,
        };
    }
    let is_decimal = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if is_decimal && text.parse::<f64>().is_ok_and(f64::is_finite) {
        return Kind::Real;
    }
    time_kind(text).unwrap_or(Kind::Text)
}

/// Tells if a text is a day or a moment.
fn time_kind(text: &str) -> Option<Kind> {
    Moment::parse(text).map(|moment| match moment.time {
        None => Kind::Date,
        Some(_) => Kind::Moment,
    })
}

/// One column of a file, as its values show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredColumn {
    /// Its name.
    pub name: String,
    /// The type of its values; none if it has none.
    pub kind: Option<Kind>,
    /// True if each row has a value, an integer or a text, and all are different.
    pub is_key: bool,
}

/// Types that the rows of a file, or of all files of a table, have in common.
#[derive(Default)]
pub struct Inference {
    columns: Vec<ColumnState>,
    rows: u64,
    /// The column of `columns` of each column of the file that is read.
    places: Vec<usize>,
    hasher: RandomState,
}

struct ColumnState {
    name: String,
    kind: Option<Kind>,
    values: u64,
    /// The hashes of the values; none if the column is no key.
    seen: Option<HashSet<u64>>,
}

impl Inference {
    /// Another file of the same table begins.
    pub fn begin_file(&mut self) {
        self.places.clear();
    }

    /// Takes a row in.
    pub fn add(&mut self, row: &Row<'_>) {
        for name in &row.names[self.places.len()..] {
            let known = self.columns.iter().position(|known| known.name == *name);
            let place = known.unwrap_or(self.columns.len());
            if known.is_none() {
                let may_be_key = matches!(name.as_str(), "id" | "slug");
                self.columns.push(ColumnState {
                    name: name.clone(),
                    kind: None,
                    values: 0,
                    seen: may_be_key.then(HashSet::new),
                });
            }
            self.places.push(place);
        }
        self.rows += 1;
        for (place, value) in self.places.iter().zip(row.values) {
            let column = &mut self.columns[*place];
            let Some(kind) = Kind::of(value) else {
                continue;
            };
            column.kind = Some(column.kind.map_or(kind, |known| known.with(kind)));
            column.values += 1;
            let hash = match value {
                FieldValue::Integer(integer) => self.hasher.hash_one(integer.to_string()),
                FieldValue::Text(text) | FieldValue::Plain(text) => self.hasher.hash_one(&**text),
                _ => {
                    column.seen = None;
                    continue;
                }
            };
            if let Some(seen) = &mut column.seen
                && (!seen.insert(hash) || seen.len() > MAX_KEYS)
            {
                column.seen = None;
            }
        }
    }

    /// The columns in the order in which they have come.
    #[must_use]
    pub fn columns(&self) -> Vec<InferredColumn> {
        let columns = self.columns.iter();
        columns
            .map(|column| InferredColumn {
                name: column.name.clone(),
                kind: column.kind,
                is_key: column.seen.is_some()
                    && self.rows > 0
                    && column.values == self.rows
                    && column.kind != Some(Kind::Json),
            })
            .collect()
    }

    /// The number of rows that were taken in.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }
}
