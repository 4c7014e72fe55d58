//! Finds the equalities that restrict a table reference (coherence.md, rule 10).
//!
//! The result need not be complete, but it must be certain: a reference that this module does not
//! report as restricted makes its table a dependency as a whole. The caller counts the reports and
//! checks that *every* reference to a table was reported, so a construct that is overlooked only
//! widens.
//!
//! An equality `t.c = v` in the top-level conjunction of WHERE restricts for any joins, for two
//! reasons. A row of `t` with another value in `c` gives only combined rows for which the
//! conjunction is not true. Where its absence would make an outer join fill in NULLs, the
//! comparison with NULL is not true either. An inner join's ON is such a conjunction if there is no
//! RIGHT or FULL join. A LEFT join's ON decides only which rows of its right side match.
//!
//! An equality of two columns hands a restriction on: see [`EqualColumns`].

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, ObjectName, Query, Select, UnaryOperator,
    Value as Literal, Visit, Visitor,
};

use super::derived::{Derived, SelectId};
use super::scope::{Scope, base_name, last_part, lower};
use super::widening;
use crate::Value;
use crate::advice::Cause;
use crate::sqlite::catalog::{Catalog, ResolvedColumn};
use crate::sqlite::tags::{ColumnHash, EqualityClass};

/// The most values in one `IN (…)`; a longer list makes the whole table a dependency.
pub(super) const MAX_VALUES: usize = 64;

/// The other side of a comparison with a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A parameter, by its index from 0.
    Parameter(usize),
    Constant(Value),
}

/// `column = value`, or `column IN (values)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    /// Lower-case; [`ROWID`](crate::sqlite::tags::ROWID) for a rowid without a column.
    pub(crate) column: String,
    pub(crate) class: EqualityClass,
    pub(crate) name: ColumnHash,
    pub(crate) values: Vec<Operand>,
    /// The place of the column in a view or subquery, if it is one of these.
    of_derived: Option<usize>,
}

/// `x.a = y.b`, which stands where an equality with a value would restrict. If only rows of `x`
/// with `a = v` count, only rows of `y` with `b = v` do: a row with another value meets the
/// condition only with rows of `x` that do not count.
#[derive(Clone, Copy, Debug)]
struct EqualColumns {
    columns: [(usize, ResolvedColumn); 2],
    /// The only factor that the condition restricts, if it is one.
    only: Option<usize>,
}

/// The restrictions of the factors of one SELECT.
struct Restrictions {
    of_factors: Vec<Vec<Restriction>>,
    equal_columns: Vec<EqualColumns>,
}

/// The table references of a statement.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// The number of references to each table, by its lower-case name without a schema.
    pub(crate) named: HashMap<String, usize>,
    /// For each restricted reference, its restrictions, the best first. Each one alone is
    /// sufficient.
    pub(crate) restricted: HashMap<String, Vec<Vec<Restriction>>>,
    /// The number of references to each view that were looked through.
    views: HashMap<String, usize>,
    /// Why a reference has no restriction, for tables with such references.
    pub(crate) causes: HashMap<String, Cause>,
    /// The names of common table expressions.
    pub(crate) shadowed: BTreeSet<String>,
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
    tree: &impl Visit,
    catalog: &Catalog,
    parameters: &HashMap<String, usize>,
) -> References {
    let mut names = CteNames::default();
    let _ = tree.visit(&mut names);
    let mut finder = RestrictionFinder {
        catalog,
        parameters,
        found: References {
            shadowed: names.0,
            ..References::default()
        },
        takes_first: false,
        moved: HashMap::new(),
    };
    let _ = tree.visit(&mut finder);
    finder.found
}

/// Collects the names of common table expressions at any depth.
#[derive(Default)]
pub(crate) struct CteNames(pub(crate) BTreeSet<String>);

impl Visitor for CteNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.0.extend(
                with.cte_tables
                    .iter()
                    .map(|cte| lower(&cte.alias.name.value)),
            );
        }
        ControlFlow::Continue(())
    }
}

struct RestrictionFinder<'a> {
    catalog: &'a Catalog,
    parameters: &'a HashMap<String, usize>,
    found: References,
    /// True if the current query takes the first rows in some order.
    takes_first: bool,
    /// Equalities on the columns of views and subqueries, moved into their SELECT.
    moved: HashMap<SelectId, Vec<MovedEquality>>,
}

/// A column of the FROM clause below, and the values to which it is equal.
type MovedEquality = ((usize, ResolvedColumn), Vec<Operand>);

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
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.select(select);
        ControlFlow::Continue(())
    }
}

