//! The shape of an expression, and the faults in it.

use std::collections::BTreeMap;
use std::rc::Rc;

use minijinja::Value;
use minijinja::machinery::ast::{
    BinOp, BinOpKind, Compare, Expr, GetItem, IfExpr, Map, Slice, Test, UnaryOp, UnaryOpKind, Var,
};

use super::{
    facts::{argument, list_path, path},
    findings::Finding,
    shape::{Known, Lack, MapKind, Members, Shape, Why},
    syntax::constant_text,
    walk::Walk,
};
use crate::refusal::values::{ERRORS, FORM};
use millpond_site_format::suggest::closest;

impl<'t> Walk<'t> {
    pub(super) fn expr(&mut self, expr: &'t Expr<'t>) -> Known {
        if !self.enter() {
            return Known::any();
        }
        let value = self.unsettled(expr);
        self.depth -= 1;
        let value = match (&value.shape, &value.lack) {
            (Shape::Any | Shape::Scalar, None) => {
                self.constant(expr)
                    .map_or(value, |constant| match constant.is_none() {
                        true => Known::new(Shape::None),
                        false => Known::new(Shape::Constant(constant)),
                    })
            }
            _ => value,
        };
        match (&value.shape, &value.lack) {
            (Shape::OneOf(_), _) | (_, Some(_)) => self.facts.settle(path(expr).as_deref(), value),
            _ => value,
        }
    }

    /// An expression of which the truth alone counts: what may be missing is false.
    pub(super) fn asked(&mut self, expr: &'t Expr<'t>) -> Known {
        let value = self.expr(expr);
        let is_fault = value.lack.as_ref().is_some_and(|it| it.why == Why::Fault);
        if value.is_undefined() || is_fault {
            self.need(&value);
        }
        value
    }

    fn unsettled(&mut self, expr: &'t Expr<'t>) -> Known {
        match expr {
            Expr::Var(var) => self.variable(var),
            Expr::Const(_) => Known::scalar(),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(op) => self.unary(op),
            Expr::BinOp(op) => self.binary(op),
            Expr::Compare(compare) => self.compare(compare),
            Expr::IfExpr(choice) => self.choice(choice),
            Expr::Filter(filter) => self.filter(filter),
            Expr::Test(test) => self.test(test),
            Expr::GetAttr(attr) => {
                let base = self.needed(&attr.expr);
                let place = self.place(attr.name);
                self.member(&base, path(&attr.expr).as_deref(), attr.name, place)
            }
            Expr::GetItem(item) => self.item(item),
            Expr::Call(call) => self.call(call, None),
            Expr::List(list) => self.list(&list.items),
            Expr::Tuple(tuple) => self.list(&tuple.items),
            Expr::Map(map) => self.map(map),
        }
    }

    fn variable(&mut self, var: &'t Var<'t>) -> Known {
        let place = self.place(var.id);
        if let Some(value) = self.scope.find(var.id) {
            return value;
        }
        let hint = self.unknown_hint(var.id);
        let message = format!("nothing gives the template `{}`", var.id);
        let finding = Finding::new(place, message, Some(hint));
        // A page knows what it is given: there a guard such as `is defined` is no excuse.
        if self.file == self.page && self.calls.is_empty() {
            self.fault(&finding);
        }
        Known::undefined(finding)
    }

