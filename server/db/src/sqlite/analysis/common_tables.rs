//! Common table expressions (`WITH name AS (…)`) of a statement.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{Cte, ObjectName, Query, Visit, Visitor};

use super::derived::{SelectId, selects};
use super::scope::{last_part, lower};
use super::walk::walk;
use crate::sqlite::catalog::Catalog;

/// The common table expressions of a statement.
#[derive(Debug, Default)]
pub(crate) struct CommonTables {
    /// All of their names, at any depth.
    pub(crate) names: BTreeSet<String>,
    /// Common table expressions that are looked through.
    pub(super) plain: HashMap<String, CommonTable>,
}

/// A common table expression that is one SELECT, or set operations, and does not read itself.
#[derive(Debug)]
pub(super) struct CommonTable {
    /// A copy of its query.
    query: Box<Query>,
    /// Its SELECTs in the statement.
    pub(super) selects: Vec<SelectId>,
    /// The names that it gives to its columns.
    pub(super) columns: Option<Vec<String>>,
    /// True if the statement reads it once, so that what restricts this reference restricts its
    /// SELECTs.
    pub(super) is_read_once: bool,
}

impl CommonTable {
    pub(super) fn query(&self) -> &Query {
        &self.query
    }
}

impl CommonTables {
    pub(crate) fn of(tree: &impl Visit, catalog: &Catalog) -> Self {
        let mut search = CommonTableSearch::default();
        let _ = walk(tree, &mut search);
        let CommonTableSearch {
            names,
            mut found,
            read,
        } = search;
        found.retain(|name, tables| {
            // A name that has one meaning in the whole statement.
            tables.len() == 1 && catalog.table(name).is_none()
        });
        let plain = found.into_iter().filter_map(|(name, mut tables)| {
            let mut table = tables.pop()??;
            table.is_read_once = read.get(&name) == Some(&1);
            Some((name, table))
        });
        Self {
            plain: plain.collect(),
            names,
        }
    }
}

/// True if a query has common table expressions at any depth.
pub(super) fn has_any(query: &Query) -> bool {
    let mut search = CommonTableSearch::default();
    let _ = walk(query, &mut search);
    !search.names.is_empty()
}

/// All names of tables in a query, those of common table expressions too.
pub(super) fn names_read(query: &Query) -> BTreeSet<String> {
    let mut search = CommonTableSearch::default();
    let _ = walk(query, &mut search);
    search.read.into_keys().collect()
}

#[derive(Default)]
struct CommonTableSearch {
    names: BTreeSet<String>,
    found: HashMap<String, Vec<Option<CommonTable>>>,
    /// How often the statement names each table.
    read: HashMap<String, usize>,
}

impl Visitor for CommonTableSearch {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = lower(&cte.alias.name.value);
            self.names.insert(name.clone());
            self.found
                .entry(name.clone())
                .or_default()
                .push(plain(&name, cte));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = last_part(relation).unwrap_or_default();
        *self.read.entry(name).or_default() += 1;
        ControlFlow::Continue(())
    }
}

fn plain(name: &str, cte: &Cte) -> Option<CommonTable> {
    let selects = selects(&cte.query)?;
    let mut inside = CommonTableSearch::default();
    let _ = walk(&cte.query, &mut inside);
    let is_recursive = inside.read.contains_key(name);
    let columns = cte.alias.columns.iter();
    let columns: Vec<String> = columns.map(|column| lower(&column.name.value)).collect();
    (!is_recursive).then(|| CommonTable {
        query: cte.query.clone(),
        selects: selects.into_iter().map(SelectId::of).collect(),
        columns: Some(columns).filter(|columns| !columns.is_empty()),
        is_read_once: false,
    })
}
