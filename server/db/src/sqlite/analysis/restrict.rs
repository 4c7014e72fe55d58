//! Finds the equalities that restrict each table reference of a statement (coherence.md, rules 10
//! and 21).
//!
//! The result need not be complete, but it must be certain: a reference that this module does not
//! report as restricted makes its table a dependency as a whole. The caller counts the reports and
//! checks that *every* reference to a table was reported, so a construct that is overlooked only
//! widens.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Visit, Visitor,
};

use super::common_tables::CommonTables;
use super::derived::{self, Derived, SelectId};
use super::equalities::{self, Equalities, EqualitySearch, FactorColumn, LevelColumn};
use super::first_rows::{FirstRows, OrderedQuery};
use super::narrowed::{Narrowed, SourceChoice};
use super::plans::Plans;
use super::scope::{Scope, Sources, base_name, last_part};
use super::widening;
use super::witness::Witness;
use crate::Value;
use crate::advice::Cause;
use crate::sqlite::catalog::Catalog;
use crate::sqlite::tags::{ColumnHash, EqualityClass};

/// The most values in one `IN (…)`, or of one witness; more make the whole table a dependency.
pub(super) const MAX_VALUES: usize = 64;

/// The other side of a comparison with a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A parameter, by its index from 0.
    Parameter(usize),
    Constant(Value),
    /// The items of a parameter that is a list: `in (select value from json_each(:parameter))`.
    Items(usize),
    /// The value of the last of these first rows.
    Last(usize),
}

impl Operand {
    /// Its value in an execution with these parameters, if they say it.
    pub(super) fn value<'a>(&'a self, params: &'a [Value]) -> Option<&'a Value> {
        match self {
            Self::Parameter(index) | Self::Items(index) => params.get(*index),
            Self::Constant(value) => Some(value),
            Self::Last(_) => None,
        }
    }
}

/// The values to which a column is restricted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Given(Vec<Operand>),
    /// Those that this witness of the statement finds.
    Witnessed(usize),
    /// Those of the first rows, which these are.
    First(usize),
}

impl Values {
    pub(super) const fn are_witnessed(&self) -> bool {
        matches!(self, Self::Witnessed(_))
    }
}

/// `column = value`, `column IN (values)`, or the first rows by a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    /// Lower-case; [`ROWID`](crate::sqlite::tags::ROWID) for a rowid without a column.
    pub(crate) column: String,
    /// None if equality with the column has no canonical form.
    pub(crate) class: Option<EqualityClass>,
    pub(crate) name: ColumnHash,
    pub(crate) values: Values,
    /// The place of the column in a view or subquery, if it is one of these.
    pub(super) of_derived: Option<usize>,
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
    views: HashMap<String, usize>,
    /// Why a reference has no restriction, for tables with such references.
    pub(crate) causes: HashMap<String, Cause>,
    pub(crate) common: CommonTables,
}

impl References {
    /// The views of which every reference was looked through.
    pub(crate) fn looked_through(&self) -> BTreeSet<String> {
        let views = self.views.iter();
        let all = views.filter(|(name, count)| self.named.get(*name) == Some(*count));
        all.map(|(name, _)| name.clone()).collect()
    }
}

/// Finds the references in `tree`. `parameters` maps each parameter's name, as it is written, to
/// its index.
pub(crate) fn references(
    tree: &Statement,
    catalog: &Catalog,
    parameters: &HashMap<String, usize>,
    plans: &Plans<'_>,
) -> References {
    let ordered = match tree {
        Statement::Query(query) => {
            OrderedQuery::of(query, &|expr| equalities::operand(expr, parameters))
        }
        _ => None,
    };
    let mut finder = RestrictionFinder {
        catalog,
        parameters,
        plans,
        ordered,
        found: References {
            common: CommonTables::of(tree, catalog),
            ..References::default()
        },
        takes_first: false,
        moved: HashMap::new(),
        around: Vec::new(),
        ready: HashMap::new(),
        source_depth: 0,
    };
    let _ = tree.visit(&mut finder);
    finder.found
}