    /// Returns the name that was probably meant where nothing gives a name, or the names that there
    /// are.
    fn unknown_hint(&self, name: &str) -> String {
        if matches!(name, FORM | ERRORS) && !self.scope.is_of_error() {
            let shared = match self.file == self.page {
                true => String::new(),
                false => format!(
                    "; in a template of several pages, write {{% if {name} is defined and {name}.NAME is defined %}}…{{% endif %}} around what shows a value of it"
                ),
            };
            return format!(
                "`{name}` is there if a form leads back to this page: in its .post.sql, -- invalid: /path{shared}"
            );
        }
        let names = self.scope.names();
        match closest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.scope.is_of_error() => {
                "an error page sees `status`, `title` and `message`; one in a folder such as pages/[lang]/ also `params`".to_owned()
            }
            None => {
                let shared = match self.file == self.page {
                    true => String::new(),
                    false => format!(
                        "; what only some pages have stands in {{% if {name} is defined %}}…{{% endif %}}"
                    ),
                };
                format!(
                    "a template sees the page's queries by name, `params` and `request`; here: {}{shared}",
                    self.scope.roots().collect::<Vec<_>>().join(", ")
                )
            }
        }
    }

    fn slice(&mut self, slice: &'t Slice<'t>) -> Known {
        let base = self.needed(&slice.expr);
        let bounds = [&slice.start, &slice.stop, &slice.step];
        bounds.into_iter().flatten().for_each(|bound| {
            self.needed(bound);
        });
        match base.shape {
            Shape::List(_) => Known::new(base.shape),
            _ => Known::any(),
        }
    }

    fn unary(&mut self, op: &'t UnaryOp<'t>) -> Known {
        match op.op {
            UnaryOpKind::Not => self.asked(&op.expr),
            UnaryOpKind::Neg => self.needed(&op.expr),
        };
        Known::scalar()
    }

    fn binary(&mut self, op: &'t BinOp<'t>) -> Known {
        if matches!(op.op, BinOpKind::ScAnd | BinOpKind::ScOr) {
            let goes_on = matches!(op.op, BinOpKind::ScAnd);
            let left = self.asked(&op.left);
            let right = self.under(&op.left, goes_on, |walk| walk.expr(&op.right));
            // If the left side decides, the value is the one that decides.
            let left = left.narrowed(!goes_on);
            return right.map_or_else(|| left.clone(), |right| left.join(&right));
        }
        let left = self.needed(&op.left);
        match op.op {
            BinOpKind::Concat => {
                let right = self.needed(&op.right);
                left.followed_by(&right)
            }
            BinOpKind::Add => {
                let right = self.needed(&op.right);
                match (&left.shape, &right.shape) {
                    (Shape::List(_), Shape::List(_)) => left.join(&right),
                    _ => Known::any(),
                }
            }
            _ => {
                self.needed(&op.right);
                Known::scalar()
            }
        }
    }

    fn compare(&mut self, compare: &'t Compare<'t>) -> Known {
        self.needed(&compare.expr);
        for op in &compare.ops {
            self.needed(&op.expr);
        }
        Known::scalar()
    }

    fn choice(&mut self, choice: &'t IfExpr<'t>) -> Known {
        self.asked(&choice.test_expr);
        let condition = &choice.test_expr;
        let taken = self.under(condition, true, |walk| walk.expr(&choice.true_expr));
        let other = match &choice.false_expr {
            Some(other) => self.under(condition, false, |walk| walk.expr(other)),
            // Without an `else` it prints nothing.
            None => Some(Known::new(Shape::None)),
        };
        match (taken, other) {
            (Some(taken), Some(other)) => taken.join(&other),
            (Some(value), None) | (None, Some(value)) => value,
            (None, None) => Known::any(),
        }
    }

    fn test(&mut self, test: &'t Test<'t>) -> Known {
        let value = self.expr(&test.expr);
        if !matches!(test.name, "defined" | "undefined") {
            self.need(&value);
        }
        for part in &test.args {
            self.needed(argument(part));
        }
        Known::scalar()
    }

    fn item(&mut self, item: &'t GetItem<'t>) -> Known {
        let base = self.needed(&item.expr);
        let key = self.expr(&item.subscript_expr);
        let place = self.place_of(&item.subscript_expr);
        let name = self.constant(&item.subscript_expr);
        if let Some(name) = name.as_ref().and_then(Value::as_str) {
            return self.member(&base, path(&item.expr).as_deref(), name, place);
        }
        self.need(&key);
        if let Some(names) = key.texts() {
            return self.member_of_some(&base, item, &names);
        }
        let is_number = matches!(&item.subscript_expr, Expr::Const(key) if key.value.is_number())
            || matches!(&item.subscript_expr, Expr::UnaryOp(_));
        match (&base.shape, is_number) {
            (Shape::List(_), _) => self.element(&base, &item.expr),
            (Shape::Row(columns), true) => {
                let message = format!("`{}` is a row: its columns have names", columns.of);
                Known::undefined(Finding::new(place, message, None))
            }
            _ => self.chosen_member(&base, item),
        }
    }

    /// The member that a value names, as in `names[article.kind]`: a map need not have it.
    fn chosen_member(&self, base: &Known, item: &'t GetItem<'t>) -> Known {
        let mut values = Vec::new();
        for shape in base.shape.alternatives() {
            match shape {
                Shape::Members(members) => values.extend(members.fields.values().cloned()),
                Shape::Row(columns) => values.push(Known::new(columns.cell.clone())),
                Shape::Query => {}
                _ => return Known::any(),
            }
        }
        let value = values.into_iter().reduce(|one, two| one.join(&two));
        self.lacking_member(value.unwrap_or_else(Known::any), item, "names no member")
    }

    /// The member that one of these texts names, as in `names[params.sort]`.
    fn member_of_some(&mut self, base: &Known, item: &'t GetItem<'t>, names: &[String]) -> Known {
        let place = self.place_of(&item.subscript_expr);
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            let value = self.member(base, path(&item.expr).as_deref(), name, place);
            match value.is_undefined() {
                true => missing.push((name, value)),
                false => there.push(value),
            }
        }
        let there = there.into_iter();
        match (there.reduce(|one, two| one.join(&two)), missing.first()) {
            (Some(value), Some((name, _))) => {
                self.lacking_member(value, item, &format!("is `{name}`"))
            }
            (None, Some((_, undefined))) => undefined.clone(),
            (value, None) => value.unwrap_or_else(Known::any),
        }
    }

    /// A member of a value that is undefined for some keys.
    fn lacking_member(&self, value: Known, item: &'t GetItem<'t>, where_key: &str) -> Known {
        let part = |expr| path(expr).unwrap_or_else(|| "…".to_owned());
        let key = part(&item.subscript_expr);
        let shown = format!("{}[{key}]", part(&item.expr));
        let message = format!("`{shown}` is undefined where `{key}` {where_key}");
        let hint = format!("write {{{{ {shown} | default('') }}}}");
        value.lacking(Lack {
            why: Why::Absent,
            path: shown,
            finding: Finding::lack(self.place_of(&item.subscript_expr), message, hint),
        })
    }

    /// One item of a list, which may be empty unless it is written out.
    pub(super) fn element(&mut self, list: &Known, expr: &'t Expr<'t>) -> Known {
        let Shape::List(item) = &list.shape else {
            return Known::any();
        };
        let item = (**item).clone();
        let (path, message, hint) = match (list_path(expr), expr) {
            (None, Expr::List(_) | Expr::Tuple(_)) => return item,
            (None, _) => (
                String::new(),
                "this list may have no row here".to_owned(),
                "give it a name, and write {% if name %}…{% endif %} around it".to_owned(),
            ),
            (Some(path), _) => {
                let message = format!("`{path}` may have no row here");
                let hint = format!("write {{% if {path} %}}…{{% endif %}} around it");
                (path, message, hint)
            }
        };
        let place = self.place_of(expr);
        item.lacking(Lack {
            why: Why::Empty,
            path,
            finding: Finding::lack(place, message, hint),
        })
    }

    fn list(&mut self, items: &'t [Expr<'t>]) -> Known {
        let items: Vec<Known> = items.iter().map(|item| self.expr(item)).collect();
        let joined = items.into_iter().reduce(|one, two| one.join(&two));
        let item = joined.unwrap_or_else(|| Known::new(Shape::Nothing));
        Known::new(Shape::List(Rc::new(item)))
    }

    fn map(&mut self, map: &'t Map<'t>) -> Known {
        let mut fields = Some(BTreeMap::new());
        for (key, value) in map.keys.iter().zip(&map.values) {
            self.needed(key);
            let value = self.expr(value);
            match (constant_text(key), &mut fields) {
                (Some(key), Some(fields)) => drop(fields.insert(key.to_owned(), value)),
                _ => fields = None,
            }
        }
        fields.map_or_else(Known::any, |fields| {
            let of = MapKind::Literal;
            Known::new(Shape::Members(Rc::new(Members { of, fields })))
        })
    }
}
