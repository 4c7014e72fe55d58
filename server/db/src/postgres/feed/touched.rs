//! What one transaction has touched so far, in bounded memory however large it is.

use std::collections::{HashMap, HashSet};

use millpond_store::Tag;

use super::pgoutput::{OldRow, Tuple};
use super::relations::{TablePlan, Touched};
use crate::order::{OrderHash, OrderPlace};

/// Narrow tags of one family in one transaction; more count as a change to all its rows.
pub(crate) const MAX_NARROW: usize = 4_096;
/// Tags of one place in an order, at most.
const TAGS_OF_A_PLACE: usize = 128;
/// Tags of one transaction; more count as a change to everything. As many as the store's log holds.
const MAX_TAGS: usize = 262_144;

/// The tags of a transaction, each once.
#[derive(Default)]
pub(crate) struct TouchedTags {
    families: HashMap<u32, FamilyTags>,
    tags: usize,
    /// Why it may have touched anything.
    anything: Option<&'static str>,
}

#[derive(Default)]
struct FamilyTags {
    broad: HashSet<Tag>,
    narrow: HashSet<Tag>,
    /// The first place of a row, old or new, in each order.
    first: HashMap<OrderHash, OrderPlace>,
    /// All rows are touched already.
    all: bool,
}

impl TouchedTags {
    pub(crate) fn row(
        &mut self,
        plan: &TablePlan,
        old: Option<&OldRow<'_>>,
        new: Option<&Tuple<'_>>,
    ) {
        self.change(plan, |family| {
            if !family.all {
                plan.row(old, new, |touched| family.add(touched));
            }
        })
    }

    /// Takes in that all rows of a table are gone.
    pub(crate) fn all_rows(&mut self, plan: &TablePlan) {
        self.change(plan, |family| family.all(plan))
    }

    fn change(&mut self, plan: &TablePlan, change: impl FnOnce(&mut FamilyTags)) {
        if self.anything.is_some() {
            return;
        }
        let family = self.families.entry(plan.family).or_default();
        let before = family.len();
        family.insert(plan.broad);
        change(family);
        if family.narrow.len() > MAX_NARROW {
            family.all(plan);
        }
        let after = family.len();
        self.tags = self.tags + after - before;
        if self.tags > MAX_TAGS {
            self.anything("a transaction has touched more than can be listed");
        }
    }

    /// It may have touched anything.
    pub(crate) fn anything(&mut self, why: &'static str) {
        self.families = HashMap::new();
        self.tags = 0;
        self.anything.get_or_insert(why);
    }

    /// How many tags are held.
    pub(crate) fn len(&self) -> usize {
        self.tags
    }

    /// All tags, and why they are not all.
    pub(crate) fn into_tags(self) -> (Vec<Tag>, Option<&'static str>) {
        let families = self.families.into_values();
        let tags = families.flat_map(|family| {
            let first = family.first.into_iter();
            let first = first.flat_map(|(order, first)| order.touched_by(first));
            family.broad.into_iter().chain(family.narrow).chain(first)
        });
        (tags.collect(), self.anything)
    }
}

impl FamilyTags {
    fn len(&self) -> usize {
        self.broad.len() + self.narrow.len() + self.first.len() * TAGS_OF_A_PLACE
    }

    fn add(&mut self, touched: Touched) {
        match touched {
            Touched::Tag(tag) => self.insert(tag),
            Touched::Place(order, place) => {
                let first = self.first.entry(order).or_insert(place);
                *first = place.min(*first);
            }
        }
    }

    fn insert(&mut self, tag: Tag) {
        if tag.is_broad() {
            self.broad.insert(tag);
        } else {
            self.narrow.insert(tag);
        }
    }

    fn all(&mut self, plan: &TablePlan) {
        self.narrow = HashSet::new();
        plan.all().for_each(|touched| self.add(touched));
        self.all = true;
    }
}
