//! The columns that queries select by, so that the feed reports only their values.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::catalog::{Catalog, ResolvedColumn};
use crate::sqlite::tags::{ColumnHash, EqualityClass};

/// One column of one table, by its lower-case names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SelectedColumn {
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) class: EqualityClass,
}

/// All columns that any query has ever selected by. The set only grows.
#[derive(Default)]
pub(crate) struct Interest {
    version: AtomicU64,
    wanted: Mutex<BTreeSet<SelectedColumn>>,
}

impl Interest {
    /// Adds columns; true if any was new. Then the caller must begin a new epoch before it stores a
    /// result with dependencies on the column: earlier changes did not report its values.
    pub(crate) fn add(&self, wanted: impl IntoIterator<Item = SelectedColumn>) -> bool {
        let mut set = self.wanted.lock();
        let before = set.len();
        set.extend(wanted);
        let grown = set.len() > before;
        if grown {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        grown
    }

    /// A counter that increases whenever a column is added.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// The values to inspect in each row of each table, for one schema.
    pub(crate) fn watch(&self, catalog: &Catalog) -> WatchList {
        let set = self.wanted.lock();
        let mut columns: HashMap<String, Vec<WatchedValue>> = HashMap::new();
        for SelectedColumn {
            table,
            column,
            class,
        } in set.iter()
        {
            let Some(found) = catalog.table(table).and_then(|table| table.column(column)) else {
                continue;
            };
            let at = match found {
                ResolvedColumn::Column(index) => ValueLocation::Column(index),
                ResolvedColumn::Rowid => ValueLocation::Rowid,
            };
            let name = ColumnHash::new(table, column, *class);
            columns
                .entry(table.clone())
                .or_default()
                .push(WatchedValue { at, name });
        }
        WatchList {
            columns,
            known: catalog.tables.keys().cloned().collect(),
        }
    }
}

/// The location of a value in a row change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueLocation {
    Column(usize),
    Rowid,
}

/// One value to inspect in each changed row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedValue {
    pub(crate) at: ValueLocation,
    pub(crate) name: ColumnHash,
}

/// The values to inspect, by lower-case table name.
#[derive(Debug, Default)]
pub(crate) struct WatchList {
    pub(crate) columns: HashMap<String, Vec<WatchedValue>>,
    /// The tables of the schema. A change in any other table counts as a change to all of its rows.
    pub(crate) known: HashSet<String>,
}
