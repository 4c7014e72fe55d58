//! The kind of value of each parameter, from the columns that it is compared with or stored in.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Expr, FromTable, LimitClause, ObjectName, Query,
    Select, SetExpr, Statement, TableObject, Value as Literal, Visit, Visitor,
};

use super::common_tables::CommonTables;
use super::scope::{Factor, Scope, Sources, last_part};
use crate::ValueKind;
use crate::sqlite::catalog::Catalog;

/// The kind of each parameter, by its index; `None` if no kind or more than one kind is required.
pub(crate) fn parameter_kinds(
    tree: &Statement,
    catalog: &Catalog,
    parameters: &HashMap<String, usize>,
    count: usize,
) -> Vec<Option<ValueKind>> {
    let mut finder = KindFinder {
        catalog,
        parameters,
        common: CommonTables::of(tree, catalog),
        scopes: Vec::new(),
        inferred: vec![InferredKind::Unknown; count],
    };
    let _ = tree.visit(&mut finder);
    finder
        .inferred
        .into_iter()
        .map(|inferred| {
            if let InferredKind::One(kind) = inferred {
                Some(kind)
            } else {
                None
            }
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InferredKind {
    Unknown,
    One(ValueKind),
    Conflicting,
}

struct KindFinder<'a> {
    catalog: &'a Catalog,
    parameters: &'a HashMap<String, usize>,
    common: CommonTables,
    /// The innermost scope is the last.
    scopes: Vec<Scope<'a>>,
    inferred: Vec<InferredKind>,
}

impl Visitor for KindFinder<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                for expr in limit
                    .iter()
                    .chain(offset.as_ref().map(|offset| &offset.value))
                {
                    self.infer_whole(expr);
                }
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                self.infer_whole(offset);
                self.infer_whole(limit);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.scopes.push(Scope::of(select, self.sources()));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        self.statement(statement);
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        if matches!(
            statement,
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
        ) {
            self.scopes.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.expr(expr);
        ControlFlow::Continue(())
    }
}

impl<'a> KindFinder<'a> {
    const fn sources(&self) -> Sources<'a, '_> {
        Sources {
            catalog: self.catalog,
            common: &self.common,
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let catalog = self.catalog;
        match statement {
            Statement::Insert(insert) => {
                let TableObject::TableName(name) = &insert.table else {
                    self.scopes.push(Scope::without_joins(Vec::new()));
                    return;
                };
                self.scopes.push(Scope::without_joins(vec![Factor::named(
                    name, None, catalog,
                )]));
                if let Some(SetExpr::Values(values)) =
                    insert.source.as_ref().map(|source| source.body.as_ref())
                {
                    for row in &values.rows {
                        for (index, value) in row.content.iter().enumerate() {
                            let column = insert.columns.get(index).and_then(last_part);
                            self.infer_for_column(name, column.as_deref(), index, value);
                        }
                    }
                }
                self.assignments(&insert.assignments);
                // `ON CONFLICT DO UPDATE SET column = :parameter`
                if let Some(sqlparser::ast::OnInsert::OnConflict(conflict)) = &insert.on
                    && let sqlparser::ast::OnConflictAction::DoUpdate(update) = &conflict.action
                {
                    self.assignments(&update.assignments);
                }
            }
            Statement::Update(update) => {
                let from = std::slice::from_ref(&update.table);
                self.scopes.push(Scope::from(from, self.sources()));
                self.assignments(&update.assignments);
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                self.scopes.push(Scope::from(from, self.sources()));
            }
            _ => {}
        }
    }

    fn infer_for_column(
        &mut self,
        table: &ObjectName,
        column: Option<&str>,
        index: usize,
        value: &Expr,
    ) {
        let Some((_, table)) = Factor::named(table, None, self.catalog).base() else {
            return;
        };
        let kind = match column {
            Some(column) => table.column(column).and_then(|found| table.kind_of(found)),
            None => table.columns.get(index).and_then(|column| column.kind),
        };
        self.infer(value, kind);
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            let AssignmentTarget::ColumnName(name) = &assignment.target else {
                continue;
            };
            let Some(ident) = name.0.last().and_then(|part| part.as_ident()) else {
                continue;
            };
            let column = Expr::Identifier(ident.clone());
            self.compare(&column, &assignment.value);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        use BinaryOperator as B;
        match expr {
            Expr::BinaryOp {
                left,
                op: B::Eq | B::NotEq | B::Lt | B::LtEq | B::Gt | B::GtEq,
                right,
            } => {
                self.compare(left, right);
                self.compare(right, left);
            }
            Expr::BinaryOp {
                op: B::Match | B::Glob,
                right: pattern,
                ..
            }
            | Expr::Like { pattern, .. } => self.infer(pattern, Some(ValueKind::Text)),
            Expr::InList { expr, list, .. } => {
                for value in list {
                    self.compare(expr, value);
                }
            }
            Expr::Between {
                expr, low, high, ..
            } => {
                self.compare(expr, low);
                self.compare(expr, high);
            }
            _ => {}
        }
    }

    /// `value` is compared with, or stored in, `column`.
    fn compare(&mut self, column: &Expr, value: &Expr) {
        // Uses the innermost SELECT that has such a column; without one, no kind is inferred.
        let found = self.scopes.iter().rev().find_map(|scope| {
            let (factor, found) = scope.resolve(column)?;
            scope.factors[factor]
                .base()
                .map(|(_, table)| table.kind_of(found))
        });
        if let Some(kind) = found {
            self.infer(value, kind);
        }
    }

    /// The parameters of a number of rows are whole numbers, as in `(:page - 1) * 20`.
    fn infer_whole(&mut self, number: &Expr) {
        use BinaryOperator as B;
        match number {
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => self.infer_whole(inner),
            Expr::BinaryOp {
                left,
                op: B::Plus | B::Minus | B::Multiply | B::Divide | B::Modulo,
                right,
            } => {
                self.infer_whole(left);
                self.infer_whole(right);
            }
            value => self.infer(value, Some(ValueKind::Integer)),
        }
    }

    fn infer(&mut self, value: &Expr, kind: Option<ValueKind>) {
        let index = match value {
            Expr::Nested(inner) => return self.infer(inner, kind),
            Expr::Value(value) => match &value.value {
                Literal::Placeholder(name) => self.parameters.get(name),
                _ => None,
            },
            _ => None,
        };
        let Some(inferred) = index.and_then(|index| self.inferred.get_mut(*index)) else {
            return;
        };
        *inferred = match (*inferred, kind) {
            (InferredKind::Unknown, Some(kind)) => InferredKind::One(kind),
            (InferredKind::One(one), Some(kind)) if one == kind => InferredKind::One(one),
            // A column that accepts any value requires no kind.
            (_, None) | (InferredKind::Conflicting | InferredKind::One(_), Some(_)) => {
                InferredKind::Conflicting
            }
        };
    }
}
