//! The first rows of an order (coherence.md, rule 23): `ORDER BY c LIMIT n` of the outermost query.
//!
//! Only those rows of the table with `c` count whose `c` is not behind that of the last row, the
//! `n`th. The last row of the result says it, if `c` is one of its columns; if not, a query of ours
//! asks for it in the snapshot of the read.

use std::borrow::Cow;

use sqlparser::ast::{
    Expr, JoinOperator, LimitClause, OrderByExpr, OrderByKind, OrderBySort, Query, Select,
    SelectItem, SetExpr, Statement,
};

use super::derived::{SelectId, gives_a_row_each, merges_columns};
use super::literals::has_odd_literal;
use super::scope::{FactorColumn, Scope, lower, parse};
use super::witness::RunWitness;
use crate::Value;
use crate::precision::{Operand, ValueClass};
use crate::sqlite::catalog::ResolvedColumn;

/// The query whose first rows are taken.
pub(super) struct OrderedQuery<'q> {
    select: &'q Select,
    order: &'q [OrderByExpr],
    limit: Operand,
    offset: Option<Operand>,
}

impl<'q> OrderedQuery<'q> {
    /// Of the outermost query of a statement. `operand` gives the value of an expression.
    pub(super) fn of(query: &'q Query, operand: &dyn Fn(&Expr) -> Option<Operand>) -> Option<Self> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let OrderByKind::Expressions(order) = &query.order_by.as_ref()?.kind else {
            return None;
        };
        let (limit, offset) = match query.limit_clause.as_ref()? {
            LimitClause::LimitOffset {
                limit: Some(limit),
                offset,
                limit_by,
            } if limit_by.is_empty() => (limit, offset.as_ref().map(|offset| &offset.value)),
            LimitClause::OffsetCommaLimit { offset, limit } => (limit, Some(offset)),
            LimitClause::LimitOffset { .. } => return None,
        };
        let offset = match offset {
            Some(offset) => Some(operand(offset)?),
            None => None,
        };
        let is_plain = query.with.is_none() && query.fetch.is_none() && select.distinct.is_none();
        is_plain.then_some(Self {
            select,
            order,
            limit: operand(limit)?,
            offset,
        })
    }

    pub(super) fn is_of(&self, select: &Select) -> bool {
        SelectId::of(self.select) == SelectId::of(select)
    }

    /// The column by which the rows are ordered first, and where its value in the last row is
    /// found. `prepare` gives the parameters of a query that sorts nothing.
    pub(super) fn first_rows(
        &self,
        scope: &Scope<'_>,
        prepare: &dyn Fn(&str) -> Option<Vec<Operand>>,
    ) -> Option<(FactorColumn, FirstRows)> {
        let first = self.order.first()?;
        let order = self.order.iter().map(|order| &order.expr);
        let is_plain = gives_a_row_each(self.select, order, scope) && !merges_columns(self.select);
        if !is_plain || has_odd_literal(self.select) {
            return None;
        }
        let key = self.expression(&first.expr)?;
        let (factor, found) = scope.resolve(key)?;
        let (table, source) = scope.factors[factor].base()?;
        let column = source.ordering(found)?;
        let is_descending = match (&first.options.sort, first.options.nulls_first) {
            (None | Some(OrderBySort::Asc), None | Some(true)) => false,
            (Some(OrderBySort::Desc), None | Some(false)) => true,
            _ => return None,
        };
        if !is_in_every_row(self.select, factor) {
            return None;
        }
        let last = match self.output(scope, (factor, found)) {
            Some(index) => LastRow::OfResult(index),
            None => {
                let sql = self.sql(key)?;
                let params = prepare(&sql)?;
                LastRow::OfQuery { sql, params }
            }
        };
        let rows = FirstRows {
            table: table.to_owned(),
            column,
            class: source.narrowing(found).map(|(_, class)| class),
            has_nulls: !source.is_never_null(found),
            is_descending,
            limit: self.limit.clone(),
            offset: self.offset.clone(),
            last,
        };
        Some(((factor, found), rows))
    }

    /// Returns the meaning of a term of ORDER BY: the name of a result column comes first, and `*`
    /// may give another one of the name.
    fn expression<'e>(&'e self, term: &'e Expr) -> Option<&'e Expr> {
        let name = match term {
            Expr::Nested(inner) => return self.expression(inner),
            Expr::Identifier(name) => name,
            _ => return Some(term),
        };
        let wanted = lower(&name.value);
        let items = &self.select.projection;
        let named = items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if lower(&alias.value) == wanted => {
                Some(expr)
            }
            _ => None,
        });
        let is_plain = |item: &SelectItem| {
            matches!(
                item,
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
            )
        };
        match named {
            Some(named) => items.iter().all(is_plain).then_some(named),
            None => Some(term),
        }
    }

    /// The column of the result that is this column, if it is certain.
    fn output(&self, scope: &Scope<'_>, column: FactorColumn) -> Option<usize> {
        if let ([SelectItem::Wildcard(_)], [_], (_, ResolvedColumn::Column(index))) = (
            self.select.projection.as_slice(),
            scope.factors.as_slice(),
            column,
        ) {
            return Some(index);
        }
        let items = self.select.projection.iter();
        let exprs: Option<Vec<&Expr>> = items
            .map(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    Some(expr)
                }
                _ => None,
            })
            .collect();
        let mut exprs = exprs?.into_iter();
        exprs.position(|expr| scope.resolve(expr) == Some(column))
    }

    /// The query for the value of the last row, whose last parameter is the number of rows before
    /// it. It has the columns of the statement too, whose names may be used in its conditions.
    fn sql(&self, key: &Expr) -> Option<String> {
        let mut select = self.select.clone();
        select
            .projection
            .insert(0, SelectItem::UnnamedExpr(key.clone()));
        let order = self.order.first()?;
        let sql = format!("{select} ORDER BY {order} LIMIT 1 OFFSET ?");
        // The text must say what the tree says.
        let Statement::Query(query) = parse(&sql)? else {
            return None;
        };
        let SetExpr::Select(read) = query.body.as_ref() else {
            return None;
        };
        let OrderByKind::Expressions(read_order) = &query.order_by.as_ref()?.kind else {
            return None;
        };
        let is_same = **read == select && read_order.as_slice() == std::slice::from_ref(order);
        is_same.then_some(sql)
    }
}

