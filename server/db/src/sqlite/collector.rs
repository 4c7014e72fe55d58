//! Collects what one transaction touches, row by row.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millpond_store::Tag;
use parking_lot::Mutex;

use super::interest::{ValueLocation, WatchList, WatchedOrder, WatchedTable, WatchedValue};
use super::preupdate::{Observer, RowChange};
use super::triggers::is_own_table;
use crate::column_set::ColumnMask;
use crate::order::OrderPlace;
use crate::sqlite::tags::{self, StoredValue, TouchedTags};

/// The largest number of distinct narrow tags of one table in one transaction. Beyond it the change
/// counts as a change to all rows.
pub(crate) const MAX_NARROW: usize = 4_096;

/// The tags of one table that a transaction has touched.
#[derive(Debug)]
struct TouchedTable {
    /// Lower-case.
    name: String,
    watched: WatchedTable,
    /// True if a row was changed.
    any_row: bool,
    narrow: HashSet<Tag>,
    /// Tags of all rows for queries that read certain columns.
    whole: HashSet<Tag>,
    /// For each order that is watched, the foremost place of the values, old and new.
    first: Vec<Option<OrderPlace>>,
    all_rows: bool,
}

/// The tags that the running transaction has touched. The tags of a rolled back statement or
/// savepoint stay in: that invalidates more than needed, never less.
#[derive(Debug, Default)]
pub(crate) struct CollectedChanges {
    watch: Arc<WatchList>,
    /// By the declared name.
    touched: HashMap<Vec<u8>, TouchedTable>,
    /// The hook failed, so the changes are unknown.
    pub(crate) broken: bool,
}

impl CollectedChanges {
    /// Begins a transaction.
    pub(crate) fn begin(&mut self, watch: Arc<WatchList>) {
        self.watch = watch;
        self.touched.clear();
        self.broken = false;
    }

    /// Adds all rows of a table.
    pub(crate) fn add_table(&mut self, name: &str) {
        let mut known = self.touched.values_mut();
        match known.find(|touched| touched.name == name) {
            Some(touched) => touched.all_rows = true,
            None => self.entry(name.as_bytes()).all_rows = true,
        }
    }

    /// Marks all rows of every touched table as touched.
    pub(crate) fn widen(&mut self) {
        for touched in self.touched.values_mut() {
            touched.all_rows = true;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty()
    }

    /// Ends the transaction.
    pub(crate) fn take_tags(&mut self) -> Vec<Tag> {
        let mut all = Vec::new();
        for (_, touched) in self.touched.drain() {
            if touched.all_rows {
                all.push(tags::broad(&touched.name));
                all.push(tags::bulk(&touched.name));
                all.extend(touched.watched.whole.iter().map(|(tag, _)| *tag));
            } else if touched.any_row {
                all.push(tags::broad(&touched.name));
                all.extend(touched.first_rows());
                all.extend(touched.narrow);
                all.extend(touched.whole);
            }
        }
        all
    }

    /// Adds a change that a trigger recorded. `values` gives the old and the new value at a place;
    /// an error means that they may be any.
    pub(crate) fn add_recorded<'a>(
        &mut self,
        table: &str,
        changed: ColumnMask,
        values: impl Fn(ValueLocation) -> Result<[StoredValue<'a>; 2], ()>,
    ) {
        let touched = self.entry(table.as_bytes());
        touched.add_change(changed, |at, add| {
            values(at)?.into_iter().for_each(add);
            Ok(())
        });
    }

    fn row(&mut self, change: &RowChange<'_>) {
        let is_main = change.database() == b"main";
        if !is_main || std::str::from_utf8(change.table()).is_ok_and(is_own_table) {
            return;
        }
        self.entry(change.table()).row(change);
    }

    fn entry(&mut self, table: &[u8]) -> &mut TouchedTable {
        // `HashMap::entry` would allocate an owned name for each row.
        if !self.touched.contains_key(table) {
            let name = String::from_utf8_lossy(table).to_ascii_lowercase();
            let watched = self.watch.tables.get(&name).cloned().unwrap_or_default();
            let all_rows = !self.watch.known.contains(&name);
            self.touched.insert(
                table.to_vec(),
                TouchedTable {
                    name,
                    first: vec![None; watched.orders.len()],
                    watched,
                    any_row: false,
                    narrow: HashSet::new(),
                    whole: HashSet::new(),
                    all_rows,
                },
            );
        }
        self.touched
            .get_mut(table)
            .expect("it was inserted if it was not there")
    }
}

impl TouchedTable {
    fn row(&mut self, change: &RowChange<'_>) {
        if self.all_rows || change.is_blob_write() {
            self.all_rows = true;
            return;
        }
        self.add_change(change.changed_columns(), |at, add| {
            match at {
                ValueLocation::Rowid => {
                    let (old, new) = change.rowids();
                    let both = [old, new].into_iter().flatten();
                    both.map(StoredValue::Integer).for_each(add);
                }
                ValueLocation::Column(column) => {
                    change.old_value(column, &mut *add)?;
                    change.new_value(column, add)?;
                }
            }
            Ok(())
        });
    }

