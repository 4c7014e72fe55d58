//! Which rows queries select and which columns they read, so that the feed reports only that.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use millpond_store::Tag;
use parking_lot::Mutex;

use super::order::{OrderName, RowOrder};
use super::tags::{self, ColumnName};
use crate::column_set::ColumnSet;
use crate::precision::ValueClass;

/// Sets of columns of one family that queries read; a query that reads another counts as reading
/// all columns.
const MAX_COLUMN_SETS: usize = 64;

/// Rows of a family that queries select, and the columns that they read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WatchedRows {
    pub(crate) family: u32,
    /// The column by which rows are selected; none if all are.
    pub(crate) key: Option<(String, SelectedBy)>,
    pub(crate) reads: ColumnSet,
}

/// How a column selects rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SelectedBy {
    /// Rows with certain values.
    Value(ValueClass),
    /// The first ones in this order.
    Order(RowOrder),
}

/// Values that the feed looks at in a change of a family.
#[derive(Debug, Default)]
pub(crate) struct WatchedFamily {
    /// By their values.
    pub(crate) keys: Vec<WatchedColumn<ColumnName>>,
    /// By their order.
    pub(crate) orders: Vec<WatchedColumn<OrderName>>,
    /// The tags of all rows for queries that read certain columns.
    pub(crate) whole: Vec<(Tag, ColumnSet)>,
    /// The sets of columns among these.
    sets: BTreeSet<ColumnSet>,
}

/// A column by which rows are selected, with its name in dependencies.
#[derive(Debug)]
pub(crate) struct WatchedColumn<N> {
    pub(crate) column: String,
    pub(crate) name: N,
    /// Columns that the queries read that select by it.
    pub(crate) reads: ColumnSet,
}

/// Watched families, by number.
pub(crate) type WatchedFamilies = HashMap<u32, WatchedFamily>;

/// All that any query has ever had interest in. It only grows.
#[derive(Default)]
pub(crate) struct RowInterest {
    state: Mutex<InterestState>,
}

#[derive(Default)]
struct InterestState {
    wanted: BTreeSet<WatchedRows>,
    watch: Arc<WatchedFamilies>,
}

impl RowInterest {
    /// Adds rows; whether any were new. If so, the caller must begin a new epoch before anything
    /// that was read with dependencies on them is stored: changes from before did not name their
    /// tags.
    pub(crate) fn add(&self, wanted: impl IntoIterator<Item = WatchedRows>) -> bool {
        let mut state = self.state.lock();
        let before = state.wanted.len();
        state.wanted.extend(wanted);
        let grown = state.wanted.len() > before;
        if grown {
            let mut watch = WatchedFamilies::new();
            for rows in &state.wanted {
                watch.entry(rows.family).or_default().add(rows);
            }
            state.watch = Arc::new(watch);
        }
        grown
    }

    /// Returns the families to look at now. Taken by the feed after a transaction's last change has
    /// arrived and right before it is delivered, under the lock of the delivery, so that none is
    /// delivered without the tags of rows added before its epoch began.
    pub(crate) fn watch(&self) -> Arc<WatchedFamilies> {
        self.state.lock().watch.clone()
    }

    /// True if queries on the family may have a set of columns of their own, so what is watched
    /// stays bounded for any number of edits. Of several callers at once a few may exceed it.
    pub(crate) fn takes(&self, family: u32, reads: &ColumnSet) -> bool {
        let watch = self.watch();
        watch
            .get(&family)
            .is_none_or(|family| family.sets.contains(reads) || family.sets.len() < MAX_COLUMN_SETS)
    }
}

impl WatchedFamily {
    fn add(&mut self, rows: &WatchedRows) {
        let WatchedRows { family, key, reads } = rows;
        self.sets.insert(reads.clone());
        match key {
            Some((column, SelectedBy::Value(class))) => self.keys.push(WatchedColumn {
                column: column.clone(),
                name: ColumnName::new(*family, column, *class).reading(reads),
                reads: reads.clone(),
            }),
            Some((column, SelectedBy::Order(order))) => self.orders.push(WatchedColumn {
                column: column.clone(),
                name: OrderName::new(*family, column, *order, reads),
                reads: reads.clone(),
            }),
            None => {
                let tag = tags::broad_reading(*family, reads);
                self.whole.push((tag, reads.clone()));
            }
        }
    }
}

#[cfg(test)]
impl WatchedRows {
    /// Rows with certain values of a column, for queries that read every column.
    pub(crate) fn by(family: u32, column: &str, class: ValueClass) -> Self {
        Self {
            family,
            key: Some((column.to_owned(), SelectedBy::Value(class))),
            reads: ColumnSet::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> ColumnSet {
        ColumnSet::of(names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn interest_grows_and_is_reported_by_family() {
        let interest = RowInterest::default();
        let wanted = |family, column: &str| WatchedRows::by(family, column, ValueClass::Integer);
        assert!(interest.add([wanted(1, "id"), wanted(1, "author")]));
        assert!(!interest.add([wanted(1, "id")]));
        assert!(interest.add([wanted(2, "id")]));
        let reads = WatchedRows {
            reads: set(&["title"]),
            ..wanted(1, "id")
        };
        assert!(interest.add([reads.clone()]));
        assert!(interest.add([WatchedRows { key: None, ..reads }]));
        let watch = interest.watch();
        assert_eq!(watch[&1].keys.len(), 3);
        assert_eq!(watch[&1].whole.len(), 1);
        assert_eq!(
            watch[&2].keys[0].name,
            ColumnName::new(2, "id", ValueClass::Integer)
        );
        assert!(!watch.contains_key(&3));
    }

    #[test]
    fn a_family_has_a_limit_of_sets() {
        let interest = RowInterest::default();
        let numbered = |number: usize| set(&[&format!("c{number}")]);
        for number in 0..MAX_COLUMN_SETS {
            let reads = numbered(number);
            assert!(interest.takes(1, &reads));
            interest.add([WatchedRows {
                family: 1,
                key: None,
                reads,
            }]);
        }
        assert!(interest.takes(1, &numbered(0)));
        assert!(interest.takes(2, &numbered(MAX_COLUMN_SETS)));
        assert!(!interest.takes(1, &numbered(MAX_COLUMN_SETS)));
    }
}
