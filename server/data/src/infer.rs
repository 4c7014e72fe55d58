//! The types that the values of each column have in common.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

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
    /// Each value is a moment with its offset from UTC, as in `2026-01-31T10:00:00Z`.
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

/// True for a day of the calendar, as in `2026-01-31`, and for a moment that begins with one, as in
/// `2026-01-31 10:00`.
#[must_use]
pub fn begins_with_day(text: &str) -> bool {
    rest_behind_day(text).is_some_and(|rest| rest.is_empty() || rest.starts_with(['T', ' ']))
}

/// Returns the text behind the day with which a text begins.
fn rest_behind_day(text: &str) -> Option<&str> {
    let (day, rest) = (text.get(..10)?, text.get(10..)?);
    let bytes = day.as_bytes();
    let number = |range| {
        let digits: &str = day.get(range)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| all)
    };
    let (year, month, date) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_day = bytes[4] == b'-' && bytes[7] == b'-' && year > 0 && (1..=last).contains(&date);
    is_day.then_some(rest)
}

/// Tells if a text is a day or a moment.
fn time_kind(text: &str) -> Option<Kind> {
    let rest = rest_behind_day(text)?;
    if rest.is_empty() {
        return Some(Kind::Date);
    }
    let clock = rest.strip_prefix(['T', ' '])?;
    let at = clock.find(['Z', '+', '-'])?;
    let (clock, offset) = clock.split_at(at);
    let mut parts = clock.split(':');
    let below = |part: Option<&str>, limit: u32| {
        let part = part?;
        let whole = part.split_once('.').map_or(part, |(whole, _)| whole);
        let is_digits = part
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        (is_digits && whole.len() == 2 && whole.parse::<u32>().ok()? < limit).then_some(())
    };
    below(parts.next(), 24)?;
    below(parts.next(), 60)?;
    if let Some(seconds) = parts.next() {
        below(Some(seconds), 60)?;
    }
    let is_offset = offset == "Z"
        || (offset.len() == 6
            && offset.as_bytes()[3] == b':'
            && below(offset.get(1..3), 16).is_some()
            && below(offset.get(4..6), 60).is_some());
    (parts.next().is_none() && is_offset).then_some(Kind::Moment)
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
