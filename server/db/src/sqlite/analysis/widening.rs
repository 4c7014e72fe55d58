//! Why references have no restriction: the condition that came closest to one, for advice to the
//! owner.
//!
//! Only the advice uses this module, so it may be wrong for unusual queries; `restrict` alone
//! decides.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, JoinConstraint, JoinOperator, Select, visit_expressions,
};

use super::restrict::MAX_VALUES;
use super::scope::Scope;
use crate::advice::Cause;
use crate::sqlite::catalog::ResolvedColumn;
use crate::sqlite::tags::ROWID;

/// Why each factor of the FROM clause has no restriction, if it has none. `is_value` is true for a
/// parameter or a constant. `takes_first` is true if the query takes only the first rows in some
/// order.
pub(crate) fn causes(
    select: &Select,
    scope: &Scope<'_>,
    is_value: &dyn Fn(&Expr) -> bool,
    takes_first: bool,
) -> HashMap<usize, Cause> {
    let mut search = CauseSearch {
        scope,
        is_value,
        found: HashMap::new(),
    };
    if let Some(selection) = &select.selection {
        search.condition(selection, true);
    }
    for join in select.from.iter().flat_map(|tables| &tables.joins) {
        let (constraint, is_inner) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint) => (constraint, true),
            JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => (constraint, false),
            _ => continue,
        };
        if let JoinConstraint::On(on) = constraint {
            search.condition(on, is_inner);
        }
    }
    let mut found = search.found;
    let other = if aggregates(select) {
        Cause::Aggregate
    } else if takes_first {
        Cause::First
    } else {
        Cause::Unconditional
    };
    for index in 0..scope.factors.len() {
        found.entry(index).or_insert_with(|| other.clone());
    }
    found
}

struct CauseSearch<'a> {
    scope: &'a Scope<'a>,
    is_value: &'a dyn Fn(&Expr) -> bool,
    found: HashMap<usize, Cause>,
}

impl CauseSearch<'_> {
    /// Inspects a condition. `restricts` is true if the condition would restrict any side of its
    /// join.
    fn condition(&mut self, expr: &Expr, restricts: bool) {
        match expr {
            Expr::Nested(inner) => self.condition(inner, restricts),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.condition(left, restricts);
                self.condition(right, restricts);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                self.equality(left, &[right], restricts);
                self.equality(right, &[left], restricts);
            }
            Expr::BinaryOp {
                op: BinaryOperator::Or,
                ..
            } => self.note_all(expr, &Cause::Or),
            Expr::InList {
                expr: column,
                list,
                negated: false,
            } => {
                if list.len() > MAX_VALUES {
                    self.note_all(expr, &Cause::TooMany);
                } else {
                    let values: Vec<&Expr> = list.iter().collect();
                    self.equality(column, &values, restricts);
                }
            }
            _ if has_subquery(expr) => self.note_all(expr, &Cause::Subquery),
            _ => self.note_all(expr, &Cause::NoEquality),
        }
    }

    /// Inspects an equality of `side` with one of `others`.
    fn equality(&mut self, side: &Expr, others: &[&Expr], restricts: bool) {
        let Some((factor, found)) = self.scope.resolve(side) else {
            let cause = if has_subquery(side) {
                Cause::Subquery
            } else {
                Cause::Computed
            };
            return self.note_all(side, &cause);
        };
        let Some((_, table)) = self.scope.factors[factor].base() else {
            return;
        };
        let name = match found {
            ResolvedColumn::Column(index) => table.columns[index].name.clone(),
            ResolvedColumn::Rowid => ROWID.to_owned(),
        };
        let cause = if others.iter().any(|other| has_subquery(other)) {
            Cause::Subquery
        } else if others.iter().any(|other| is_column(other)) {
            Cause::Join(name)
        } else if table.narrowing(found).is_none() {
            Cause::Type(name)
        } else if !restricts && others.iter().all(|other| (self.is_value)(other)) {
            Cause::Outer(name)
        } else {
            Cause::Value(name)
        };
        self.note(factor, cause);
    }

    /// Notes the cause for every factor that has a column in `expr`.
    fn note_all(&mut self, expr: &Expr, cause: &Cause) {
        let mut named = BTreeSet::new();
        let _ = visit_expressions(expr, |inner| {
            named.extend(self.scope.resolve(inner).map(|(factor, _)| factor));
            ControlFlow::<()>::Continue(())
        });
        for factor in named {
            self.note(factor, cause.clone());
        }
    }

    fn note(&mut self, factor: usize, cause: Cause) {
        let known = self.found.entry(factor).or_insert_with(|| cause.clone());
        if *known < cause {
            *known = cause;
        }
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_column(inner),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => true,
        _ => false,
    }
}

fn has_subquery(expr: &Expr) -> bool {
    any(expr, |inner| {
        matches!(
            inner,
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. }
        )
    })
}

/// True if the rows are aggregated: in groups, or into one row.
fn aggregates(select: &Select) -> bool {
    const FUNCTIONS: [&str; 7] = ["count", "sum", "total", "avg", "min", "max", "group_concat"];
    let groups = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(columns, _) => !columns.is_empty(),
    };
    let is_aggregate = |expr: &Expr| match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            function.over.is_none() && FUNCTIONS.contains(&name.as_str())
        }
        _ => false,
    };
    groups || any(&select.projection, is_aggregate)
}

fn any(tree: &impl sqlparser::ast::Visit, is_wanted: impl Fn(&Expr) -> bool) -> bool {
    visit_expressions(tree, |expr| {
        if is_wanted(expr) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .is_break()
}
