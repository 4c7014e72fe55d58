//! Values that are the same at each render of a page: those that are written out, and the names
//! that are set to them.

use minijinja::{
    Value,
    machinery::ast::{BinOp, BinOpKind, CallArg, Expr, Filter, Test, UnaryOpKind},
};

use super::{
    facts::path,
    shape::{Known, Shape},
    walk::Walk,
};

/// How many parts of an expression may lie in each other. A value that is put together of more
/// counts as unknown.
const DEPTH: usize = 12;

impl Walk<'_> {
    /// The value of an expression, if each render of the page gives it here.
    pub(super) fn constant(&self, expr: &Expr<'_>) -> Option<Value> {
        self.constant_within(expr, DEPTH)
    }

    fn constant_within(&self, expr: &Expr<'_>, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match expr {
            Expr::Const(constant) => Some(constant.value.clone()),
            Expr::Var(_) | Expr::GetAttr(_) => {
                let known = self.facts.settle(path(expr).as_deref(), self.known(expr)?);
                value_of(&known)
            }
            Expr::UnaryOp(op) if matches!(op.op, UnaryOpKind::Not) => {
                let value = self.constant_within(&op.expr, depth)?;
                Some(Value::from(!value.is_true()))
            }
            Expr::BinOp(op) => self.constant_of_two(op, depth),
            Expr::IfExpr(choice) => {
                let is_true = self.constant_within(&choice.test_expr, depth)?.is_true();
                match (is_true, &choice.false_expr) {
                    (true, _) => self.constant_within(&choice.true_expr, depth),
                    (false, Some(other)) => self.constant_within(other, depth),
                    (false, None) => None,
                }
            }
            Expr::Filter(filter) => self.constant_default(filter, depth),
            Expr::Test(test) => self.constant_defined(test),
            _ => None,
        }
    }

    /// Returns the meaning of a name, or of a member of a map that is written out.
    fn known(&self, expr: &Expr<'_>) -> Option<Known> {
        match expr {
            Expr::Var(var) => self.scope.find(var.id),
            Expr::GetAttr(attr) => match self.known(&attr.expr)? {
                Known {
                    shape: Shape::Members(members),
                    lack: None,
                } => members.fields.get(attr.name).cloned(),
                _ => None,
            },
            _ => None,
        }
    }

    fn constant_of_two(&self, op: &BinOp<'_>, depth: usize) -> Option<Value> {
        let left = self.constant_within(&op.left, depth);
        let right = || self.constant_within(&op.right, depth);
        match op.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => {
                let left = left?;
                let is_decided = left.is_true() != matches!(op.op, BinOpKind::ScAnd);
                if is_decided { Some(left) } else { right() }
            }
            BinOpKind::Eq => Some(Value::from(left? == right()?)),
            BinOpKind::Ne => Some(Value::from(left? != right()?)),
            BinOpKind::In => {
                let left = left?;
                let items = match &op.right {
                    Expr::List(list) => &list.items,
                    Expr::Tuple(tuple) => &tuple.items,
                    _ => return None,
                };
                let items = items.iter().map(|item| self.constant_within(item, depth));
                let items: Vec<Value> = items.collect::<Option<_>>()?;
                Some(Value::from(items.contains(&left)))
            }
            _ => None,
        }
    }

    /// `menu is defined`, where the page gives `menu` for certain, or nothing gives it.
    fn constant_defined(&self, test: &Test<'_>) -> Option<Value> {
        let wanted = match test.name {
            "defined" => true,
            "undefined" => false,
            _ => return None,
        };
        let Expr::Var(var) = &test.expr else {
            return None;
        };
        let is_defined = match self.scope.find(var.id) {
            // What stands below in a loop or beside a macro may set the name before this is asked
            // again.
            None if self.scope.may_be_set_later() => return None,
            None => false,
            Some(known) if known.is_undefined() => false,
            Some(known) if known.lack.is_none() && !matches!(known.shape, Shape::Any) => true,
            Some(_) => return None,
        };
        Some(Value::from(is_defined == wanted))
    }

    /// `menu | default(false)`, where the page sets `menu` or nothing gives it.
    fn constant_default(&self, filter: &Filter<'_>, depth: usize) -> Option<Value> {
        let ("default" | "d", Some(base)) = (filter.name, &filter.expr) else {
            return None;
        };
        let is_missing = match base {
            Expr::Var(var) => self.scope.find(var.id).is_none_or(|it| it.is_undefined()),
            _ => false,
        };
        match &filter.args[..] {
            [] if is_missing => Some(Value::from("")),
            [CallArg::Pos(other)] if is_missing => self.constant_within(other, depth),
            [] | [CallArg::Pos(_)] => self.constant_within(base, depth),
            _ => None,
        }
    }
}

/// The value that a name stands for.
fn value_of(known: &Known) -> Option<Value> {
    match (&known.shape, &known.lack) {
        (Shape::Constant(value), None) => Some(value.clone()),
        (Shape::None, None) => Some(Value::from(())),
        _ => None,
    }
}

impl Known {
    /// The value as one that another render may give otherwise.
    pub(super) fn generalized(self) -> Self {
        Self {
            shape: self.shape.generalized(),
            ..self
        }
    }
}
