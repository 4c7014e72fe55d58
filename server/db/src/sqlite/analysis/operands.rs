//! What a column is compared with.

use std::collections::HashMap;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, UnaryOperator,
    Value as Literal,
};

use crate::Value;
use crate::precision::{Arithmetic, CaseFold, Operand};

/// Returns a parameter or a constant, without an operator that could give it an affinity or a
/// collation. `parameters` maps each parameter's name, as it is written, to its index.
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

/// Returns a number of rows: an operand, or what is computed of such.
pub(super) fn row_count(expr: &Expr, parameters: &HashMap<String, usize>) -> Option<Operand> {
    let count = |expr| row_count(expr, parameters);
    match expr {
        Expr::Nested(inner) => count(inner),
        Expr::BinaryOp { left, op, right } => {
            let by = match op {
                BinaryOperator::Plus => Arithmetic::Plus,
                BinaryOperator::Minus => Arithmetic::Minus,
                BinaryOperator::Multiply => Arithmetic::Times,
                _ => return None,
            };
            Some(Operand::Computed(
                by,
                Box::new([count(left)?, count(right)?]),
            ))
        }
        _ => operand(expr, parameters),
    }
}

/// Returns the items of a list, where the subquery gives exactly these. SQLite compares each of
/// them as `column = item` does: its column `value` has no collation and no affinity of its own.
pub(super) fn items(subquery: &Query, parameters: &HashMap<String, usize>) -> Option<Operand> {
    let text = subquery.to_string();
    let name = text.strip_prefix("SELECT value FROM json_each(")?;
    let name = name.strip_suffix(')')?;
    parameters.get(name).copied().map(Operand::Items)
}

/// Returns `x` of `lower(x)` and `upper(x)`.
pub(super) fn argument_without_case(expr: &Expr) -> Option<(CaseFold, &Expr)> {
    match expr {
        Expr::Nested(inner) => argument_without_case(inner),
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let FunctionArguments::List(list) = &function.args else {
                return None;
            };
            let fold = match name.as_str() {
                "lower" => CaseFold::Lower,
                "upper" => CaseFold::Upper,
                _ => return None,
            };
            match list.args.as_slice() {
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some((fold, argument)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the parts of a chain of AND or OR, in order. A chain may be longer than the stack is
/// deep.
pub(super) fn parts<'e>(expr: &'e Expr, chain: &BinaryOperator) -> Vec<&'e Expr> {
    let mut parts = Vec::new();
    let mut waiting = vec![expr];
    while let Some(next) = waiting.pop() {
        match next {
            Expr::Nested(inner) => waiting.push(inner),
            Expr::BinaryOp { left, op, right } if op == chain => {
                waiting.extend([right.as_ref(), left.as_ref()]);
            }
            _ => parts.push(next),
        }
    }
    parts
}