/// True if each row has one of this factor: no outer join fills it with nulls.
fn is_in_every_row(select: &Select, factor: usize) -> bool {
    let mut index = 0;
    for tables in &select.from {
        for join in &tables.joins {
            index += 1;
            match &join.join_operator {
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => {}
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) if index != factor => {}
                _ => return false,
            }
        }
        index += 1;
    }
    true
}

/// The first rows by a column.
#[derive(Debug, PartialEq)]
pub(crate) struct FirstRows {
    /// Lower-case.
    pub(crate) table: String,
    /// Lower-case.
    pub(crate) column: String,
    class: Option<ValueClass>,
    has_nulls: bool,
    pub(crate) is_descending: bool,
    pub(crate) limit: Operand,
    pub(crate) offset: Option<Operand>,
    last: LastRow,
}

/// Place at which the value of the last row is found.
#[derive(Debug, PartialEq)]
enum LastRow {
    /// In this column of the result, from 0.
    OfResult(usize),
    /// By a query, with the values of all its parameters but the last.
    OfQuery { sql: String, params: Vec<Operand> },
}

impl FirstRows {
    /// The value of the last row in an execution with `params`, which has given these `rows`; none
    /// if no row is certainly the last. `run` runs a query of ours.
    pub(super) fn last(
        &self,
        params: &[Value],
        rows: &[Vec<Value>],
        run: &mut RunWitness<'_>,
    ) -> Option<Value> {
        let limit = self.limit.integer(params).filter(|limit| *limit > 0)?;
        let is_full = usize::try_from(limit) == Ok(rows.len());
        let rows = rows.last().filter(|_| is_full)?;
        let last = match &self.last {
            LastRow::OfResult(index) => rows.get(*index).cloned()?,
            LastRow::OfQuery { sql, params: names } => {
                let offset = match &self.offset {
                    Some(offset) => offset.integer(params)?.max(0),
                    None => 0,
                };
                let before = offset.checked_add(limit - 1)?;
                let given = names
                    .iter()
                    .map(|name| name.value(params).map(Cow::into_owned));
                let given = given.chain([Some(Value::Integer(before))]);
                let found = run(sql, &given.collect::<Option<Vec<_>>>()?)?;
                found.into_iter().next()?
            }
        };
        self.compares(&last).then_some(last)
    }

    /// True if a value of the column is compared with others of its kind by `>=` as it is ordered:
    /// SQLite converts neither.
    fn compares(&self, last: &Value) -> bool {
        match (last, self.class) {
            (Value::Integer(_) | Value::Real(_), None | Some(ValueClass::Integer)) => true,
            (Value::Text(text), class) => {
                // Bytes that are no UTF-8 may have been replaced.
                let is_exact = !text.contains(char::REPLACEMENT_CHARACTER);
                let may_be_number = || text.trim().parse::<f64>().is_ok();
                is_exact && (class == Some(ValueClass::Text) || !may_be_number())
            }
            _ => false,
        }
    }

    /// The condition of a row on the column, with one parameter, the value of the last row.
    pub(super) fn condition(&self, column: &str) -> String {
        match self.is_descending {
            true => format!("{column} >= ?"),
            // The other condition would not be found by the rowid, nor by an index where there are
            // no nulls.
            false if !self.has_nulls => format!("{column} <= ?"),
            false => format!("({column} <= ? OR {column} IS NULL)"),
        }
    }
}
