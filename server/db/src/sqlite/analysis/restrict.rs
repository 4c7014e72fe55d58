//! Finds the equalities that restrict a table reference (COHERENCE, rule 10).
//!
//! Nothing here has to be complete, but everything has to be certain: a reference that this module does not report as
//! restricted makes its table a dependency as a whole. The caller checks that *every* reference to a table was
//! reported, by counting, so a construct that is overlooked widens.
//!
//! Why an equality `t.c = v` in the top-level conjunction of WHERE restricts whatever the joins: a row of `t` with another
//! value in `c` gives only combined rows for which the conjunction is not true; and where its absence would make an outer
//! join fill in NULLs, the comparison with NULL is not true either. An inner join's ON is such a conjunction as long as
//! there is no RIGHT or FULL join; a LEFT join's ON decides only which rows of its right side match.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, ObjectName, Query, Select, UnaryOperator,
    Value as Literal, Visit, Visitor,
};

use super::nearest;
use super::scope::{Scope, base_name, last_part, lower};
use crate::Value;
use crate::advice::Cause;
use crate::sqlite::catalog::{Catalog, Found};
use crate::sqlite::tags::{Class, ColumnName};

/// Values in one `IN (…)`; a longer list makes the whole table a dependency.
pub(super) const MAX_VALUES: usize = 64;

/// What a column is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A parameter, by its index from 0.
    Parameter(usize),
    Constant(Value),
}

/// `column = value`, or `column IN (values)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    /// Lower-case; the name that the rowid has if it is that.
    pub(crate) column: String,
    pub(crate) class: Class,
    pub(crate) name: ColumnName,
    pub(crate) values: Vec<Operand>,
}

/// The table references of a statement.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// How often each table is named, by its lower-case name without a schema.
    pub(crate) named: HashMap<String, usize>,
    /// For each reference that is restricted, the restrictions of which each one alone would do, the best first.
    pub(crate) restricted: HashMap<String, Vec<Vec<Restriction>>>,
    /// Why a reference to a table has no restriction, of those that have none.
    pub(crate) causes: HashMap<String, Cause>,
    /// The names of common table expressions.
    pub(crate) shadowed: BTreeSet<String>,
}

/// Finds the references in `tree`. `parameters` gives the index of each parameter by its name as it is written.
pub(crate) fn references(
    tree: &impl Visit,
    catalog: &Catalog,
    parameters: &HashMap<String, usize>,
) -> References {
    let mut names = Shadowing(BTreeSet::new());
    let _ = tree.visit(&mut names);
    let mut walk = Walk {
        catalog,
        parameters,
        found: References {
            shadowed: names.0,
            ..References::default()
        },
        takes_first: false,
    };
    let _ = tree.visit(&mut walk);
    walk.found
}

/// Collects the names of common table expressions, wherever they are.
pub(crate) struct Shadowing(pub(crate) BTreeSet<String>);

impl Visitor for Shadowing {
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

struct Walk<'a> {
    catalog: &'a Catalog,
    parameters: &'a HashMap<String, usize>,
    found: References,
    /// Whether the query whose text begins here takes the first rows in some order.
    takes_first: bool,
}

impl Visitor for Walk<'_> {
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

impl Walk<'_> {
    fn select(&mut self, select: &Select) {
        let scope = Scope::of(select, self.catalog, &self.found.shadowed);
        let mut restrictions: Vec<Vec<Restriction>> =
            scope.factors.iter().map(|_| Vec::new()).collect();
        if let Some(selection) = &select.selection {
            self.conjunction(&scope, selection, None, &mut restrictions);
        }
        for (on, only) in joined(select) {
            self.conjunction(&scope, on, only, &mut restrictions);
        }
        let is_value = |expr: &Expr| self.operand(expr).is_some();
        let mut causes = nearest::causes(select, &scope, &is_value, self.takes_first);
        for (index, (factor, mut alternatives)) in
            scope.factors.iter().zip(restrictions).enumerate()
        {
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
            // The rowid finds one row; of the others nothing is known, so the first that was written.
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

    /// Takes the equalities out of a conjunction; those on factor `only`, if one is given.
    fn conjunction(
        &self,
        scope: &Scope<'_>,
        expr: &Expr,
        only: Option<usize>,
        into: &mut [Vec<Restriction>],
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
                for (column, value) in [(left, right), (right, left)] {
                    if let (Some((factor, found)), Some(value)) =
                        (scope.resolve(column), self.operand(value))
                    {
                        restrict(scope, factor, found, vec![value], only, into);
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
                if let (Some((factor, found)), Some(values)) = (scope.resolve(expr), values) {
                    restrict(scope, factor, found, values, only, into);
                }
            }
            _ => {}
        }
    }

    /// A parameter or a constant, without any operator that could give it an affinity or a collation.
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

fn restrict(
    scope: &Scope<'_>,
    factor: usize,
    found: Found,
    values: Vec<Operand>,
    only: Option<usize>,
    into: &mut [Vec<Restriction>],
) {
    if only.is_some_and(|only| only != factor) {
        return;
    }
    let Some((table_name, table)) = scope.factors[factor].base() else {
        return;
    };
    let Some((column, class)) = table.narrowing(found) else {
        return;
    };
    let name = ColumnName::new(table_name, &column, class);
    into[factor].push(Restriction {
        column,
        class,
        name,
        values,
    });
}

/// The conditions of the joins that restrict something: everything, or the one factor that is given.
fn joined(select: &Select) -> Vec<(&Expr, Option<usize>)> {
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
                Some((Side::Both, JoinConstraint::On(on))) if only_left_joins => {
                    found.push((on, None));
                }
                Some((Side::Right, JoinConstraint::On(on))) => found.push((on, Some(index))),
                _ => {}
            }
        }
        index += 1;
    }
    found
}

/// Which sides of a join its ON restricts.
enum Side {
    Both,
    Right,
}

/// `None` for RIGHT and FULL joins, and for what SQLite does not have.
fn side(operator: &JoinOperator) -> Option<(Side, &JoinConstraint)> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint) => Some((Side::Both, constraint)),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Some((Side::Right, constraint))
        }
        _ => None,
    }
}