impl RestrictionFinder<'_> {
    fn select(&mut self, select: &Select) {
        let scope = Scope::of(select, self.catalog, &self.found.shadowed);
        let mut restrictions = Restrictions {
            of_factors: scope.factors.iter().map(|_| Vec::new()).collect(),
            equal_columns: Vec::new(),
        };
        for (column, values) in self.moved.remove(&SelectId::of(select)).unwrap_or_default() {
            restrictions.add(&scope, column, values, None);
        }
        if let Some(selection) = &select.selection {
            self.conjunction(&scope, selection, None, &mut restrictions);
        }
        for (on, only) in join_conditions(select) {
            self.conjunction(&scope, on, only, &mut restrictions);
        }
        restrictions.spread(&scope);
        let is_value = |expr: &Expr| self.operand(expr).is_some();
        let mut causes = widening::causes(select, &scope, &is_value, self.takes_first);
        let restricted = scope.factors.iter().zip(restrictions.of_factors);
        for (index, (factor, mut alternatives)) in restricted.enumerate() {
            if let Some(derived) = factor.derived() {
                self.move_inside(derived, std::mem::take(&mut alternatives));
                if let Some(view) = &factor.view {
                    self.look_through(view);
                }
            }
            let Some((name, table)) = factor.base() else {
                continue;
            };
            if alternatives.is_empty() {
                let known = self.found.causes.remove(name);
                let cause = known.max(causes.remove(&index));
                self.found
                    .causes
                    .extend(cause.map(|cause| (name.to_owned(), cause)));
                continue;
            }
            // The rowid selects one row. The selectivity of the others is unknown, so the first
            // written one comes first.
            let rowid = table
                .rowid_column
                .map(|index| table.columns[index].name.as_str());
            alternatives.sort_by_key(|restriction| rowid != Some(restriction.column.as_str()));
            self.found
                .restricted
                .entry(name.to_owned())
                .or_default()
                .push(alternatives);
        }
    }

    /// Moves the equalities on a view or subquery into it.
    fn move_inside(&mut self, derived: &Derived, restrictions: Vec<Restriction>) {
        let moved = restrictions.into_iter().filter_map(|restriction| {
            let (below, _) = derived.columns[restriction.of_derived?].below?;
            Some((below, restriction.values))
        });
        self.moved.insert(derived.select, moved.collect());
    }

    /// Finds the references in the text of a view.
    fn look_through(&mut self, view: &str) {
        let catalog = self.catalog;
        if let Some(query) = catalog.table(view).and_then(|view| view.query.as_deref()) {
            *self.found.views.entry(view.to_owned()).or_default() += 1;
            let takes_first = self.takes_first;
            let _ = query.visit(self);
            self.takes_first = takes_first;
        }
    }

    /// Collects the equalities of a conjunction; only those on factor `only`, if it is given.
    fn conjunction(
        &self,
        scope: &Scope<'_>,
        expr: &Expr,
        only: Option<usize>,
        into: &mut Restrictions,
    ) {
        match expr {
            Expr::Nested(inner) => self.conjunction(scope, inner, only, into),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.conjunction(scope, left, only, into);
                self.conjunction(scope, right, only, into);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                let sides = [scope.resolve(left), scope.resolve(right)];
                if let [Some(left), Some(right)] = sides {
                    into.equal_columns.push(EqualColumns {
                        columns: [left, right],
                        only,
                    });
                }
                for (column, value) in sides.into_iter().zip([right, left]) {
                    if let (Some(column), Some(value)) = (column, self.operand(value)) {
                        into.add(scope, column, vec![value], only);
                    }
                }
            }
            Expr::InList {
                expr,
                list,
                negated: false,
            } if list.len() <= MAX_VALUES => {
                let values: Option<Vec<Operand>> =
                    list.iter().map(|value| self.operand(value)).collect();
                if let (Some(column), Some(values)) = (scope.resolve(expr), values) {
                    into.add(scope, column, values, only);
                }
            }
            _ => {}
        }
    }

    /// A parameter or a constant, without an operator that could give it an affinity or a
    /// collation.
    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Nested(inner) => self.operand(inner),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match self.operand(expr)? {
                Operand::Constant(Value::Integer(integer)) => integer
                    .checked_neg()
                    .map(|i| Operand::Constant(Value::Integer(i))),
                _ => None,
            },
            Expr::Value(value) => match &value.value {
                Literal::Placeholder(name) => {
                    self.parameters.get(name).copied().map(Operand::Parameter)
                }
                Literal::SingleQuotedString(text) => Some(Operand::Constant(text.as_str().into())),
                Literal::Number(digits, false) => digits
                    .parse()
                    .ok()
                    .map(|integer| Operand::Constant(Value::Integer(integer))),
                Literal::Null => Some(Operand::Constant(Value::Null)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Restrictions {
    fn add(
        &mut self,
        scope: &Scope<'_>,
        column: (usize, ResolvedColumn),
        values: Vec<Operand>,
        only: Option<usize>,
    ) {
        if only.is_none_or(|only| only == column.0)
            && let Some(restriction) = restriction(scope, column, values)
        {
            self.of_factors[column.0].push(restriction);
        }
    }

    /// Hands restrictions on along equal columns, behind those that are written down.
    fn spread(&mut self, scope: &Scope<'_>) {
        loop {
            let mut found = Vec::new();
            for EqualColumns { columns, only } in &self.equal_columns {
                let [left, right] = *columns;
                for (from, to) in [(left, right), (right, left)] {
                    if only.is_none_or(|only| only == to.0) {
                        found.extend(self.handed_on(scope, from, to));
                    }
                }
            }
            let before = self.count();
            for (factor, restriction) in found {
                let known = &mut self.of_factors[factor];
                if !known.contains(&restriction) {
                    known.push(restriction);
                }
            }
            if self.count() == before {
                return;
            }
        }
    }

    /// The restrictions of column `from`, as restrictions of column `to`. Both must have the same
    /// canonical form of a value.
    fn handed_on(
        &self,
        scope: &Scope<'_>,
        from: (usize, ResolvedColumn),
        to: (usize, ResolvedColumn),
    ) -> Vec<(usize, Restriction)> {
        let source = restriction(scope, from, Vec::new());
        let target = restriction(scope, to, Vec::new());
        let (Some(source), Some(target)) = (source, target) else {
            return Vec::new();
        };
        if source.class != target.class {
            return Vec::new();
        }
        let known = self.of_factors[from.0].iter();
        let known = known.filter(|known| known.column == source.column);
        known
            .map(|known| {
                let values = known.values.clone();
                (
                    to.0,
                    Restriction {
                        values,
                        ..target.clone()
                    },
                )
            })
            .collect()
    }

    fn count(&self) -> usize {
        self.of_factors.iter().map(Vec::len).sum()
    }
}

/// The restriction of a column to values; none if the column's equality has no canonical form.
fn restriction(
    scope: &Scope<'_>,
    (factor, found): (usize, ResolvedColumn),
    values: Vec<Operand>,
) -> Option<Restriction> {
    let class = scope.class((factor, found))?;
    let (table_name, column, of_derived) = match (scope.factors[factor].base(), found) {
        (Some((name, table)), _) => (name, table.narrowing(found)?.0, None),
        // Its name is nowhere else than among the restrictions of this factor.
        (None, ResolvedColumn::Column(index)) => ("", index.to_string(), Some(index)),
        (None, ResolvedColumn::Rowid) => return None,
    };
    let name = ColumnHash::new(table_name, &column, class);
    Some(Restriction {
        column,
        class,
        name,
        values,
        of_derived,
    })
}

/// The ON conditions that restrict rows: of every factor, or of the given factor only.
fn join_conditions(select: &Select) -> Vec<(&Expr, Option<usize>)> {
    let operators = || {
        select
            .from
            .iter()
            .flat_map(|tables| &tables.joins)
            .map(|join| &join.join_operator)
    };
    let only_left_joins = operators().all(|operator| side(operator).is_some());
    let mut found = Vec::new();
    let mut index = 0;
    for tables in &select.from {
        for join in &tables.joins {
            index += 1;
            match side(&join.join_operator) {
                Some((RestrictedSide::Both, JoinConstraint::On(on))) if only_left_joins => {
                    found.push((on, None));
                }
                Some((RestrictedSide::Right, JoinConstraint::On(on))) => {
                    found.push((on, Some(index)))
                }
                _ => {}
            }
        }
        index += 1;
    }
    found
}

/// The sides of a join that its ON condition restricts.
enum RestrictedSide {
    Both,
    Right,
}

/// `None` for RIGHT and FULL joins, and for joins that SQLite does not have.
fn side(operator: &JoinOperator) -> Option<(RestrictedSide, &JoinConstraint)> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint) => Some((RestrictedSide::Both, constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Some((RestrictedSide::Right, constraint))
        }
        _ => None,
    }
}
