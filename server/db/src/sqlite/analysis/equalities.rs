//! The equalities that restrict the factors of one SELECT (coherence.md, rules 10 and 21).
//!
//! An equality `t.c = v` in the top-level conjunction of WHERE restricts for any joins, for two
//! reasons. A row of `t` with another value in `c` gives only combined rows for which the
//! conjunction is not true. Where its absence would make an outer join fill in NULLs, the
//! comparison with NULL is not true either. An inner join's ON is such a conjunction if there is no
//! RIGHT or FULL join. A LEFT join's ON decides only which rows of its right side match.
//!
//! The same holds for `t.c = v OR t.c = w`, as for `t.c IN (v, w)`: a row with a third value makes
//! no branch true. In a branch that is a conjunction one equality is enough for that.
//!
//! An equality of two columns hands a restriction on: see [`EqualColumns`]. One of them may be a
//! column of a SELECT around this one.

use std::collections::HashMap;

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Query, Select, UnaryOperator,
    Value as Literal,
};

use super::derived::plain_select;
use super::restrict::{MAX_VALUES, Operand, Restriction, Values};
use super::scope::Scope;
use crate::Value;
use crate::sqlite::catalog::ResolvedColumn;
use crate::sqlite::tags::ColumnHash;

/// A factor of a FROM clause, and one of its columns.
pub(super) type FactorColumn = (usize, ResolvedColumn);

/// A column of this SELECT (level 0), or of one around it (level 1 and up).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LevelColumn {
    pub(super) level: usize,
    pub(super) column: FactorColumn,
}

/// `x.a = y.b`, which stands where an equality with a value would restrict. If only rows of `x`
/// with `a = v` count, only rows of `y` with `b = v` do: a row with another value meets the
/// condition only with rows of `x` that do not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct EqualColumns {
    sides: [LevelColumn; 2],
    /// The only factor that the condition restricts, if it is one.
    only: Option<usize>,
}

impl EqualColumns {
    /// The pairs of a column and one of this SELECT that is equal to it and restricted by that.
    pub(super) fn directions(&self) -> impl Iterator<Item = (LevelColumn, FactorColumn)> + '_ {
        let [left, right] = self.sides;
        let both = [(left, right), (right, left)];
        both.into_iter().filter_map(|(from, to)| {
            let restricts = to.level == 0 && self.only.is_none_or(|only| only == to.column.0);
            restricts.then_some((from, to.column))
        })
    }
}

/// `x.a IN (SELECT …)`, `x.a = (SELECT …)` or `EXISTS (SELECT …)`, which stands where an equality
/// would restrict.
#[derive(Clone, Copy)]
pub(super) struct SemiJoin<'s> {
    /// The column before IN or `=`.
    pub(super) column: Option<FactorColumn>,
    pub(super) select: &'s Select,
    /// True if all rows of the SELECT are compared, not only the first.
    pub(super) takes_all: bool,
    only: Option<usize>,
}

impl SemiJoin<'_> {
    pub(super) fn restricts(&self, factor: usize) -> bool {
        self.only.is_none_or(|only| only == factor)
    }
}

/// Finds columns of the SELECTs around this one.
pub(super) type FindOutside<'f> = dyn Fn(&Expr) -> Option<LevelColumn> + 'f;

/// The equalities of one SELECT.
pub(super) struct Equalities<'s> {
    /// For each factor, each of its restrictions is sufficient.
    pub(super) of_factors: Vec<Vec<Restriction>>,
    pub(super) equal_columns: Vec<EqualColumns>,
    pub(super) semi_joins: Vec<SemiJoin<'s>>,
}

/// Where the equalities of a SELECT are looked for.
pub(super) struct EqualitySearch<'a, 'f> {
    pub(super) scope: &'a Scope<'f>,
    pub(super) parameters: &'a HashMap<String, usize>,
    /// True if `json_each` is SQLite's own.
    pub(super) has_own_lists: bool,
    pub(super) find_outside: &'a FindOutside<'a>,
}