struct RestrictionFinder<'a> {
    catalog: &'a Catalog,
    parameters: &'a HashMap<String, usize>,
    plans: &'a Plans<'a>,
    /// The statement, if it takes the first rows of an order.
    ordered: Option<OrderedQuery<'a>>,
    found: References,
    /// True if the current query takes the first rows in some order.
    takes_first: bool,
    /// Equalities on the columns of views and subqueries, moved into their SELECT.
    moved: HashMap<SelectId, Vec<(FactorColumn, Values)>>,
    /// The queries around the current place, the innermost last.
    around: Vec<Around<'a>>,
    /// How many semi-joins around the current place are the source of a witness.
    source_depth: usize,
    /// SELECTs that were looked at before their turn.
    ready: HashMap<SelectId, Narrowed<'a>>,
}

/// A query around the current place.
enum Around<'a> {
    /// Names that are not found further inside may be columns of its SELECT.
    Select(Narrowed<'a>),
    /// It is unknown which SELECT gives names a meaning here.
    Unknown,
}

impl Visitor for RestrictionFinder<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = base_name(relation)
            .or_else(|| last_part(relation))
            .unwrap_or_default();
        *self.found.named.entry(name).or_default() += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.takes_first = query.order_by.is_some() && query.limit_clause.is_some();
        self.around.push(Around::Unknown);
        self.look_ahead(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.source_depth += usize::from(self.is_source(select));
        let ready = self.ready.remove(&SelectId::of(select));
        let narrowed = ready.unwrap_or_else(|| self.select(select));
        if let Some(innermost) = self.around.last_mut() {
            *innermost = Around::Select(narrowed);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.source_depth -= usize::from(self.is_source(select));
        if let Some(innermost) = self.around.last_mut() {
            *innermost = Around::Unknown;
        }
        ControlFlow::Continue(())
    }

    /// A subquery in FROM does not see the other tables there.
    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.around.push(Around::Unknown);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }
}

impl<'a> RestrictionFinder<'a> {
    /// True for the SELECT of a semi-join that is the source of a witness.
    fn is_source(&self, select: &Select) -> bool {
        let mut around = self.around.iter();
        around.any(
            |around| matches!(around, Around::Select(narrowed) if narrowed.is_narrowed_by(select)),
        )
    }

    /// Looks at the SELECTs of a query with common table expressions, those that read before those
    /// that are read.
    fn look_ahead(&mut self, query: &Query) {
        let common = query.with.iter().flat_map(|with| &with.cte_tables);
        let selects = common.filter_map(|cte| derived::selects(&cte.query));
        let mut selects: Vec<&Select> = selects.flatten().collect();
        if selects.is_empty() {
            return;
        }
        if let SetExpr::Select(select) = query.body.as_ref() {
            let narrowed = self.select(select);
            self.ready.insert(SelectId::of(select), narrowed);
        }
        while let Some(select) = selects.pop() {
            self.around.push(Around::Unknown);
            let narrowed = self.select(select);
            self.around.pop();
            self.ready.insert(SelectId::of(select), narrowed);
        }
    }

    const fn sources(&self) -> Sources<'a, '_> {
        Sources {
            catalog: self.catalog,
            common: &self.found.common,
        }
    }

