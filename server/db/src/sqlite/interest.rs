//! Which columns queries select by, so that the feed names only their values.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::catalog::{Catalog, Found};
use crate::sqlite::tags::{Class, ColumnName};

/// One column of one table, by its lower-case names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wanted {
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) class: Class,
}

/// The columns on which any query has ever had interest. It only grows.
#[derive(Default)]
pub(crate) struct Interest {
    version: AtomicU64,
    wanted: Mutex<BTreeSet<Wanted>>,
}

impl Interest {
    /// Adds columns; whether any was new. If so, the caller must begin a new epoch before anything that was read with
    /// dependencies on it is stored: changes from before did not name its values.
    pub(crate) fn add(&self, wanted: impl IntoIterator<Item = Wanted>) -> bool {
        let mut set = self.wanted.lock();
        let before = set.len();
        set.extend(wanted);
        let grown = set.len() > before;
        if grown {
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        grown
    }

    /// Moves whenever a column is added.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// What to look at in each row of each table, for one schema.
    pub(crate) fn watch(&self, catalog: &Catalog) -> Watch {
        let set = self.wanted.lock();
        let mut columns: HashMap<String, Vec<Watched>> = HashMap::new();
        for Wanted {
            table,
            column,
            class,
        } in set.iter()
        {
            let Some(found) = catalog.table(table).and_then(|table| table.column(column)) else {
                continue;
            };
            let at = match found {
                Found::Column(index) => At::Column(index),
                Found::Rowid => At::Rowid,
            };
            let name = ColumnName::new(table, column, *class);
            columns
                .entry(table.clone())
                .or_default()
                .push(Watched { at, name });
        }
        Watch {
            columns,
            known: catalog.tables.keys().cloned().collect(),
        }
    }
}

/// Where the hook finds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Column(usize),
    Rowid,
}

/// One value to look at in each changed row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) at: At,
    pub(crate) name: ColumnName,
}

/// What to look at, by lower-case table name.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) columns: HashMap<String, Vec<Watched>>,
    /// The tables that the schema has; a change in any other counts as a change to all of its rows.
    pub(crate) known: HashSet<String>,
}
