//! Reads what the triggers recorded.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::definitions::Definitions;
use super::{CHANGES, FEED, RecordedValues, VALUES};
use crate::column_set::ColumnMask;
use crate::sqlite::collector::CollectedChanges;
use crate::sqlite::interest::ValueLocation;
use crate::sqlite::tags::StoredValue;

/// The row of `_millpond_feed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedRow {
    pub(crate) nonce: i64,
    /// The number of the last change.
    pub(crate) n: i64,
    /// Changes up to this number may have been removed.
    pub(crate) floor: i64,
    /// A server left its mark behind, so nothing is recorded.
    is_suspended: bool,
}

impl FeedRow {
    /// Reads it; `None` if the table does not have exactly one row with integers.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = format!("SELECT nonce, n, floor, own IS NOT NULL FROM {FEED} LIMIT 2");
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let integer = |index| row.get::<_, i64>(index).ok();
        let found = || {
            Some(Self {
                nonce: integer(0)?,
                n: integer(1)?,
                floor: integer(2)?,
                is_suspended: integer(3)? != 0,
            })
        };
        let found = found();
        Ok(found.filter(|_| matches!(rows.next(), Ok(None))))
    }

    /// True if the triggers record.
    pub(crate) fn is_working(&self) -> bool {
        !self.is_suspended
    }

    /// True if this row continues the history in which `before` was read.
    pub(crate) fn continues(&self, before: &Self) -> bool {
        self.nonce == before.nonce && self.n >= before.n && self.is_working()
    }
}

/// Adds the changes after the number `after` up to `last` to `collected`. False if one of them is
/// not in the table: it was full, or another server wrote or removed it.
pub(crate) fn collect(
    connection: &Connection,
    definitions: &Definitions,
    after: i64,
    last: i64,
    collected: &mut CollectedChanges,
) -> rusqlite::Result<bool> {
    let sql = format!("SELECT * FROM {CHANGES} WHERE n > ?1 AND n <= ?2 ORDER BY n, p");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([after, last])?;
    let mut complete_to = after;
    let mut last_update = (after, ColumnMask::All);
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        if n > complete_to + 1 {
            return Ok(false);
        }
        complete_to = n;
        add(row, definitions, &mut last_update, collected)?;
    }
    Ok(complete_to == last)
}

/// Adds a record. `last_update` is the number of the last change, and the columns that it changed:
/// the first part of a record says it for the others.
fn add(
    row: &Row<'_>,
    definitions: &Definitions,
    last_update: &mut (i64, ColumnMask),
    collected: &mut CollectedChanges,
) -> rusqlite::Result<()> {
    let n: i64 = row.get(0)?;
    let table: String = row.get(1)?;
    let part: i64 = row.get(2)?;
    let recorded = definitions.recorded.get(&table);
    match (recorded, usize::try_from(part)) {
        (Some(recorded), Ok(part)) => {
            let values = RecordedRow {
                row,
                recorded,
                part,
            };
            if part == 0 {
                *last_update = (n, values.changed_columns());
            }
            let changed = match *last_update {
                (number, changed) if number == n => changed,
                _ => ColumnMask::All,
            };
            collected.add_recorded(&table, changed, |at| values.at(at));
        }
        // Any row of the table, or a table that is not known.
        _ => collected.add_table(&table),
    }
    Ok(())
}

/// The columns of a record before its values.
const VALUES_FROM: usize = 4;

struct RecordedRow<'a> {
    row: &'a Row<'a>,
    recorded: &'a RecordedValues,
    part: usize,
}

impl RecordedRow<'_> {
    /// The old and the new value at a place; a null stands for a value that is in no record, and
    /// `Err` for one that may be any.
    fn at(&self, at: ValueLocation) -> Result<[StoredValue<'_>; 2], ()> {
        match self.recorded.place(at) {
            Some((part, index)) if part == self.part => {
                let old = self.value(VALUES_FROM + 2 * index)?;
                let new = self.new_value(index)?.unwrap_or(old);
                Ok(match (old, new) {
                    // Of a row that came or went there is one value.
                    (StoredValue::Null, value) | (value, StoredValue::Null)
                        if self.is_of_one_row() =>
                    {
                        [value; 2]
                    }
                    both => both.into(),
                })
            }
            Some((part, _)) if part < self.recorded.places.len().div_ceil(VALUES) => {
                Ok([StoredValue::Null; 2])
            }
            _ => Err(()),
        }
    }

    /// True for the first part of the record of a row that came or went: only updates say what is
    /// the same.
    fn is_of_one_row(&self) -> bool {
        let same = self.row.get_ref(VALUES_FROM - 1);
        self.part == 0 && same.is_ok_and(|same| same == ValueRef::Null)
    }

    /// The columns whose values an update changes, by the first part of its record; all, for other
    /// changes, and if the rowid is another one. What is not certain counts as changed.
    fn changed_columns(&self) -> ColumnMask {
        let Ok(Some(same)) = self.row.get::<_, Option<i64>>(VALUES_FROM - 1) else {
            return ColumnMask::All;
        };
        if same < 0 || self.recorded.columns > 128 {
            return ColumnMask::All;
        }
        let beyond = u32::try_from(128 - self.recorded.columns).unwrap_or(0);
        let mut changed = u128::MAX.checked_shr(beyond).unwrap_or(0);
        changed &= !u128::from(same.unsigned_abs());
        for (index, at) in self.recorded.places.iter().take(VALUES).enumerate() {
            if let (ValueLocation::Column(place), true) = (*at, self.is_same(index)) {
                changed &= !(1 << place);
            }
        }
        ColumnMask::Some(changed)
    }

    /// True if the value has the same type and the same bytes as before.
    fn is_same(&self, index: usize) -> bool {
        match (self.value(VALUES_FROM + 2 * index), self.new_value(index)) {
            (_, Ok(None)) => true,
            // Their bytes are not recorded.
            (Ok(StoredValue::Blob(_)), _) => false,
            (Ok(StoredValue::Real(old)), Ok(Some(StoredValue::Real(new)))) => {
                old.to_bits() == new.to_bits()
            }
            (Ok(old), Ok(Some(new))) => old == new,
            _ => false,
        }
    }

    /// The new value; `None` if it is the old one, `Err` if it may be any.
    fn new_value(&self, index: usize) -> Result<Option<StoredValue<'_>>, ()> {
        let column = VALUES_FROM + 2 * index + 1;
        match self.row.get_ref(column).map_err(drop)? {
            // `SAME`.
            ValueRef::Blob([0]) => Ok(None),
            _ => self.value(column).map(Some),
        }
    }

    fn value(&self, column: usize) -> Result<StoredValue<'_>, ()> {
        match self.row.get_ref(column).map_err(drop)? {
            ValueRef::Null => Ok(StoredValue::Null),
            ValueRef::Integer(integer) => Ok(StoredValue::Integer(integer)),
            ValueRef::Real(real) => Ok(StoredValue::Real(real)),
            ValueRef::Text(text) => Ok(StoredValue::Text(text)),
            // `OTHER`.
            ValueRef::Blob([1]) => Ok(StoredValue::Blob(&[])),
            ValueRef::Blob(_) => Err(()),
        }
    }
}
