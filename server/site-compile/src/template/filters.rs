//! What filters make of shapes, and the columns that their arguments name.

use std::{collections::BTreeMap, rc::Rc};

use minijinja::machinery::ast::{CallArg, Expr, Filter};

use super::{
    facts::{argument, path},
    shape::{Known, MapKind, Members, Shape},
    syntax::constant_text,
    walk::Walk,
};

/// Filters that give the same items, or some of them, perhaps in another order.
const SAME_ITEMS: &[&str] = &[
    "sort",
    "reverse",
    "list",
    "unique",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
];

/// An item of what `headings` gives.
fn heading() -> Known {
    let fields = ["level", "id", "text"].map(|name| (name.to_owned(), Known::scalar()));
    Known::new(Shape::Members(Rc::new(Members {
        of: MapKind::Literal,
        fields: BTreeMap::from(fields),
    })))
}

impl<'t> Walk<'t> {
    pub(super) fn filter(&mut self, filter: &'t Filter<'t>) -> Known {
        let base = match &filter.expr {
            Some(expr) => self.expr(expr),
            // What a block between `{% filter … %}` and its end has printed.
            None => Known::scalar(),
        };
        if matches!(filter.name, "default" | "d") {
            return self.default_filter(&base, filter);
        }
        self.need(&base);
        for part in &filter.args {
            self.needed(argument(part));
        }
        let attribute = self.attribute(&base, filter);
        if let ("tojson", Some(expr)) = (filter.name, &filter.expr) {
            self.shows_whole(&base, expr);
        }
        if filter.name == "query" {
            self.changed_parameters(&base, filter);
        }
        match filter.name {
            "first" | "last" => match &filter.expr {
                Some(expr) => self.element(&base, expr),
                None => Known::any(),
            },
            "map" => match &base.shape {
                Shape::List(_) if attribute.is_some() => {
                    list_of(attribute.unwrap_or_else(Known::any))
                }
                _ => list_of(Known::any()),
            },
            "groupby" => match &base.shape {
                Shape::List(item) => list_of(Known::new(Shape::Group(item.clone()))),
                _ => Known::any(),
            },
            "headings" => list_of(heading()),
            "batch" | "slice" => match &base.shape {
                Shape::List(_) if filter.args.len() == 1 => list_of(Known::new(base.shape.clone())),
                _ => list_of(list_of(Known::any())),
            },
            "attr" => match filter.args.first().map(argument).and_then(constant_text) {
                Some(name) => {
                    let at = filter.expr.as_ref().and_then(path);
                    let place = self.place_of(argument(&filter.args[0]));
                    self.member(&base, at.as_deref(), name, place)
                }
                None => Known::any(),
            },
            "length" | "count" | "upper" | "lower" | "title" | "capitalize" | "trim" | "escape"
            | "e" | "round" | "abs" | "int" | "float" | "join" | "replace" => Known::scalar(),
            name if SAME_ITEMS.contains(&name) => match &base.shape {
                Shape::List(_) => Known::new(base.shape.clone()),
                _ => Known::any(),
            },
            _ => Known::any(),
        }
    }

    /// `params | query(page = 2)`: the page has the parameters that are changed.
    fn changed_parameters(&mut self, base: &Known, filter: &'t Filter<'t>) {
        if !matches!(&base.shape, Shape::Members(of) if of.of == MapKind::Params) {
            return;
        }
        for arg in &filter.args {
            if let CallArg::Kwarg(name, value) = arg {
                let place = self.place_of(value);
                let member = self.member(base, Some("params"), name, place);
                self.need(&member);
                self.value_of_param(name, value);
            }
        }
    }

    /// `value | default(other)`: a value that is missing is no fault here.
    fn default_filter(&mut self, base: &Known, filter: &'t Filter<'t>) -> Known {
        let mut others = filter.args.iter().map(|part| self.expr(argument(part)));
        let other = others.next().unwrap_or_else(Known::scalar);
        others.for_each(drop);
        if base.is_undefined() {
            return other;
        }
        let base = Known {
            lack: base.lack.clone().filter(|_| base.may_be_none()),
            ..base.clone()
        };
        // A value that is none stays none.
        base.join(&other)
    }

    /// The column that an argument names, as in `map(attribute="title")`, if rows are filtered.
    fn attribute(&mut self, base: &Known, filter: &'t Filter<'t>) -> Option<Known> {
        let has = |wanted: &str| {
            let mut args = filter.args.iter();
            args.find_map(|arg| match arg {
                CallArg::Kwarg(name, expr) if *name == wanted => Some(expr),
                _ => None,
            })
        };
        let first = match filter.args.first() {
            Some(CallArg::Pos(expr)) => Some(expr),
            _ => None,
        };
        let named: &'t Expr<'t> = match filter.name {
            "sort" | "unique" | "map" | "sum" | "min" | "max" | "join" => has("attribute")?,
            "selectattr" | "rejectattr" => first?,
            "groupby" => has("attribute").or(first)?,
            _ => return None,
        };
        let Shape::List(item) = &base.shape else {
            return None;
        };
        let mut shapes = item.shape.alternatives().iter();
        if !shapes.all(|shape| matches!(shape, Shape::Row(_) | Shape::Members(_))) {
            return None;
        }
        let name = constant_text(named)?;
        let (name, rest) = name
            .split_once('.')
            .map_or((name, None), |(n, r)| (n, Some(r)));
        let place = self.place_of(named);
        let value = self.member(item, None, name, place);
        if !value.is_undefined() {
            return Some(if rest.is_none() { value } else { Known::any() });
        }
        // `selectattr("name")` asks whether it is there, and `default=` says what to take.
        if has("default").is_none() && !name.contains(',') {
            self.need(&value);
        }
        None
    }
}

fn list_of(item: Known) -> Known {
    Known::new(Shape::List(Rc::new(item)))
}
