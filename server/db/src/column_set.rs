//! Which columns of a table a query reads, and which ones a change has changed (coherence.md, rule
//! 22).

use std::collections::BTreeSet;
use std::sync::Arc;

/// Columns of a table that a query reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ColumnSet {
    /// Every column, and what is no column: the order of the rows.
    All,
    /// As the catalog writes them, sorted, each once.
    Some(Arc<[String]>),
}

impl ColumnSet {
    pub(crate) fn of(names: impl IntoIterator<Item = String>) -> Self {
        let names: BTreeSet<String> = names.into_iter().collect();
        Self::Some(names.into_iter().collect::<Vec<_>>().into())
    }

    /// The columns of both.
    pub(crate) fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Some(a), Self::Some(b)) => Self::of(a.iter().chain(b.iter()).cloned()),
            _ => Self::All,
        }
    }
}

/// Columns of a table by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnMask {
    All,
    /// The column at place `n` is bit `n`.
    Some(u128),
}

impl ColumnMask {
    /// The places of columns; all, if a column is not there or its place is too high.
    pub(crate) fn of(columns: &ColumnSet, place: impl Fn(&str) -> Option<usize>) -> Self {
        let ColumnSet::Some(names) = columns else {
            return Self::All;
        };
        let mut mask = 0;
        for name in names.iter() {
            match place(name) {
                Some(place) if place < 128 => mask |= 1 << place,
                _ => return Self::All,
            }
        }
        Self::Some(mask)
    }

    /// True if a column is in both.
    pub(crate) const fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Some(a), Self::Some(b)) => a & b != 0,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &str) -> ColumnSet {
        ColumnSet::of(names.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn sets_are_united_by_names() {
        assert_eq!(set("b a").union(&set("c a")), set("a b c"));
        assert_eq!(set("a").union(&ColumnSet::All), ColumnSet::All);
        assert_eq!(ColumnSet::All.union(&set("")), ColumnSet::All);
    }

    #[test]
    fn a_column_that_has_no_place_is_any() {
        let place = |name: &str| match name {
            "a" => Some(0),
            "b" => Some(3),
            "far" => Some(128),
            _ => None,
        };
        let mask = |names| ColumnMask::of(&set(names), place);
        assert_eq!(mask("a b"), ColumnMask::Some(0b1001));
        assert_eq!(mask(""), ColumnMask::Some(0));
        assert_eq!(mask("a far"), ColumnMask::All);
        assert_eq!(mask("a gone"), ColumnMask::All);
        assert!(mask("a").meets(mask("a b")) && !mask("a").meets(mask("b")));
        assert!(ColumnMask::All.meets(mask("")) && !mask("a").meets(mask("")));
    }
}
