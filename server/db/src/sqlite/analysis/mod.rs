//! The dependencies of a statement (coherence.md, rules 9 to 14).
//!
//! The authority is SQLite's authorizer: it lists the tables that the prepared statement reads,
//! through views and virtual tables. Each of them is a dependency as a whole, unless the
//! statement's text shows that every reference to it is restricted to rows with certain values. So
//! text that is not understood only widens.

mod analyse;
mod column_reads;
mod common_tables;
mod defaults;
mod derived;
mod describe;
mod documents;
mod first_rows;
mod functions;
mod joins;
mod literals;
mod operands;
mod parameter_kinds;
mod plans;
mod references;
mod resolve;
mod scope;
mod translate;
mod walk;
mod witness;
mod written;

use std::sync::Arc;

use millpond_store::Tag;

use crate::Value;
use crate::advice::Cause;
use crate::column_set::ColumnSet;
use crate::precision::Values;
use crate::precision::witness::Witness;
use crate::query::{Deps, QueryFacts};
use crate::sqlite::catalog::SchemaKey;
use crate::sqlite::interest::{SelectedRows, Selection};
use crate::sqlite::tags;
pub(crate) use analyse::analyse;
pub(crate) use derived::ViewText;
use first_rows::FirstRows;
use references::Restriction;
pub(crate) use witness::RunWitness;
use witness::WitnessRun;

/// The analysis of one statement, for one state of the schema.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) key: SchemaKey,
    pub(crate) facts: QueryFacts,
    depends: Vec<TableDependency>,
    witnesses: Vec<Witness>,
    first_rows: Vec<FirstRows>,
    uncacheable: Option<Arc<str>>,
    /// A view behind the query that reads the clock in a column, and the function. Whether the
    /// query reads that column is known when it runs.
    clock_view: Option<(String, String)>,
}

/// A table that a query depends on.
#[derive(Debug)]
struct TableDependency {
    table: String,
    /// The columns that the query reads.
    reads: ColumnSet,
    /// One entry for each reference to the table, each with alternatives. An empty list means the
    /// whole table.
    references: Vec<Vec<Restriction>>,
    /// Why the dependency is the whole table, if it is.
    cause: Option<Cause>,
}

impl Analysis {
    /// Iterates over the rows that the feed must report for these dependencies.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = Selection> + '_ {
        // Results of a statement that writes are not kept.
        let depends = self.depends.iter().filter(|_| self.facts.readonly);
        depends.flat_map(|dep| {
            let selection = |rows| Selection {
                table: dep.table.clone(),
                rows,
                reads: dep.reads.clone(),
            };
            let restrictions = dep.references.iter().flatten();
            let some = restrictions.filter_map(|found| self.rows_of(found));
            // Also a reference that is restricted may come to depend on all rows. That anything has
            // changed is always reported.
            let all = (dep.reads != ColumnSet::All).then_some(SelectedRows::All);
            some.chain(all).map(selection)
        })
    }

    fn rows_of(&self, restriction: &Restriction) -> Option<SelectedRows> {
        let column = restriction.column.clone();
        Some(match &restriction.values {
            Values::First(index) => SelectedRows::First {
                column,
                is_descending: self.first_rows[*index].is_descending,
            },
            Values::Given(_) | Values::Witnessed(_) => {
                SelectedRows::Equal(column, restriction.class?)
            }
        })
    }

    /// The dependencies of one execution, which has given these rows. `run` runs a witness in its
    /// snapshot.
    pub(crate) fn deps(
        &self,
        params: &[Value],
        rows: &[Vec<Value>],
        clock_was_read: bool,
        run: &mut RunWitness<'_>,
    ) -> Deps {
        let mut all = Vec::with_capacity(self.depends.len() * 2);
        let mut witnesses = WitnessRun::new(&self.witnesses, &self.first_rows, (params, rows), run);
        for dep in &self.depends {
            dep.tags(&mut witnesses, &mut all);
        }
        let clock = || {
            clock_was_read.then(|| Arc::from("a date function was given 'now' and read the clock"))
        };
        Deps {
            tags: all,
            uncacheable: self.uncacheable.clone().or_else(clock),
            reads_clock_alone: self.facts.reads_clock_alone,
        }
    }
}

impl TableDependency {
    /// Counts only changes to these columns.
    fn read(&mut self, columns: ColumnSet) {
        for restriction in self.references.iter_mut().flatten() {
            restriction.name = restriction.name.reading(&columns);
        }
        self.reads = columns;
    }

    fn tags(&self, witnesses: &mut WitnessRun<'_, '_>, into: &mut Vec<Tag>) {
        let narrow = self.narrow_tags(witnesses);
        if narrow.is_some() || self.reads != ColumnSet::All {
            // Also touched by a transaction that began before the feed knew of these tags.
            into.push(tags::bulk(&self.table));
        }
        match narrow {
            Some(narrow) => into.extend(narrow),
            None => into.push(tags::broad_reading(&self.table, &self.reads)),
        }
    }

    /// The tags of the rows that count; none if every row does.
    fn narrow_tags(&self, witnesses: &mut WitnessRun<'_, '_>) -> Option<Vec<Tag>> {
        let mut narrow = Vec::new();
        for alternatives in &self.references {
            // A value without a canonical form ('07' for an integer column) excludes an
            // alternative.
            let tags = alternatives
                .iter()
                .find_map(|restriction| witnesses.tags(restriction));
            narrow.extend(tags?);
        }
        (!self.references.is_empty()).then_some(narrow)
    }
}
