//! Reads what the triggers recorded.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::definitions::Definitions;
use super::{CHANGES, FEED, RecordedValues, VALUES};
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
    let sql = format!("SELECT * FROM {CHANGES} WHERE n > ?1 AND n <= ?2 ORDER BY n");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([after, last])?;
    let mut complete_to = after;
    while let Some(row) = rows.next()? {
        let n: i64 = row.get(0)?;
        if n > complete_to + 1 {
            return Ok(false);
        }
        complete_to = n;
        add(row, definitions, collected)?;
    }
    Ok(complete_to == last)
}

fn add(
    row: &Row<'_>,
    definitions: &Definitions,
    collected: &mut CollectedChanges,
) -> rusqlite::Result<()> {
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
            collected.add_recorded(&table, |at| values.at(at));
        }
        // Any row of the table, or a table that is not known.
        _ => collected.add_table(&table),
    }
    Ok(())
}

/// One record.
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
                let first = 3 + 2 * index;
                Ok([self.value(first)?, self.value(first + 1)?])
            }
            Some((part, _)) if part < self.recorded.0.len().div_ceil(VALUES) => {
                Ok([StoredValue::Null; 2])
            }
            _ => Err(()),
        }
    }

    fn value(&self, column: usize) -> Result<StoredValue<'_>, ()> {
        match self.row.get_ref(column).map_err(drop)? {
            ValueRef::Null => Ok(StoredValue::Null),
            ValueRef::Integer(integer) => Ok(StoredValue::Integer(integer)),
            ValueRef::Real(real) => Ok(StoredValue::Real(real)),
            ValueRef::Text(text) => Ok(StoredValue::Text(text)),
            ValueRef::Blob(_) => Err(()),
        }
    }
}
