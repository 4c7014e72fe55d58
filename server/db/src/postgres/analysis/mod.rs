//! What a statement depends on (coherence.md, rules 9 to 14).
//!
//! The base truth is the tree that PostgreSQL's own parser makes of the statement (`tree`): every
//! table, function, operator and conversion in it, by its oid. Views, policies and the bodies of
//! functions are trees of the same form, and are followed down to tables (`resolve`). Each of these
//! is a dependency as a whole, with all that inheritance connects it to, unless every reference to
//! it stands in the statement itself or in a view that it reads, and is restricted to rows with
//! certain values (`restrict`), perhaps by an equality on the view's columns (`derived`).

mod column_reads;
mod columns;
mod constants;
mod describe;
mod first_rows;
mod from_clause;
mod functions;
mod lookup;
mod nodes;
mod operators;
mod params;
mod query_rows;
mod resolve;
mod restriction;
#[cfg(test)]
mod tests;
mod translate;
mod tree;
mod walk;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_store::Tag;
use tokio_postgres::{Client, Statement};

use super::catalog::Catalog;
use super::interest::WatchedRows;
use super::tags;
use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::query::{Deps, QueryFacts};
use crate::{SqlError, Value};
use describe::Precision;
use first_rows::FirstRows;
use nodes::TreeNode;
use params::ClockWords;
use resolve::Readings;
use restriction::Restriction;
use tree::Tree;
use walk::TreeNames;
use witness::Asked;
pub(crate) use witness::{Found, PreparedWitness};

/// Tables that the owner names in a `-- depends:` line: those that functions in the query read;
/// `None` without such a line.
pub(crate) type Depends<'a> = Option<&'a [String]>;

/// Analysis of one statement, for one state of the catalogs.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) facts: QueryFacts,
    /// Relations that it reads and that lie in a file of their own: tables, with all that
    /// inheritance adds, and materialized views. `None` if unknown.
    pub(crate) files: Option<Vec<u32>>,
    depends: Vec<FamilyDep>,
    asked: Asked,
    witnesses: Vec<PreparedWitness>,
    /// A witness has failed, so none is run any more.
    is_unwitnessed: AtomicBool,
    uncacheable: Option<Arc<str>>,
    clock_words: ClockWords,
}

/// The end of each reason that is the clock and nothing else.
const READS_CLOCK: &str = " reads the clock";

/// A family of tables that a query depends on.
#[derive(Debug)]
struct FamilyDep {
    family: u32,
    /// The tables of it that were found.
    oids: BTreeSet<u32>,
    /// Their names.
    tables: Vec<String>,
    /// The columns that are read.
    reads: ColumnSet,
    /// One entry for each reference, each with alternatives; none: all rows.
    references: Vec<Vec<Restriction>>,
    /// Why all rows count, if they do.
    cause: Option<Cause>,
    precision: Precision,
}