    fn select(&mut self, select: &Select) -> Narrowed<'a> {
        let scope = Scope::of(select, self.sources());
        let equalities = self.equalities(&scope, select);
        let semi_joins = equalities.semi_joins.clone();
        let first_rows = self.first_rows(select, &scope);
        let mut choice = SourceChoice {
            sources: Sources {
                catalog: self.catalog,
                common: &self.found.common,
            },
            parameters: self.parameters,
            plans: self.plans,
            first_rows,
            witnesses: &mut self.found.witnesses,
            all_first_rows: &self.found.first_rows,
            is_source: self.source_depth > 0,
            around: &|level| select_at(&self.around, level),
        };
        let narrowed = choice.choose(select, scope, equalities);
        for semi_join in &semi_joins {
            let moved = choice.moved_into(&narrowed, semi_join);
            self.moved
                .entry(SelectId::of(semi_join.select))
                .or_default()
                .extend(moved);
        }
        self.report(select, &narrowed);
        narrowed
    }

    /// The restriction to the first rows of an order, if the SELECT takes these.
    fn first_rows(&mut self, select: &Select, scope: &Scope<'_>) -> Option<(usize, Restriction)> {
        let ordered = self
            .ordered
            .as_ref()
            .filter(|ordered| ordered.is_of(select))?;
        let prepare = |sql: &str| self.plans.in_order(sql, self.parameters);
        let ((factor, _), rows) = ordered.first_rows(scope, &prepare)?;
        let restriction = Restriction {
            column: rows.column.clone(),
            class: None,
            name: ColumnHash::new(&rows.table, &rows.column, None),
            values: Values::First(self.found.first_rows.len()),
            of_derived: None,
        };
        self.found.first_rows.push(rows);
        Some((factor, restriction))
    }

    /// The equalities of a SELECT, with those that were moved into it.
    fn equalities<'s>(&mut self, scope: &Scope<'a>, select: &'s Select) -> Equalities<'s> {
        let moved = self.moved.remove(&SelectId::of(select)).unwrap_or_default();
        let search = EqualitySearch {
            scope,
            parameters: self.parameters,
            has_own_lists: self.sources().has_own_lists(),
            find_outside: &|expr| find_outside(&self.around, expr),
        };
        let mut equalities = search.search(select);
        for (column, values) in moved {
            equalities.add(scope, column, values, None);
        }
        let is_source = self.source_depth > 0;
        equalities.spread(scope, &|side| {
            let (column, mut known) = select_at(&self.around, side.level)?.known(side.column)?;
            known.retain(|known| !is_source || !known.values.are_witnessed());
            Some((column, known))
        });
        equalities
    }

    fn report(&mut self, select: &Select, narrowed: &Narrowed<'_>) {
        let is_value = |expr: &Expr| equalities::operand(expr, self.parameters).is_some();
        let mut causes = widening::causes(select, &narrowed.scope, &is_value, self.takes_first);
        let factors = narrowed.scope.factors.iter();
        for (index, (factor, restrictions)) in factors.zip(&narrowed.restrictions).enumerate() {
            if let Some(derived) = factor.derived() {
                self.move_inside(derived, restrictions);
                if let Some(view) = &factor.view {
                    self.look_through(view);
                }
            }
            let Some((name, _)) = factor.base() else {
                continue;
            };
            if restrictions.is_empty() {
                let known = self.found.causes.remove(name);
                let cause = known.max(causes.remove(&index));
                self.found
                    .causes
                    .extend(cause.map(|cause| (name.to_owned(), cause)));
                continue;
            }
            self.found
                .restricted
                .entry(name.to_owned())
                .or_default()
                .push(restrictions.clone());
        }
    }

    /// Moves the equalities on a view or subquery into it.
    fn move_inside(&mut self, derived: &Derived, restrictions: &[Restriction]) {
        for (arm, select) in derived.selects.iter().enumerate() {
            let moved = restrictions.iter().filter_map(|restriction| {
                let below = derived.columns[restriction.of_derived?].below[arm]?;
                Some((below, restriction.values.clone()))
            });
            self.moved.entry(*select).or_default().extend(moved);
        }
    }

    /// Finds the references in the text of a view.
    fn look_through(&mut self, view: &str) {
        let catalog = self.catalog;
        if let Some(query) = catalog.table(view).and_then(|view| view.query.as_deref()) {
            *self.found.views.entry(view.to_owned()).or_default() += 1;
            let takes_first = self.takes_first;
            // No name in a view means a column of the query that uses the view.
            let around = std::mem::take(&mut self.around);
            let _ = query.visit(self);
            self.around = around;
            self.takes_first = takes_first;
        }
    }
}

/// The SELECT around the innermost query by this level, if everything between is known.
fn select_at<'n, 'a>(around: &'n [Around<'a>], level: usize) -> Option<&'n Narrowed<'a>> {
    let outside = around.iter().rev().skip(1).take(level);
    let known = outside.map_while(|around| match around {
        Around::Select(narrowed) => Some(narrowed),
        Around::Unknown => None,
    });
    let known: Vec<_> = known.collect();
    known.get(level.checked_sub(1)?).copied()
}

/// The column of a SELECT around the innermost query that an expression names.
fn find_outside(around: &[Around<'_>], expr: &Expr) -> Option<LevelColumn> {
    let mut level = 1;
    loop {
        let narrowed = select_at(around, level)?;
        if let Some(column) = narrowed.scope.resolve(expr) {
            return Some(LevelColumn { level, column });
        }
        if !narrowed.scope.lacks(expr) {
            return None;
        }
        level += 1;
    }
}
