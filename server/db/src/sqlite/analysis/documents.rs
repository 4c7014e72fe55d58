//! Which columns of a result are JSON documents, by the text of the statement.
//!
//! SQLite gives JSON as text. Where a column is a call of a function that makes JSON, the text is
//! read as what it contains, as PostgreSQL gives `json`.

use std::collections::BTreeSet;

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query,
    SelectItem, SetExpr, Statement, Value as Literal,
};

use super::scope::last_part;

/// Functions whose result is JSON, or null.
const MAKES_JSON: [&str; 10] = [
    "json",
    "json_array",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_remove",
    "json_replace",
    "json_set",
];

/// The places of the columns that are documents, of a result with this number of columns.
pub(super) fn documents(tree: Option<&Statement>, columns: usize) -> Box<[usize]> {
    match tree {
        Some(Statement::Query(query)) => of_body(&query.body, columns).into_iter().collect(),
        _ => Box::default(),
    }
}

fn of_body(body: &SetExpr, columns: usize) -> BTreeSet<usize> {
    match body {
        SetExpr::Select(select) => of_items(&select.projection, columns),
        SetExpr::Query(query) => of_body(&query.body, columns),
        SetExpr::SetOperation { left, right, .. } => {
            let right = of_body(right, columns);
            let left = of_body(left, columns).into_iter();
            left.filter(|place| right.contains(place)).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// Columns before the first `*` are counted from the front, those behind the last one from the end.
fn of_items(items: &[SelectItem], columns: usize) -> BTreeSet<usize> {
    let expression = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(is_document(expr))
        }
        _ => None,
    };
    let of_all: Vec<Option<bool>> = items.iter().map(expression).collect();
    let is_known = |found: &&Option<bool>| found.is_some();
    let front = of_all.iter().take_while(is_known).enumerate();
    let front = front.map(|(place, found)| (Some(place), found));
    let back = of_all.iter().rev().take_while(is_known).enumerate();
    let back = back.map(|(place, found)| (columns.checked_sub(place + 1), found));
    front
        .chain(back)
        .filter(|(_, found)| **found == Some(true))
        .filter_map(|(place, _)| place)
        .collect()
}

fn is_document(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_document(inner),
        Expr::Subquery(query) => is_one_document(query),
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::Arrow,
        Expr::Function(function) => match last_part(&function.name).as_deref() {
            Some("coalesce" | "ifnull") => is_first_document(function),
            Some(name) => MAKES_JSON.contains(&name),
            None => false,
        },
        _ => false,
    }
}

fn is_one_document(query: &Query) -> bool {
    match &*query.body {
        SetExpr::Select(select) => of_items(&select.projection, 1).contains(&0),
        _ => false,
    }
}

/// `coalesce(document, '[]')`: some arguments are documents, and the others are texts of JSON.
fn is_first_document(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else {
        return false;
    };
    let mut has_document = false;
    let are_all = list.args.iter().all(|argument| {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else {
            return false;
        };
        let is_document = is_document(expr);
        has_document |= is_document;
        is_document || is_text_of_json(expr)
    });
    are_all && has_document
}

fn is_text_of_json(expr: &Expr) -> bool {
    let Expr::Value(value) = expr else {
        return false;
    };
    match &value.value {
        Literal::Null => true,
        Literal::SingleQuotedString(text) => {
            serde_json::from_str::<serde_json::Value>(text).is_ok()
        }
        _ => false,
    }
}
