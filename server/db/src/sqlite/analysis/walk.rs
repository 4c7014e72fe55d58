//! Walks through syntax trees. `sqlparser` compiles its walk of hundreds of functions again for
//! each type of visitor; here all visitors share one.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectName, OrderBy, OrderByExpr, Query, Select, Statement,
    TableFactor, ValueWithSpan, Visit, Visitor,
};

/// Visits all nodes of a tree, until the visitor breaks.
pub(super) fn walk(tree: &impl Visit, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
    tree.visit(&mut Forward(visitor))
}

/// Calls `each` with all expressions of a tree, the outer ones first, until it breaks.
pub(super) fn walk_expressions(
    tree: &impl Visit,
    each: impl FnMut(&Expr) -> ControlFlow<()>,
) -> ControlFlow<()> {
    walk(tree, &mut Expressions(each))
}

struct Expressions<F>(F);

impl<F: FnMut(&Expr) -> ControlFlow<()>> Visitor for Expressions<F> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0(expr)
    }
}

/// The only type by which trees are visited.
struct Forward<'v>(&'v mut (dyn Visitor<Break = ()> + 'v));

macro_rules! forward {
    ($($before:ident $after:ident $node:ty;)*) => {
        impl Visitor for Forward<'_> {
            type Break = ();

            $(
                fn $before(&mut self, node: &$node) -> ControlFlow<()> {
                    self.0.$before(node)
                }

                fn $after(&mut self, node: &$node) -> ControlFlow<()> {
                    self.0.$after(node)
                }
            )*
        }
    };
}

forward! {
    pre_visit_query post_visit_query Query;
    pre_visit_select post_visit_select Select;
    pre_visit_relation post_visit_relation ObjectName;
    pre_visit_table_factor post_visit_table_factor TableFactor;
    pre_visit_expr post_visit_expr Expr;
    pre_visit_statement post_visit_statement Statement;
    pre_visit_value post_visit_value ValueWithSpan;
    pre_visit_ident post_visit_ident Ident;
    pre_visit_order_by post_visit_order_by OrderBy;
    pre_visit_order_by_expr post_visit_order_by_expr OrderByExpr;
    pre_visit_group_by post_visit_group_by GroupByExpr;
}
