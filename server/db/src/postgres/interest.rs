//! Which columns queries select by, so that the feed names only their values.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::tags::{ColumnName, ValueClass};

/// One column of one family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WatchedColumn {
    pub(crate) family: u32,
    pub(crate) column: String,
    pub(crate) class: ValueClass,
}

/// The columns that the feed looks at, by family.
pub(crate) type WatchedColumns = HashMap<u32, Vec<(String, ColumnName)>>;

/// The columns on which any query has ever had interest. It only grows.
#[derive(Default)]
pub(crate) struct ColumnInterest {
    state: Mutex<InterestState>,
}

#[derive(Default)]
struct InterestState {
    wanted: BTreeSet<WatchedColumn>,
    watch: Arc<WatchedColumns>,
}

impl ColumnInterest {
    /// Adds columns; whether any was new. If so, the caller must begin a new epoch before anything
    /// that was read with dependencies on it is stored: changes from before did not name its
    /// values.
    pub(crate) fn add(&self, wanted: impl IntoIterator<Item = WatchedColumn>) -> bool {
        let mut state = self.state.lock();
        let before = state.wanted.len();
        state.wanted.extend(wanted);
        let grown = state.wanted.len() > before;
        if grown {
            let mut watch = WatchedColumns::new();
            for wanted in &state.wanted {
                let name = ColumnName::new(wanted.family, &wanted.column, wanted.class);
                let columns = watch.entry(wanted.family).or_default();
                columns.push((wanted.column.clone(), name));
            }
            state.watch = Arc::new(watch);
        }
        grown
    }

    /// What to look at now. Taken by the feed after a transaction's last change has arrived and
    /// right before it is delivered, under the lock of the delivery, so that none is delivered
    /// without the names of a column added before its epoch began.
    pub(crate) fn watch(&self) -> Arc<WatchedColumns> {
        self.state.lock().watch.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interest_grows_and_is_reported_by_family() {
        let interest = ColumnInterest::default();
        let wanted = |family, column: &str| WatchedColumn {
            family,
            column: column.to_owned(),
            class: ValueClass::Integer,
        };
        assert!(interest.add([wanted(1, "id"), wanted(1, "author")]));
        assert!(!interest.add([wanted(1, "id")]));
        assert!(interest.add([wanted(2, "id")]));
        let watch = interest.watch();
        assert_eq!(watch[&1].len(), 2);
        assert_eq!(
            watch[&2][0].1,
            ColumnName::new(2, "id", ValueClass::Integer)
        );
        assert!(!watch.contains_key(&3));
    }
}
