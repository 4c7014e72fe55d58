//! Which columns of its tables a statement reads (coherence.md, rule 22).
//!
//! SQLite's authorizer names the columns. They are all that the result depends on only where no
//! choice is made among rows that are equal in these columns: by LIMIT, by the first row of a
//! subquery, by one row for a group. There a change to any column may lead to another choice, since
//! it may lead to another order of the rows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Visit,
    Visitor,
};

use super::functions;
use super::scope::last_part;
use crate::sqlite::catalog::Catalog;
use crate::sqlite::tags::ColumnSet;

/// True if a change to other columns than those that the authorizer names changes no result of
/// `tree`. `views` are the views that the statement reads.
pub(super) fn are_all_named<'v>(
    tree: &impl Visit,
    views: impl Iterator<Item = &'v str>,
    catalog: &Catalog,
) -> bool {
    let mut views = views;
    !chooses(tree)
        && views.all(|view| {
            let query = catalog.table(view).and_then(|view| view.query.as_deref());
            query.is_some_and(|query| !chooses(query))
        })
}

fn chooses(tree: &impl Visit) -> bool {
    tree.visit(&mut ChoiceSearch).is_break()
}

/// The columns of a table that a statement reads; all, if that is not known.
pub(super) fn of_table(
    table: &str,
    columns: Option<&BTreeSet<String>>,
    are_all_named: bool,
    catalog: &Catalog,
) -> ColumnSet {
    let Some(known) = catalog.table(table).filter(|_| are_all_named) else {
        return ColumnSet::All;
    };
    let rowid = known
        .rowid_column
        .map(|index| known.columns[index].name.clone());
    let Some(columns) = columns else {
        return ColumnSet::All;
    };
    let mut read = BTreeSet::new();
    for column in columns {
        // `count(*)` reads no column.
        if column.is_empty() {
            continue;
        }
        let is_column = known.columns.iter().any(|known| known.name == *column);
        match (is_column, &rowid) {
            (true, _) => read.insert(column.clone()),
            (false, Some(rowid)) if column == "rowid" => read.insert(rowid.clone()),
            // A rowid is no column: its change counts as one of the whole row.
            (false, None) if column == "rowid" => false,
            _ => return ColumnSet::All,
        };
    }
    if !known.can_narrow || read.len() == known.columns.len() {
        return ColumnSet::All;
    }
    ColumnSet::Some(read.into_iter().collect::<Vec<_>>().into())
}

/// Breaks where a choice is made among rows.
struct ChoiceSearch;

impl Visitor for ChoiceSearch {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let chooses = query.limit_clause.is_some()
            || query.fetch.is_some()
            || !matches!(*query.body, SetExpr::Select(_));
        break_if(chooses)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_grouped = !matches!(
            &select.group_by,
            GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty()
        );
        let counts = select
            .projection
            .iter()
            .filter(|item| is_count(item))
            .count();
        let chooses = is_grouped
            || select.distinct.is_some()
            || select.having.is_some()
            || !select.named_window.is_empty()
            || (counts > 0 && counts < select.projection.len())
            || has_unnamed_columns(select);
        break_if(chooses)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let chooses = match expr {
            Expr::Function(function) => {
                let name = last_part(&function.name).unwrap_or_default();
                function.over.is_some() || !(name == "count" || functions::is_of_one_row(&name))
            }
            // Its first row.
            Expr::Subquery(query) => !gives_one_row(query),
            _ => false,
        };
        break_if(chooses)
    }
}

fn break_if(chooses: bool) -> ControlFlow<()> {
    match chooses {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// True for an item that is `count(…)`.
fn is_count(item: &SelectItem) -> bool {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return false;
    };
    matches!(expr, Expr::Function(function)
        if last_part(&function.name).as_deref() == Some("count"))
}

/// True for a query that counts, whose only row is made of all.
fn gives_one_row(query: &Query) -> bool {
    match query.body.as_ref() {
        SetExpr::Select(select) => select.projection.iter().all(is_count),
        _ => false,
    }
}

/// True if a join compares columns that the authorizer is not asked for.
fn has_unnamed_columns(select: &Select) -> bool {
    let joins = select.from.iter().flat_map(|tables| &tables.joins);
    joins.into_iter().any(|join| match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => {
            !matches!(constraint, JoinConstraint::On(_) | JoinConstraint::None)
        }
        _ => true,
    })
}
