//! The references of a statement to tables, each with the rows to which it is restricted
//! (coherence.md, rules 10 and 21).
//!
//! The result need not be complete, but it must be certain: a reference that is not reported as
//! restricted makes its table a dependency as a whole. The caller counts the reports and checks
//! that *every* reference to a table was reported, so a construct that is overlooked only widens.

use std::collections::{BTreeSet, HashMap};

use sqlparser::ast::Statement;

use super::common_tables::CommonTables;
use super::first_rows::FirstRows;
use super::plans::Plans;
use super::scope::{Scope, resolved};
use super::translate::Translation;
use super::witness::SqliteWitnesses;
use crate::advice::Cause;
use crate::precision::witness::Witness;
use crate::precision::{self, ColumnRestriction, Model, Narrowed, ValueClass, Values};
use crate::sqlite::catalog::Catalog;
use crate::sqlite::tags::ColumnHash;

/// `column = value`, `column IN (values)`, or the first rows by a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    /// Lower-case; [`ROWID`](crate::sqlite::tags::ROWID) for a rowid without a column.
    pub(crate) column: String,
    /// None if equality with the column has no canonical form.
    pub(crate) class: Option<ValueClass>,
    pub(crate) name: ColumnHash,
    pub(crate) values: Values,
}

/// The table references of a statement.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// The number of references to each table, by its lower-case name without a schema.
    pub(crate) named: HashMap<String, usize>,
    /// For each restricted reference, its restrictions, the best first. Each one alone is
    /// sufficient.
    pub(crate) restricted: HashMap<String, Vec<Vec<Restriction>>>,
    /// A witness refers only to those before it.
    pub(crate) witnesses: Vec<Witness>,
    pub(crate) first_rows: Vec<FirstRows>,
    /// The number of references to each view that were looked through.
    pub(super) views: HashMap<String, usize>,
    /// Why a reference has no restriction, for tables with such references.
    pub(crate) causes: HashMap<String, Cause>,
    pub(crate) common: CommonTables,
}

impl References {
    /// Finds the references in `tree`. `parameters` maps each parameter's name, as it is written,
    /// to its index.
    pub(super) fn of(
        tree: &Statement,
        catalog: &Catalog,
        parameters: &HashMap<String, usize>,
        plans: &Plans<'_>,
    ) -> Self {
        let common = CommonTables::of(tree, catalog);
        let translated = Translation::new(catalog, parameters, plans, &common).statement(tree);
        let mut found = Self {
            named: translated.named,
            first_rows: translated.first_rows,
            views: translated.views,
            ..Self::default()
        };
        let (blocks, scopes) = (translated.blocks, translated.scopes);
        let model = Model { blocks };
        let source = SqliteWitnesses {
            plans,
            first_rows: &found.first_rows,
        };
        let narrowed = precision::narrow(&model, Vec::new(), &source, &mut found.witnesses);
        for (scope, narrowed) in scopes.iter().zip(&narrowed) {
            if let Some(scope) = scope {
                found.report(scope, narrowed);
            }
        }
        found.common = common;
        found
    }

    /// The views of which every reference was looked through.
    pub(crate) fn looked_through(&self) -> BTreeSet<String> {
        let views = self.views.iter();
        let all = views.filter(|(name, count)| self.named.get(*name) == Some(*count));
        all.map(|(name, _)| name.clone()).collect()
    }

    /// Notes what was found out about the factors of one SELECT.
    fn report(&mut self, scope: &Scope<'_>, narrowed: &Narrowed) {
        for (index, found) in narrowed.found.iter().enumerate() {
            let Some((name, _)) = scope.factors[index].base() else {
                continue;
            };
            let restrictions = found.iter();
            let restrictions = restrictions.filter_map(|one| restriction(scope, index, one));
            let restrictions: Vec<Restriction> = restrictions.collect();
            if restrictions.is_empty() {
                let known = self.causes.remove(name);
                let cause = known.max(Some(narrowed.causes[index].clone()));
                self.causes
                    .extend(cause.map(|cause| (name.to_owned(), cause)));
                continue;
            }
            let all = self.restricted.entry(name.to_owned()).or_default();
            all.push(restrictions);
        }
    }
}

/// Returns the restriction of a factor that is a table, with what names it in dependencies.
fn restriction(scope: &Scope<'_>, factor: usize, found: &ColumnRestriction) -> Option<Restriction> {
    let (table, source) = scope.factors[factor].base()?;
    let resolved = resolved(found.column);
    let column = match found.values {
        Values::First(_) => source.ordering(resolved)?,
        _ => source.narrowing(resolved)?.0,
    };
    Some(Restriction {
        name: ColumnHash::new(table, &column, found.class),
        column,
        class: found.class,
        values: found.values.clone(),
    })
}