/// Finds out what `sql` depends on. It was prepared as `statement` on this very connection, which
/// must be idle, outside a transaction and on a server that takes writes; `names` are those of its
/// parameters, `$1` first.
///
/// A statement that cannot be looked into is not an error: its results are not kept, and the
/// analysis says why.
///
/// # Errors
/// If it is no query; if `depends` names what is not there; if the connection is lost.
pub(crate) async fn analyse(
    client: &Client,
    catalog: &Catalog,
    sql: &str,
    names: &[String],
    depends: Depends<'_>,
    statement: &Statement,
) -> Result<Analysis, SqlError> {
    let columns = statement.columns().iter();
    let facts = QueryFacts {
        params: params::all(statement.params(), names, catalog),
        columns: columns.map(|column| column.name().into()).collect(),
        readonly: params::seems_readonly(sql),
        ..QueryFacts::default()
    };
    let mut analysis = Analysis::new(facts, ClockWords::of(statement.params()));
    let query = match tree::of(client, sql, statement.params()).await? {
        Tree::Query(TreeNode::Nothing) => {
            return Err(SqlError::no_query("there is no statement here"));
        }
        Tree::Query(query) => query,
        Tree::Utility => return Err(SqlError::no_query("this is not a query")),
        Tree::Unknown(reason) => {
            analysis.uncacheable = Some(reason.into());
            return Ok(analysis);
        }
    };
    let mut found = TreeNames::default();
    let mut asked = Asked::default();
    walk::names_of_statement(&query, catalog, &mut asked, &mut found);
    if found.has_time_constant && params::mentions_clock(sql) {
        found.objections.push(
            "a date that says 'now' is that of the moment at which the query was prepared".into(),
        );
    }
    analysis.facts.readonly = !found.writes;
    let readings = resolve::follow(client, catalog, found, &depends, &mut asked).await?;
    analysis.facts.tables = readings
        .named
        .iter()
        .filter_map(|oid| Some(catalog.relation(*oid)?.display()))
        .collect();
    analysis.facts.tables.sort();
    if !analysis.facts.readonly {
        let named: Vec<u32> = readings.named.iter().copied().collect();
        analysis.facts.written = catalog.written_schema(&named);
    }
    analysis.uncacheable = readings
        .objections
        .first()
        .map(|reason| reason.as_str().into());
    let is_clock = |reason: &String| reason.ends_with(READS_CLOCK);
    analysis.facts.reads_clock_alone =
        !readings.is_partial && readings.objections.iter().all(is_clock);
    analysis.files = (!readings.is_partial).then(|| files(catalog, &readings));
    analysis.depends = dependencies(catalog, readings);
    let references = analysis.depends.iter().flat_map(|dep| &dep.references);
    analysis.witnesses = PreparedWitness::all(references.flatten(), &asked);
    analysis.asked = asked;
    Ok(analysis)
}

/// Returns the relations that are read and have files.
fn files(catalog: &Catalog, readings: &Readings) -> Vec<u32> {
    let direct = readings.direct.keys();
    let read = direct.chain(readings.whole.keys()).chain(&readings.others);
    let has_file = |oid: &u32| {
        let relation = catalog.relation(*oid);
        relation.is_some_and(|relation| matches!(relation.kind, 'r' | 'm'))
    };
    let all: BTreeSet<u32> = read.flat_map(|oid| catalog.tree(*oid)).collect();
    all.into_iter().filter(has_file).collect()
}

/// Puts together what is of one family.
fn dependencies(catalog: &Catalog, readings: Readings) -> Vec<FamilyDep> {
    let mut families: BTreeMap<u32, FamilyDep> = BTreeMap::new();
    let (mut causes, mut reads) = (readings.causes, readings.reads);
    let chooses = readings.chooses;
    let direct = readings.direct.into_iter().map(|(table, references)| {
        let reads = reads.remove(&table).filter(|_| !chooses);
        let reads = reads.unwrap_or(ColumnSet::All);
        (table, references, causes.remove(&table), reads)
    });
    let direct: Vec<_> = direct.collect();
    let whole = readings
        .whole
        .into_iter()
        .map(|(table, cause)| (table, vec![Vec::new()], Some(cause), ColumnSet::All));
    for (table, references, cause, reads) in direct.into_iter().chain(whole) {
        let Some(family) = catalog.families.of(table) else {
            continue;
        };
        let dep = families.entry(family).or_insert_with(|| FamilyDep {
            family,
            oids: BTreeSet::new(),
            tables: Vec::new(),
            reads: reads.clone(),
            references: Vec::new(),
            cause: None,
            precision: Precision::of(catalog, table),
        });
        dep.reads = dep.reads.union(&reads);
        dep.oids.insert(table);
        dep.cause = dep.cause.take().max(cause);
        let name = catalog.display(table);
        if !dep.tables.contains(&name) {
            dep.tables.push(name);
        }
        dep.references.extend(references);
    }
    let mut all: Vec<FamilyDep> = families.into_values().collect();
    for dep in &mut all {
        // One reference without a restriction reads any row.
        if dep.references.iter().any(Vec::is_empty) {
            dep.references.clear();
        }
        dep.name_by_reads();
    }
    all.sort_by(|a, b| a.tables.cmp(&b.tables));
    all
}