impl EqualitySearch<'_, '_> {
    pub(super) fn search<'s>(&self, select: &'s Select) -> Equalities<'s> {
        let mut found = Equalities::none(self.scope);
        if let Some(selection) = &select.selection {
            self.conjunction(selection, None, &mut found);
        }
        for (condition, only) in join_conditions(select) {
            match condition {
                Condition::On(on) => self.conjunction(on, only, &mut found),
                Condition::Using(factor) => self.using(factor, only, &mut found),
            }
        }
        found
    }

    /// Collects the equalities of a conjunction; only those on factor `only`, if it is given.
    fn conjunction<'s>(&self, expr: &'s Expr, only: Option<usize>, into: &mut Equalities<'s>) {
        match expr {
            Expr::Nested(inner) => self.conjunction(inner, only, into),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.conjunction(left, only, into);
                self.conjunction(right, only, into);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Or,
                right,
            } => self.disjunction([left, right], only, into),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => self.equality(left, right, only, into),
            Expr::InList {
                expr,
                list,
                negated: false,
            } if list.len() <= MAX_VALUES => {
                let values = list.iter().map(|value| operand(value, self.parameters));
                let values: Option<Vec<Operand>> = values.collect();
                if let (Some(column), Some(values)) = (self.scope.resolve(expr), values) {
                    into.add(self.scope, column, Values::Given(values), only);
                }
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated: false,
            } => {
                let Some(column) = self.scope.resolve(expr) else {
                    return;
                };
                let items = items(subquery, self.parameters).filter(|_| self.has_own_lists);
                match items {
                    Some(items) => into.add(self.scope, column, Values::Given(vec![items]), only),
                    None => into.semi_join(Some(column), subquery, true, only),
                }
            }
            Expr::Exists {
                subquery,
                negated: false,
            } => into.semi_join(None, subquery, true, only),
            _ => {}
        }
    }

    /// Collects what both branches restrict: a column of a factor, to the values of both.
    fn disjunction(&self, branches: [&Expr; 2], only: Option<usize>, into: &mut Equalities<'_>) {
        let [one, other] = branches.map(|branch| {
            let mut found = Equalities::none(self.scope);
            self.conjunction(branch, only, &mut found);
            found.of_factors
        });
        for (factor, (one, other)) in one.iter().zip(&other).enumerate() {
            for left in one {
                let mut same = other.iter().filter(|right| right.column == left.column);
                if let Some(right) = same.next() {
                    into.add_either(factor, left, right);
                }
            }
        }
    }

    fn equality<'s>(
        &self,
        left: &'s Expr,
        right: &'s Expr,
        only: Option<usize>,
        into: &mut Equalities<'s>,
    ) {
        if let (Some(left), Some(right)) = (self.side(left), self.side(right)) {
            into.equal_columns.push(EqualColumns {
                sides: [left, right],
                only,
            });
        }
        for (column, other) in [(left, right), (right, left)] {
            let Some(column) = self.scope.resolve(column) else {
                continue;
            };
            if let Some(value) = operand(other, self.parameters) {
                into.add(self.scope, column, Values::Given(vec![value]), only);
            }
            if let Expr::Subquery(subquery) = other {
                into.semi_join(Some(column), subquery, false, only);
            }
        }
    }

    fn side(&self, expr: &Expr) -> Option<LevelColumn> {
        match self.scope.resolve(expr) {
            Some(column) => Some(LevelColumn { level: 0, column }),
            None if self.scope.lacks(expr) => (self.find_outside)(expr),
            None => None,
        }
    }

    /// The equalities of a join by USING, whose right side is `factor`.
    fn using(&self, factor: usize, only: Option<usize>, into: &mut Equalities<'_>) {
        for (left, right) in self.scope.merged_columns(factor) {
            let side = |column| LevelColumn { level: 0, column };
            into.equal_columns.push(EqualColumns {
                sides: [side(left), side(right)],
                only,
            });
        }
    }
}

