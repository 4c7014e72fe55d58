//! The kind of value of each parameter, from the columns that it is compared with or stored in.
//! Where it is a part of an expression only, the kind comes from a column of the same name there,
//! as in `lower(title) = lower(:title)`, and from functions of texts.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Expr, FromTable, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, LimitClause, ObjectName, Query, Select, SetExpr, Statement,
    TableObject, Value as Literal, Visitor,
};

use super::common_tables::CommonTables;
use super::scope::{Factor, Scope, Sources, last_part, lower};
use super::walk::{walk, walk_expressions};
use crate::ValueKind;
use crate::sqlite::catalog::{Catalog, ResolvedColumn};

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
        hinted: vec![InferredKind::Unknown; count],
    };
    let _ = walk(tree, &mut finder);
    let all = finder.inferred.into_iter().zip(finder.hinted);
    all.map(|(inferred, hinted)| match (inferred, hinted) {
        (InferredKind::One(kind), _) | (InferredKind::Unknown, InferredKind::One(kind)) => {
            Some(kind)
        }
        _ => None,
    })
    .collect()
}

/// Functions whose arguments are texts.
const OF_TEXTS: &[&str] = &["lower", "upper", "trim", "ltrim", "rtrim", "replace"];

/// Functions that give one of their arguments.
const OF_ARGUMENTS: &[&str] = &["min", "max", "coalesce", "ifnull"];

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
    /// Kinds that expressions around the parameters suggest, where nothing is inferred.
    hinted: Vec<InferredKind>,
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
        let found = match column {
            Some(column) => table.column(column),
            None => (index < table.columns.len()).then_some(ResolvedColumn::Column(index)),
        };
        self.infer(value, found.and_then(|found| table.kind_of(found)));
        if let Some(ResolvedColumn::Column(index)) = found {
            let column = &table.columns[index];
            for placeholder in placeholders(value) {
                if named(&placeholder) == column.name {
                    self.hint(&placeholder, column.kind);
                }
            }
        }
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
            self.hint_by_name(&column, &assignment.value);
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
                self.hint_by_name(left, right);
            }
            Expr::BinaryOp {
                left,
                op: B::StringConcat,
                right,
            } => {
                self.hint(left, Some(ValueKind::Text));
                self.hint(right, Some(ValueKind::Text));
            }
            Expr::Function(function) if is_one_of(function, OF_TEXTS) => {
                arguments(function).for_each(|value| self.hint(value, Some(ValueKind::Text)));
            }
            Expr::Trim { expr, .. } => self.hint(expr, Some(ValueKind::Text)),
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
        if let Some(kind) = self.kind_of(column) {
            self.infer(value, kind);
        }
    }

    /// The kind of a column. Outer None: no SELECT is known to have such a column.
    fn kind_of(&self, column: &Expr) -> Option<Option<ValueKind>> {
        // The innermost SELECT that has such a column.
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| Some(scope.kind(scope.resolve(column)?)))
    }

    /// Takes the kinds of columns in two expressions for the parameters of the same names there.
    fn hint_by_name(&mut self, left: &Expr, right: &Expr) {
        let found: Vec<Expr> = [left, right].into_iter().flat_map(placeholders).collect();
        if found.is_empty() {
            return;
        }
        let mut columns = Vec::new();
        for side in [left, right] {
            let _ = walk_expressions(side, |expr| {
                if let Some(name) = name_of_column(expr) {
                    columns.push((name, self.kind_of(expr).flatten()));
                }
                ControlFlow::Continue(())
            });
        }
        for placeholder in found {
            let name = named(&placeholder);
            let mut columns = columns.iter();
            if let Some((_, kind)) = columns.find(|(column, _)| *column == name) {
                self.hint(&placeholder, *kind);
            }
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
            Expr::Function(function) if is_one_of(function, OF_ARGUMENTS) => {
                arguments(function).for_each(|value| self.infer_whole(value));
            }
            value => self.infer(value, Some(ValueKind::Integer)),
        }
    }

    fn infer(&mut self, value: &Expr, kind: Option<ValueKind>) {
        let index = self.parameter(value);
        if let Some(inferred) = index.and_then(|index| self.inferred.get_mut(index)) {
            inferred.add(kind);
        }
    }

    fn hint(&mut self, value: &Expr, kind: Option<ValueKind>) {
        let index = self.parameter(value);
        if let Some(hinted) = index.and_then(|index| self.hinted.get_mut(index)) {
            hinted.add(kind);
        }
    }

    /// The index of the parameter that an expression is.
    fn parameter(&self, value: &Expr) -> Option<usize> {
        match value {
            Expr::Nested(inner) => self.parameter(inner),
            _ => self.parameters.get(placeholder(value)?).copied(),
        }
    }
}

impl InferredKind {
    fn add(&mut self, kind: Option<ValueKind>) {
        *self = match (*self, kind) {
            (Self::Unknown, Some(kind)) => Self::One(kind),
            (Self::One(one), Some(kind)) if one == kind => Self::One(one),
            // A column that accepts any value requires no kind.
            (_, None) | (Self::Conflicting | Self::One(_), Some(_)) => Self::Conflicting,
        };
    }
}

/// The placeholder that an expression is, as it is written: `:id`.
fn placeholder(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Placeholder(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a placeholder, as a column would have it.
fn named(expr: &Expr) -> String {
    lower(
        placeholder(expr)
            .unwrap_or_default()
            .trim_start_matches(':'),
    )
}

/// Copies of all placeholders in an expression.
fn placeholders(expr: &Expr) -> Vec<Expr> {
    let mut found = Vec::new();
    let _ = walk_expressions(expr, |part| {
        if placeholder(part).is_some() {
            found.push(part.clone());
        }
        ControlFlow::Continue(())
    });
    found
}

/// The name of the column that an expression is.
fn name_of_column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(column) => Some(lower(&column.value)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| lower(&part.value)),
        _ => None,
    }
}

fn is_one_of(function: &Function, names: &[&str]) -> bool {
    let name = last_part(&function.name);
    name.is_some_and(|name| names.contains(&name.as_str()))
}

/// The arguments of a function that are expressions.
fn arguments(function: &Function) -> impl Iterator<Item = &Expr> {
    let list = match &function.args {
        FunctionArguments::List(list) => &list.args[..],
        _ => &[],
    };
    list.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}
