//! Visits of a template's syntax tree that need not know any values.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{Call, CallArg, Expr, Macro, Stmt};

use super::facts::argument;

/// The text that an expression is, if it is written out.
pub(super) fn constant_text<'e>(expr: &'e Expr<'_>) -> Option<&'e str> {
    match expr {
        Expr::Const(constant) => constant.value.as_str(),
        _ => None,
    }
}

/// Calls `see` for an expression and each part of it.
pub(super) fn visit_expr<'e>(expr: &'e Expr<'e>, see: &mut impl FnMut(&'e Expr<'e>)) {
    see(expr);
    match expr {
        Expr::Var(_) | Expr::Const(_) => {}
        Expr::Slice(slice) => {
            visit_expr(&slice.expr, see);
            let bounds = [&slice.start, &slice.stop, &slice.step];
            bounds
                .into_iter()
                .flatten()
                .for_each(|part| visit_expr(part, see));
        }
        Expr::UnaryOp(op) => visit_expr(&op.expr, see),
        Expr::BinOp(op) => {
            visit_expr(&op.left, see);
            visit_expr(&op.right, see);
        }
        Expr::Compare(compare) => {
            visit_expr(&compare.expr, see);
            compare.ops.iter().for_each(|op| visit_expr(&op.expr, see));
        }
        Expr::IfExpr(choice) => {
            visit_expr(&choice.test_expr, see);
            visit_expr(&choice.true_expr, see);
            choice.false_expr.iter().for_each(|e| visit_expr(e, see));
        }
        Expr::Filter(filter) => {
            filter.expr.iter().for_each(|e| visit_expr(e, see));
            visit_arguments(&filter.args, see);
        }
        Expr::Test(test) => {
            visit_expr(&test.expr, see);
            visit_arguments(&test.args, see);
        }
        Expr::GetAttr(attr) => visit_expr(&attr.expr, see),
        Expr::GetItem(item) => {
            visit_expr(&item.expr, see);
            visit_expr(&item.subscript_expr, see);
        }
        Expr::Call(call) => visit_call(call, see),
        Expr::List(list) => list.items.iter().for_each(|item| visit_expr(item, see)),
        Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| visit_expr(item, see)),
        Expr::Map(map) => {
            let parts = map.keys.iter().chain(&map.values);
            parts.for_each(|part| visit_expr(part, see));
        }
    }
}

fn visit_call<'e>(call: &'e Call<'e>, see: &mut impl FnMut(&'e Expr<'e>)) {
    visit_expr(&call.expr, see);
    visit_arguments(&call.args, see);
}

fn visit_arguments<'e>(arguments: &'e [CallArg<'e>], see: &mut impl FnMut(&'e Expr<'e>)) {
    for part in arguments {
        visit_expr(argument(part), see);
    }
}

/// Calls `see` for each expression in some statements, with all their parts.
pub(super) fn visit_stmts<'e>(stmts: &'e [Stmt<'e>], see: &mut impl FnMut(&'e Expr<'e>)) {
    stmts.iter().for_each(|stmt| visit_stmt(stmt, see));
}

pub(super) fn visit_stmt<'e>(stmt: &'e Stmt<'e>, see: &mut impl FnMut(&'e Expr<'e>)) {
    match stmt {
        Stmt::Template(template) => visit_stmts(&template.children, see),
        Stmt::EmitExpr(emit) => visit_expr(&emit.expr, see),
        Stmt::EmitRaw(_) => {}
        Stmt::ForLoop(each) => {
            visit_expr(&each.iter, see);
            each.filter_expr.iter().for_each(|e| visit_expr(e, see));
            visit_stmts(&each.body, see);
            visit_stmts(&each.else_body, see);
        }
        Stmt::IfCond(choice) => {
            visit_expr(&choice.expr, see);
            visit_stmts(&choice.true_body, see);
            visit_stmts(&choice.false_body, see);
        }
        Stmt::WithBlock(with) => {
            with.assignments
                .iter()
                .for_each(|(_, e)| visit_expr(e, see));
            visit_stmts(&with.body, see);
        }
        Stmt::Set(set) => visit_expr(&set.expr, see),
        Stmt::SetBlock(set) => {
            set.filter.iter().for_each(|e| visit_expr(e, see));
            visit_stmts(&set.body, see);
        }
        Stmt::AutoEscape(escape) => {
            visit_expr(&escape.enabled, see);
            visit_stmts(&escape.body, see);
        }
        Stmt::FilterBlock(filter) => {
            visit_expr(&filter.filter, see);
            visit_stmts(&filter.body, see);
        }
        Stmt::Block(block) => visit_stmts(&block.body, see),
        Stmt::Import(import) => visit_expr(&import.expr, see),
        Stmt::FromImport(import) => visit_expr(&import.expr, see),
        Stmt::Extends(extends) => visit_expr(&extends.name, see),
        Stmt::Include(include) => visit_expr(&include.name, see),
        Stmt::Macro(decl) => visit_macro(decl, see),
        Stmt::CallBlock(block) => {
            visit_call(&block.call, see);
            visit_macro(&block.macro_decl, see);
        }
        Stmt::Do(call) => visit_call(&call.call, see),
    }
}

fn visit_macro<'e>(decl: &'e Macro<'e>, see: &mut impl FnMut(&'e Expr<'e>)) {
    decl.defaults.iter().for_each(|e| visit_expr(e, see));
    visit_stmts(&decl.body, see);
}

/// The names that a macro mentions itself. Templates that it includes see those and no others of
/// the place where the macro is declared. The engine overlooks the list that is sliced.
fn mentioned<'e>(decl: &'e Macro<'e>) -> BTreeSet<&'e str> {
    let mut names: Vec<&'e Expr<'e>> = Vec::new();
    let mut sliced: BTreeSet<*const Expr<'e>> = BTreeSet::new();
    visit_macro(decl, &mut |expr| match expr {
        Expr::Var(_) => names.push(expr),
        Expr::Slice(slice) => visit_expr(&slice.expr, &mut |part| {
            sliced.insert(std::ptr::from_ref(part));
        }),
        _ => {}
    });
    let seen = names
        .into_iter()
        .filter(|name| !sliced.contains(&std::ptr::from_ref(*name)));
    seen.filter_map(|name| match name {
        Expr::Var(var) => Some(var.id),
        _ => None,
    })
    .collect()
}

/// The names that a macro mentions and that are not its own.
pub(super) fn enclosed<'e>(decl: &'e Macro<'e>) -> BTreeSet<&'e str> {
    let mut names = mentioned(decl);
    names.remove("caller");
    for arg in &decl.args {
        if let Expr::Var(var) = arg {
            names.remove(var.id);
        }
    }
    names
}

/// True if a macro uses `caller`, so that a `call` block may call it.
pub(super) fn uses_caller<'e>(decl: &'e Macro<'e>) -> bool {
    mentioned(decl).contains("caller")
}
