//! Literals that SQLite may read otherwise than the parser of our tree.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value as Literal, Visit};

use super::walk::walk_expressions;

/// True if SQLite may read a literal in another way than the tree has it.
/// Counterexamples: `0x01` is a number, and is written as `X'01'`; in `SELECT date 'at'` the text
/// is the name of the column.
pub(super) fn has_odd_literal(tree: &impl Visit) -> bool {
    let is_odd = |expr: &Expr| match expr {
        Expr::Value(value) => !matches!(
            &value.value,
            Literal::Number(_, false)
                | Literal::SingleQuotedString(_)
                | Literal::Placeholder(_)
                | Literal::Null
        ),
        Expr::TypedString(_) | Expr::Interval(_) | Expr::Prefixed { .. } => true,
        _ => false,
    };
    let found = walk_expressions(tree, |expr| match is_odd(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}
