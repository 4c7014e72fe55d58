//! Why factors have no restriction: the condition that came closest to one, for advice to the
//! owner.
//!
//! Nothing depends on it but the advice, so it may be wrong where a query is odd.

use std::collections::{BTreeSet, HashMap};

use super::model::{Block, Condition, InList, Mention, Side, Term};
use crate::advice::Cause;

/// Returns why each factor of the block has no restriction, if it has none. `is_selected` is true
/// if a parameter selects the rows of one of them.
pub(super) fn causes<T>(block: &Block<T>, is_selected: bool) -> Vec<Cause> {
    let mut search = CauseSearch::default();
    for conjunct in &block.conditions {
        search.condition(&conjunct.condition, &conjunct.restricts);
    }
    // What is joined to all rows, or to the first, counts as these do.
    let is_of_all = !is_selected && matches!(block.otherwise, Cause::Aggregate | Cause::First);
    let says_more = |cause: &Cause| !(is_of_all && matches!(cause, Cause::Join(_)));
    let factors = 0..block.factors.len();
    let causes = factors.map(|factor| search.found.remove(&factor).filter(says_more));
    causes
        .map(|cause| cause.unwrap_or_else(|| block.otherwise.clone()))
        .collect()
}

#[derive(Default)]
struct CauseSearch {
    found: HashMap<usize, Cause>,
}

impl CauseSearch {
    fn condition(&mut self, condition: &Condition, restricts: &BTreeSet<usize>) {
        match condition {
            Condition::Equal {
                sides: [left, right],
                ..
            } => {
                for (side, other) in [(left, right), (right, left)] {
                    let is_value = matches!(other.term, Term::Value(_));
                    self.equality(side, &other.mention, is_value, restricts);
                }
            }
            Condition::In { side, list, .. } => match list {
                InList::TooLong => self.all(&side.mention, &Cause::TooMany),
                InList::Values(_) => self.equality(side, &Mention::default(), true, restricts),
                InList::Other(mention) => self.equality(side, mention, false, restricts),
            },
            Condition::Or(_, mention) => self.all(mention, &Cause::Or),
            Condition::SemiJoin { mention, .. } => self.all(mention, &Cause::Subquery),
            Condition::Other(mention) if mention.has_subquery => {
                self.all(mention, &Cause::Subquery);
            }
            Condition::Other(mention) => self.all(mention, &Cause::NoEquality),
        }
    }

    /// Looks at a side that is to equal another expression, which is a value or names something.
    fn equality(
        &mut self,
        side: &Side,
        other: &Mention,
        is_value: bool,
        restricts: &BTreeSet<usize>,
    ) {
        let Some((factor, name)) = &side.mention.column else {
            let cause = match side.mention.has_subquery {
                true => Cause::Subquery,
                false => Cause::Computed,
            };
            return self.all(&side.mention, &cause);
        };
        let name = name.clone();
        let cause = if other.has_subquery {
            Cause::Subquery
        } else if other.is_column {
            Cause::Join(name)
        } else if !matches!(side.term, Term::Column(_)) {
            Cause::Type(name)
        } else if !restricts.contains(factor) && is_value {
            Cause::Outer(name)
        } else {
            Cause::Value(name)
        };
        self.note(*factor, cause);
    }

    /// Notes the cause for every factor that is named.
    fn all(&mut self, mention: &Mention, cause: &Cause) {
        for factor in &mention.factors {
            self.note(*factor, cause.clone());
        }
    }

    fn note(&mut self, factor: usize, cause: Cause) {
        let known = self.found.entry(factor).or_insert_with(|| cause.clone());
        if *known < cause {
            *known = cause;
        }
    }
}
