//! Which columns of its tables a statement reads (coherence.md, rule 22).
//!
//! SQLite's authorizer names the columns. They are all that the result depends on only where no
//! choice is made among rows that are equal in these columns: by LIMIT, by the first row of a
//! subquery, by one row for a group. There a change to any column may lead to another choice, since
//! it may lead to another order of the rows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, Visit, Visitor,
};

use super::common_tables::CommonTables;
use super::derived::merges_columns;
use super::functions;
use super::literals::has_odd_literal;
use super::scope::{base_name, last_part, lower};
use super::walk::walk;
use crate::column_set::ColumnSet;
use crate::sqlite::catalog::{Catalog, TableKind};

/// True if a change to other columns than those that the authorizer names changes no result of
/// `tree`.
pub(super) fn are_all_named(tree: &impl Visit, common: &CommonTables, catalog: &Catalog) -> bool {
    let mut search = ChoiceSearch {
        common,
        catalog,
        views: BTreeSet::new(),
        counts: BTreeSet::new(),
    };
    walk(tree, &mut search).is_continue()
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
    // A column without a name is not told from none.
    let has_unnamed = known.columns.iter().any(|column| column.name.is_empty());
    if !known.can_narrow || has_unnamed || read.len() == known.columns.len() {
        return ColumnSet::All;
    }
    ColumnSet::of(read)
}

/// Breaks where a choice is made among rows, and where a column may be read that the authorizer is
/// not asked for: only what is known passes.
struct ChoiceSearch<'a> {
    common: &'a CommonTables,
    catalog: &'a Catalog,
    /// The views that have been looked at.
    views: BTreeSet<String>,
    /// Each `count(*)` that is alone in its list.
    counts: BTreeSet<*const Expr>,
}

impl Visitor for ChoiceSearch<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let takes_some = query.limit_clause.is_some() || query.fetch.is_some();
        let chooses = takes_some && !self.has_no_ties(query);
        break_if(chooses || !matches!(*query.body, SetExpr::Select(_)))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_grouped = !matches!(
            &select.group_by,
            GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty()
        );
        let counts: Vec<&Expr> = select.projection.iter().filter_map(count).collect();
        if counts.len() == select.projection.len() {
            self.counts
                .extend(counts.into_iter().map(std::ptr::from_ref));
        }
        let chooses = is_grouped
            || select.distinct.is_some()
            || select.having.is_some()
            || !select.named_window.is_empty()
            || merges_columns(select);
        break_if(chooses)
    }

    /// Nothing but tables, views, common table expressions and subqueries.
    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table {
                name, args: None, ..
            } => match base_name(name) {
                Some(name) => self.table(name),
                None => ControlFlow::Break(()),
            },
            TableFactor::Derived { lateral: false, .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let chooses = match expr {
            Expr::Function(function) => {
                let name = last_part(&function.name).unwrap_or_default();
                let is_known = self.counts.contains(&std::ptr::from_ref(expr))
                    || (function.over.is_none() && functions::is_of_one_row(&name));
                !is_known
            }
            // Its first row.
            Expr::Subquery(query) => !gives_one_row(query),
            _ => false,
        };
        break_if(chooses)
    }
}

impl ChoiceSearch<'_> {
    /// True if ORDER BY leaves no two rows of the only table equal: the rowid is in it.
    fn has_no_ties(&self, query: &Query) -> bool {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return false;
        };
        let order = query.order_by.as_ref().map(|order| &order.kind);
        let (Some(OrderByKind::Expressions(terms)), [from]) = (order, select.from.as_slice())
        else {
            return false;
        };
        let TableFactor::Table { name, .. } = &from.relation else {
            return false;
        };
        let is_plain = |name: &String| !self.common.names.contains(name);
        let table = base_name(name)
            .filter(is_plain)
            .and_then(|name| self.catalog.table(&name));
        let Some(rowid) = table.and_then(|table| Some(&table.columns[table.rowid_column?].name))
        else {
            return false;
        };
        let is_rowid = |expr: &Expr| match expr {
            Expr::Identifier(name) => lower(&name.value) == *rowid,
            _ => false,
        };
        // Such a name may mean the result of an expression.
        let is_given = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if lower(&alias.value) == *rowid);
        from.joins.is_empty()
            && !has_odd_literal(select.as_ref())
            && terms.iter().any(|term| is_rowid(&term.expr))
            && !select.projection.iter().any(is_given)
    }

    fn table(&mut self, name: String) -> ControlFlow<()> {
        if self.common.names.contains(&name) {
            return ControlFlow::Continue(());
        }
        let catalog = self.catalog;
        let Some(table) = catalog.table(&name) else {
            return ControlFlow::Break(());
        };
        match (&table.kind, table.query.as_deref()) {
            (TableKind::Table, _) => ControlFlow::Continue(()),
            (TableKind::View, Some(query)) => match self.views.insert(name) {
                true => walk(query, self),
                false => ControlFlow::Continue(()),
            },
            // A full-text table reads its content when it runs.
            _ => ControlFlow::Break(()),
        }
    }
}

fn break_if(chooses: bool) -> ControlFlow<()> {
    match chooses {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The expression of an item that is `count(*)`.
fn count(item: &SelectItem) -> Option<&Expr> {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return None;
    };
    let Expr::Function(function) = expr else {
        return None;
    };
    functions::counts_rows(function).then_some(expr)
}

/// True for a query that counts, whose only row is made of all.
fn gives_one_row(query: &Query) -> bool {
    match query.body.as_ref() {
        SetExpr::Select(select) => select.projection.iter().all(|item| count(item).is_some()),
        _ => false,
    }
}
