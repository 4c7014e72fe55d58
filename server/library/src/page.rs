//! A page while it is made: what it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use crate::limits::PAGE_IDS;
use crate::sql::PageReads;
use crate::store::Store;

/// A page of a [`Store`] while it is made: say here what it depends on, best before that is read.
/// Of the rows that it [queries](Page::query) it need not say anything.
///
/// A page that names nothing, queries nothing and has no [age](Page::max_age) is not kept, as
/// nothing would end it.
#[derive(Debug)]
pub struct Page {
    /// Store in which the page is kept.
    pub(crate) store: Store,
    pub(crate) reads: PageReads,
    /// By kind; none: on all things of the kind.
    dependencies: BTreeMap<String, Option<BTreeSet<String>>>,
    pub(crate) max_age: Option<Duration>,
    is_constant: bool,
    is_unwanted: bool,
}

impl Page {
    pub(crate) fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            reads: PageReads::default(),
            dependencies: BTreeMap::new(),
            max_age: None,
            is_constant: false,
            is_unwanted: false,
        }
    }

    /// The page ends when the thing `id` of `kind` [changes](crate::Store::changed). Name also what
    /// was looked for and not found: it may come.
    pub fn depends_on(&mut self, kind: &str, id: impl Display) -> &mut Self {
        let ids = match self.dependencies.get_mut(kind) {
            Some(ids) => ids,
            None => self
                .dependencies
                .entry(kind.to_owned())
                .or_insert_with(|| Some(BTreeSet::new())),
        };
        if let Some(named) = ids {
            named.insert(id.to_string());
            if named.len() > PAGE_IDS {
                *ids = None;
            }
        }
        self
    }

    /// The page ends when anything of `kind` changes: for lists, searches and counts.
    pub fn depends_on_all(&mut self, kind: &str) -> &mut Self {
        self.dependencies.insert(kind.to_owned(), None);
        self
    }

    /// The page ends after this time in any case; the shortest that is given counts. For
    /// sources that do not say when they change.
    pub fn max_age(&mut self, age: Duration) -> &mut Self {
        self.max_age = Some(self.max_age.map_or(age, |before| before.min(age)));
        self
    }

    /// The page depends on nothing that changes while the program runs, such as its own text.
    pub fn never_changes(&mut self) -> &mut Self {
        self.is_constant = true;
        self
    }

    /// The page is not kept. Requests that came before it was begun get it too.
    pub fn do_not_keep(&mut self) -> &mut Self {
        self.is_unwanted = true;
        self
    }

    pub(crate) fn dependencies(&self) -> &BTreeMap<String, Option<BTreeSet<String>>> {
        &self.dependencies
    }

    /// True if something ends it, or nothing needs to.
    pub(crate) fn may_be_kept(&self) -> bool {
        let ends = !self.dependencies.is_empty() || self.max_age.is_some();
        let ends = ends || self.is_constant || !self.reads.is_empty();
        !self.is_unwanted && ends && self.reads.may_be_kept(self.max_age.is_some())
    }
}
