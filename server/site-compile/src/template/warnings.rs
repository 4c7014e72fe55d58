//! What templates may do and is probably not meant: rows that are shown whole with a secret in
//! them, addresses that a page refuses, and what is untrue on error pages.

use minijinja::{
    Value,
    machinery::ast::{Expr, IfCond, UnaryOpKind},
    value::ValueKind,
};

use super::{
    arguments::constant,
    findings::Finding,
    shape::{Known, Shape},
    walk::Walk,
};
use crate::markup::misfit;
use millpond_site_format::secret_names::is_secret;

impl<'t> Walk<'t> {
    fn warn(&mut self, expr: &Expr<'_>, message: String, hint: String) {
        self.doubt(&Finding::new(self.place_of(expr), message, Some(hint)));
    }

    /// A value is written whole: of rows each column, also those that are secret.
    pub(super) fn shows_whole(&mut self, value: &Known, expr: &Expr<'_>) {
        let rows = value.shape.alternatives().iter();
        let rows = rows.flat_map(|shape| match shape {
            Shape::List(item) => item.shape.alternatives(),
            shape => std::slice::from_ref(shape),
        });
        for row in rows {
            let Shape::Row(columns) = row else { continue };
            let mut names = columns.names.iter();
            if let Some(secret) = names.find(|name| is_secret(name)) {
                let message = format!(
                    "all of `{}` is shown, also its column `{secret}`",
                    columns.of
                );
                let hint = "show the columns that visitors may see, or select no others";
                self.warn(expr, message, hint.to_owned());
            }
        }
    }

    /// `params | query(sort = "titel")`: the page refuses some values.
    pub(super) fn value_of_param(&mut self, name: &str, value: &'t Expr<'t>) {
        let mut params = self.params.iter();
        let param = params.find(|param| param.name == name && param.in_path.is_none());
        let (Some(param), Some(given)) = (param, constant(value)) else {
            return;
        };
        let items = match given.kind() {
            ValueKind::Seq => given.try_iter().into_iter().flatten().collect(),
            _ => vec![given],
        };
        let mut texts = items.iter().filter_map(text);
        let wrong = texts.find_map(|text| misfit(param, &text).map(|wrong| (text, wrong)));
        if let Some((text, wrong)) = wrong {
            let message = format!("the page does not take `{text}` for `{name}`");
            self.warn(value, message, format!("`{name}` {wrong}"));
        }
    }

    /// Walks the part that an `if` shows because a list of a partial has no rows on error pages.
    pub(super) fn chosen_on_error_pages(&mut self, choice: &'t IfCond<'t>) {
        let (expr, body) = match &choice.expr {
            Expr::UnaryOp(not) if matches!(not.op, UnaryOpKind::Not) => {
                (&not.expr, &choice.true_body)
            }
            expr => (expr, &choice.false_body),
        };
        if !body.is_empty() {
            self.is_empty_on_error_pages(expr);
        }
    }

    /// Something is shown if a list has no rows: on error pages, where partials ask nothing, that
    /// is always so.
    pub(super) fn is_empty_on_error_pages(&mut self, list: &Expr<'_>) {
        let Expr::Var(var) = list else { return };
        let is_own = super::roots::ERROR_ROOTS.contains(&var.id) || var.id == "params";
        let is_given = self.scope.is_root(var.id) && !is_own;
        if !self.scope.is_of_error() || !is_given {
            return;
        }
        let name = var.id;
        let message = format!("`{name}` has no rows on error pages, as no query runs there");
        let hint =
            "write {% if request is defined %}…{% endif %} around what would be untrue there";
        self.warn(list, message, hint.to_owned());
    }
}

/// A value as an address has it; none if it is left out there.
fn text(value: &Value) -> Option<String> {
    match value.kind() {
        ValueKind::Bool => Some(value.is_true().to_string()),
        ValueKind::String | ValueKind::Number => Some(value.to_string()),
        _ => None,
    }
}
