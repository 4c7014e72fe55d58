//! What queries select, so that the feed reports only that.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_store::Tag;
use parking_lot::Mutex;

use super::catalog::{Catalog, CatalogTable, ResolvedColumn};
use crate::column_set::{ColumnMask, ColumnSet};
use crate::order::OrderHash;
use crate::precision::ValueClass;
use crate::sqlite::tags::{self, ColumnHash};

/// Rows of a table that queries select, and the columns that they read. Names are lower-case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Selection {
    pub(crate) table: String,
    pub(crate) rows: SelectedRows,
    pub(crate) reads: ColumnSet,
}

/// Rows of a table that a query selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SelectedRows {
    All,
    /// Rows in which this column has certain values.
    Equal(String, ValueClass),
    /// The first ones when rows are ordered by this column.
    First {
        column: String,
        is_descending: bool,
    },
}

/// All that any query has ever selected. The set only grows.
#[derive(Default)]
pub(crate) struct Interest {
    version: AtomicU64,
    wanted: Mutex<BTreeSet<Selection>>,
}

impl Interest {
    /// Adds selections; true if any was new. Then the caller must begin a new epoch before it
    /// stores a result that depends on it: earlier changes did not report its tags.
    pub(crate) fn add(&self, wanted: impl IntoIterator<Item = Selection>) -> bool {
        let mut set = self.wanted.lock();
        let before = set.len();
        set.extend(wanted);
        let grown = set.len() > before;
        if grown {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        grown
    }

    /// A counter that increases whenever a selection is added.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// The values to inspect in each row of each table, for one schema.
    pub(crate) fn watch(&self, catalog: &Catalog) -> WatchList {
        let set = self.wanted.lock();
        let mut watched: HashMap<String, WatchedTable> = HashMap::new();
        for Selection { table, rows, reads } in set.iter() {
            let Some(found) = catalog.table(table) else {
                continue;
            };
            let columns = ColumnMask::of(reads, |name| {
                found.columns.iter().position(|column| column.name == *name)
            });
            let of_table = watched.entry(table.clone()).or_default();
            let hash = |column, class| ColumnHash::new(table, column, class).reading(reads);
            match rows {
                SelectedRows::All => {
                    let tag = tags::broad_reading(table, reads);
                    of_table.whole.push((tag, columns));
                }
                SelectedRows::Equal(column, class) => {
                    let at = ValueLocation::of(found, column);
                    let name = hash(column, Some(*class));
                    let value = at.map(|at| WatchedValue { at, name, columns });
                    of_table.values.extend(value);
                }
                SelectedRows::First {
                    column,
                    is_descending,
                } => {
                    let at = ValueLocation::of(found, column);
                    let order = hash(column, None).in_order(*is_descending);
                    let order = at.map(|at| WatchedOrder { at, order, columns });
                    of_table.orders.extend(order);
                }
            }
        }
        WatchList {
            tables: watched,
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

impl ValueLocation {
    fn of(table: &CatalogTable, column: &str) -> Option<Self> {
        Some(match table.column(column)? {
            ResolvedColumn::Column(index) => Self::Column(index),
            ResolvedColumn::Rowid => Self::Rowid,
        })
    }
}

/// One value to inspect in each changed row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedValue {
    pub(crate) at: ValueLocation,
    pub(crate) name: ColumnHash,
    /// The columns that the queries read.
    pub(crate) columns: ColumnMask,
}

/// A value by which rows are ordered, to inspect in each changed row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedOrder {
    pub(crate) at: ValueLocation,
    pub(crate) order: OrderHash,
    /// The columns that the queries read.
    pub(crate) columns: ColumnMask,
}

/// Columns and values to report of the changes to a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchedTable {
    pub(crate) values: Vec<WatchedValue>,
    pub(crate) orders: Vec<WatchedOrder>,
    /// The tags of all rows for queries that read certain columns.
    pub(crate) whole: Vec<(Tag, ColumnMask)>,
}

/// The values to inspect, by lower-case table name.
#[derive(Debug, Default)]
pub(crate) struct WatchList {
    pub(crate) tables: HashMap<String, WatchedTable>,
    /// The tables of the schema. A change in any other table counts as a change to all of its rows.
    pub(crate) known: HashSet<String>,
}