impl Analysis {
    /// Of a statement of which no more is known.
    fn new(facts: QueryFacts, clock_words: ClockWords) -> Self {
        Self {
            facts,
            files: None,
            depends: Vec::new(),
            asked: Asked::default(),
            witnesses: Vec::new(),
            is_unwitnessed: AtomicBool::new(false),
            uncacheable: None,
            clock_words,
        }
    }

    /// Of a statement of which only this is known.
    #[cfg(test)]
    pub(crate) fn of_files(files: Option<Vec<u32>>) -> Self {
        let facts = QueryFacts {
            readonly: true,
            reads_clock_alone: true,
            ..QueryFacts::default()
        };
        Self {
            files,
            ..Self::new(facts, ClockWords::of(&[]))
        }
    }

    /// Reads all columns of a family where it may not have a dependency of its own for those that
    /// it reads.
    pub(crate) fn limit_reads(&mut self, takes: impl Fn(u32, &ColumnSet) -> bool) {
        for dep in &mut self.depends {
            if !takes(dep.family, &dep.reads) {
                dep.reads = ColumnSet::All;
                dep.name_by_reads();
            }
        }
    }

    /// Iterates over the rows that the feed must name for these dependencies.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = WatchedRows> + '_ {
        // Results of a statement that writes are not kept.
        let depends = self.depends.iter().filter(|_| self.facts.readonly);
        depends.flat_map(|dep| {
            let rows = |key| WatchedRows {
                family: dep.family,
                key,
                reads: dep.reads.clone(),
            };
            let restrictions = dep.references.iter().flatten();
            let keys = restrictions.map(|found| Some((found.column.clone(), found.selected_by())));
            // Also a reference that is restricted may come to depend on all rows. That anything has
            // changed is always reported.
            let all_rows = (dep.reads != ColumnSet::All).then_some(None);
            keys.chain(all_rows).map(rows)
        })
    }

    /// The tables that its results are read from.
    pub(crate) fn reads(&self) -> impl Iterator<Item = u32> + '_ {
        self.depends.iter().flat_map(|dep| dep.oids.iter().copied())
    }

    /// Returns the questions that the dependencies of an execution ask in its snapshot.
    pub(crate) fn witnesses(&self) -> &[PreparedWitness] {
        if self.is_unwitnessed.load(Ordering::Relaxed) {
            return &[];
        }
        &self.witnesses
    }

    /// Runs no witness any more: one has failed.
    pub(crate) fn forget_witnesses(&self) {
        self.is_unwitnessed.store(true, Ordering::Relaxed);
    }

    /// The dependencies of one execution, for which witnesses have `found` this.
    pub(crate) fn deps(&self, params: &[Value], found: &Found<'_>) -> Deps {
        let mut all = Vec::with_capacity(self.depends.len() * 2);
        for dep in &self.depends {
            dep.tags(params, found, &self.asked.first_rows, &mut all);
        }
        let clock = || self.clock_words.in_any(params, &self.facts.params);
        Deps {
            tags: all,
            uncacheable: self.uncacheable.clone().or_else(clock),
            reads_clock_alone: self.facts.reads_clock_alone,
        }
    }
}

impl FamilyDep {
    /// Counts only changes to the columns that are read.
    fn name_by_reads(&mut self) {
        let family = self.family;
        for found in self.references.iter_mut().flatten() {
            found.read(family, &self.reads);
        }
    }

    fn tags(
        &self,
        params: &[Value],
        found: &Found<'_>,
        first_rows: &[FirstRows],
        into: &mut Vec<Tag>,
    ) {
        let mut narrow = Vec::new();
        for alternatives in &self.references {
            // A value whose equality has no canonical form rules an alternative out.
            match alternatives
                .iter()
                .find_map(|restriction| found.tags(restriction, params, first_rows))
            {
                Some(tags) => narrow.extend(tags),
                None => {
                    narrow.clear();
                    break;
                }
            }
        }
        if narrow.is_empty() {
            into.push(tags::broad_reading(self.family, &self.reads));
        } else {
            into.extend(narrow);
        }
    }
}