    /// Adds a change to these columns of a row. `values` gives the old and the new value at a
    /// place, as far as there is one; an error means that they may be any.
    fn add_change(
        &mut self,
        changed: ColumnMask,
        values: impl Fn(ValueLocation, &mut dyn FnMut(StoredValue<'_>)) -> Result<(), ()>,
    ) {
        if changed == ColumnMask::Some(0) {
            return;
        }
        self.any_row = true;
        let whole = self.watched.whole.iter();
        let whole = whole.filter(|(_, columns)| columns.meets(changed));
        self.whole.extend(whole.map(|(tag, _)| *tag));
        for index in 0..self.watched.values.len() {
            let WatchedValue { at, name, columns } = self.watched.values[index];
            let mut add = |value: StoredValue<'_>| self.add(&name.touched_by(value));
            if columns.meets(changed) && values(at, &mut add).is_err() {
                self.all_rows = true;
            }
        }
        for index in 0..self.watched.orders.len() {
            let WatchedOrder { at, order, columns } = self.watched.orders[index];
            let mut add = |value: StoredValue<'_>| self.place(index, order.place(value.place()));
            if columns.meets(changed) && values(at, &mut add).is_err() {
                self.place(index, OrderPlace::FIRST);
            }
        }
        self.limit();
    }

    fn add(&mut self, touched: &TouchedTags) {
        match *touched {
            TouchedTags::Nothing => {}
            TouchedTags::One(tag) => {
                self.narrow.insert(tag);
            }
            TouchedTags::All => self.all_rows = true,
        }
    }

    /// Adds a row with this place in an order.
    fn place(&mut self, order: usize, place: OrderPlace) {
        let first = &mut self.first[order];
        *first = Some(first.map_or(place, |first| first.min(place)));
    }

    /// The tags of the ranges that the changed rows are in.
    fn first_rows(&self) -> impl Iterator<Item = Tag> + '_ {
        let orders = self.watched.orders.iter().zip(&self.first);
        orders.flat_map(|(watched, first)| {
            let first = first.iter();
            first.flat_map(|first| watched.order.touched_by(*first))
        })
    }

    /// Drops the tags of single rows if they are too many or no longer matter.
    fn limit(&mut self) {
        self.all_rows |= self.narrow.len() > MAX_NARROW;
        if self.all_rows {
            self.narrow = HashSet::new();
        }
    }
}

/// The collected changes, shared by the writer and its hook. Both run on one thread, so the lock is
/// always free.
#[derive(Clone, Default)]
pub(crate) struct Collector(pub(crate) Arc<Mutex<CollectedChanges>>);

impl Observer for Collector {
    fn row(&mut self, change: &RowChange<'_>) {
        self.0.lock().row(change);
    }

    fn panicked(&mut self) {
        self.0.lock().broken = true;
    }
}