/// A parameter or a constant, without an operator that could give it an affinity or a collation.
pub(super) fn operand(expr: &Expr, parameters: &HashMap<String, usize>) -> Option<Operand> {
    match expr {
        Expr::Nested(inner) => operand(inner, parameters),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match operand(expr, parameters)? {
            Operand::Constant(Value::Integer(integer)) => integer
                .checked_neg()
                .map(|i| Operand::Constant(Value::Integer(i))),
            _ => None,
        },
        Expr::Value(value) => match &value.value {
            Literal::Placeholder(name) => parameters.get(name).copied().map(Operand::Parameter),
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

/// The items of a list, where the subquery gives exactly these. SQLite compares each of them as
/// `column = item` does: its column `value` has no collation and no affinity of its own.
fn items(subquery: &Query, parameters: &HashMap<String, usize>) -> Option<Operand> {
    let text = subquery.to_string();
    let name = text.strip_prefix("SELECT value FROM json_each(")?;
    let name = name.strip_suffix(')')?;
    parameters.get(name).copied().map(Operand::Items)
}

impl<'s> Equalities<'s> {
    fn none(scope: &Scope<'_>) -> Self {
        Self {
            of_factors: scope.factors.iter().map(|_| Vec::new()).collect(),
            equal_columns: Vec::new(),
            semi_joins: Vec::new(),
        }
    }

    fn semi_join(
        &mut self,
        column: Option<FactorColumn>,
        subquery: &'s Query,
        takes_all: bool,
        only: Option<usize>,
    ) {
        self.semi_joins
            .extend(plain_select(subquery).map(|select| SemiJoin {
                column,
                select,
                takes_all,
                only,
            }));
    }

    /// Adds the restriction of a column of this SELECT to values.
    pub(super) fn add(
        &mut self,
        scope: &Scope<'_>,
        column: FactorColumn,
        values: Values,
        only: Option<usize>,
    ) {
        if only.is_none_or(|only| only == column.0)
            && let Some(restriction) = restriction(scope, column, values)
        {
            self.add_new(column.0, restriction);
        }
    }

    /// Adds the restriction of a factor to the rows of one or the other, which restrict the same
    /// column.
    fn add_either(&mut self, factor: usize, one: &Restriction, other: &Restriction) {
        let (Values::Given(left), Values::Given(right)) = (&one.values, &other.values) else {
            return;
        };
        let mut values = left.clone();
        values.extend(right.iter().filter(|value| !left.contains(value)).cloned());
        if values.len() <= MAX_VALUES {
            let values = Values::Given(values);
            self.add_new(
                factor,
                Restriction {
                    values,
                    ..one.clone()
                },
            );
        }
    }

    fn add_new(&mut self, factor: usize, restriction: Restriction) {
        let known = &mut self.of_factors[factor];
        if !known.contains(&restriction) {
            known.push(restriction);
        }
    }

    /// Hands restrictions on along equal columns, behind those that are written down.
    /// `outside` gives those of a column of a SELECT around this one.
    pub(super) fn spread(
        &mut self,
        scope: &Scope<'_>,
        outside: &dyn Fn(LevelColumn) -> Option<(Restriction, Vec<Restriction>)>,
    ) {
        loop {
            let before = self.count();
            for equal in self.equal_columns.clone() {
                for (from, to) in equal.directions() {
                    let source = match from.level {
                        0 => restriction(scope, from.column, Values::Given(Vec::new()))
                            .map(|column| (column, self.of_factors[from.column.0].clone())),
                        _ => outside(from),
                    };
                    if let Some((column, known)) = source {
                        self.hand_on(scope, &column, known, to);
                    }
                }
            }
            if self.count() == before {
                return;
            }
        }
    }

    /// Restricts column `to` by what is `known` of a column that is equal to it. Both must have
    /// the same canonical form of a value.
    fn hand_on(
        &mut self,
        scope: &Scope<'_>,
        column: &Restriction,
        known: Vec<Restriction>,
        to: FactorColumn,
    ) {
        if scope.class(to) != column.class {
            return;
        }
        for known in known {
            let is_by_value = !matches!(known.values, Values::First(_));
            if known.column == column.column && is_by_value {
                self.add(scope, to, known.values, None);
            }
        }
    }

    /// The columns that must be equal to one of the SELECT around this one for every row, each with
    /// that one.
    pub(super) fn outward(&self) -> impl Iterator<Item = (FactorColumn, FactorColumn)> + '_ {
        let everywhere = self
            .equal_columns
            .iter()
            .filter(|equal| equal.only.is_none());
        everywhere.filter_map(|equal| {
            let [left, right] = equal.sides;
            match (left.level, right.level) {
                (0, 1) => Some((left.column, right.column)),
                (1, 0) => Some((right.column, left.column)),
                _ => None,
            }
        })
    }

    fn count(&self) -> usize {
        self.of_factors.iter().map(Vec::len).sum()
    }
}

/// The restriction of a column to values; none if the column's equality has no canonical form.
pub(super) fn restriction(
    scope: &Scope<'_>,
    (factor, found): FactorColumn,
    values: Values,
) -> Option<Restriction> {
    let class = scope.class((factor, found))?;
    let (table_name, column, of_derived) = match (scope.factors[factor].base(), found) {
        (Some((name, table)), _) => (name, table.narrowing(found)?.0, None),
        // Its name is nowhere else than among the restrictions of this factor.
        (None, ResolvedColumn::Column(index)) => ("", index.to_string(), Some(index)),
        (None, ResolvedColumn::Rowid) => return None,
    };
    let name = ColumnHash::new(table_name, &column, Some(class));
    Some(Restriction {
        column,
        class: Some(class),
        name,
        values,
        of_derived,
    })
}

/// The condition of a join.
enum Condition<'s> {
    On(&'s Expr),
    /// By columns of the same name. The index is that of the join's right side.
    Using(usize),
}

/// The conditions of joins that restrict rows: of every factor, or of the given factor only.
fn join_conditions(select: &Select) -> Vec<(Condition<'_>, Option<usize>)> {
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
            let Some((restricted, constraint)) = side(&join.join_operator) else {
                continue;
            };
            let condition = match constraint {
                JoinConstraint::On(on) => Condition::On(on),
                JoinConstraint::Using(_) => Condition::Using(index),
                _ => continue,
            };
            match restricted {
                RestrictedSide::Both if only_left_joins => found.push((condition, None)),
                RestrictedSide::Both => {}
                RestrictedSide::Right => found.push((condition, Some(index))),
            }
        }
        index += 1;
    }
    found
}

/// The sides of a join that its condition restricts.
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
