//! Addresses of forms that a template takes from a name: `action="{{ here }}"`, where a page that
//! shows the template says `{% set here = "/articles/" ~ article.id %}`.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::machinery::{
    self,
    ast::{BinOpKind, Expr, Macro, Stmt},
};

use super::{Reach, syntax_config};
use crate::{
    form_tags::{FormTag, forms},
    markup::VALUE,
};

/// An expression may be this many addresses.
const MOST: usize = 16;

/// Addresses that the templates of a site set names to.
pub struct SetAddresses {
    reach: Reach,
    templates: BTreeMap<String, TemplateNames>,
}

#[derive(Default)]
struct TemplateNames {
    /// Names that are set, each with the texts that it may be: [`VALUE`] stands for text that is
    /// not written out.
    set: BTreeMap<String, BTreeSet<String>>,
    /// Names of loops and macros, which are something else there.
    bound: BTreeSet<String>,
}

impl SetAddresses {
    /// Reads templates, each with its name.
    pub fn new(sources: Vec<(String, String)>) -> Self {
        let sources: BTreeMap<String, String> = sources.into_iter().collect();
        let templates = sources.iter().map(|(name, source)| {
            let mut names = TemplateNames::default();
            // One that does not parse is reported elsewhere.
            if let Ok(root) = machinery::parse(source, name, syntax_config()) {
                names.read(&root);
            }
            (name.clone(), names)
        });
        Self {
            templates: templates.collect(),
            reach: Reach::new(&sources),
        }
    }

    /// The [forms] of a template. One whose address is a name stands there with each address that
    /// a page sets.
    pub fn forms<'t>(&self, template: &str, text: &'t str) -> Vec<FormTag<'t>> {
        let all = forms(text).into_iter();
        all.flat_map(|form| {
            let addresses = form.named.map(|name| self.addresses(template, name));
            match addresses {
                Some(addresses) if !addresses.is_empty() => {
                    let with = addresses.into_iter();
                    with.map(|address| form.sent_to(address)).collect()
                }
                _ => vec![form],
            }
        })
        .collect()
    }

    /// Returns the addresses that the pages that show a template may set a name to; empty if they
    /// are not known.
    fn addresses(&self, template: &str, name: &str) -> BTreeSet<String> {
        let pages = self.templates.keys();
        let pages =
            pages.filter(|page| page.starts_with("pages/") && self.reach.shows(page, template));
        let mut found = BTreeSet::new();
        for page in pages {
            let shown = self.templates.iter();
            let shown = shown.filter(|(other, _)| self.reach.shows(page, other));
            for (_, names) in shown {
                if names.bound.contains(name) {
                    return BTreeSet::new();
                }
                found.extend(names.set.get(name).into_iter().flatten().cloned());
            }
        }
        found
    }
}

impl TemplateNames {
    fn read(&mut self, stmt: &Stmt<'_>) {
        let none: &[Stmt<'_>] = &[];
        let (first, second) = match stmt {
            Stmt::Template(template) => (&template.children[..], none),
            Stmt::ForLoop(each) => {
                self.bind(&each.target);
                (&each.body[..], &each.else_body[..])
            }
            Stmt::IfCond(choice) => (&choice.true_body[..], &choice.false_body[..]),
            Stmt::WithBlock(with) => {
                let set = with.assignments.iter();
                set.for_each(|(target, expr)| self.set(target, addresses(expr)));
                (&with.body[..], none)
            }
            Stmt::Set(set) => {
                self.set(&set.target, addresses(&set.expr));
                (none, none)
            }
            Stmt::SetBlock(set) => {
                self.set(&set.target, unknown());
                (none, none)
            }
            Stmt::AutoEscape(escape) => (&escape.body[..], none),
            Stmt::FilterBlock(filter) => (&filter.body[..], none),
            Stmt::Block(block) => (&block.body[..], none),
            Stmt::Macro(decl) => self.read_macro(decl),
            Stmt::CallBlock(block) => self.read_macro(&block.macro_decl),
            _ => (none, none),
        };
        first.iter().chain(second).for_each(|stmt| self.read(stmt));
    }

    /// Reads a macro, whose names are its own.
    fn read_macro<'s>(&mut self, decl: &Macro<'_>) -> (&'s [Stmt<'s>], &'s [Stmt<'s>]) {
        decl.args.iter().for_each(|arg| self.bind(arg));
        (&[], &[])
    }

    fn bind(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(var) => {
                self.bound.insert(var.id.to_owned());
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.bind(item)),
            _ => {}
        }
    }

    fn set(&mut self, target: &Expr<'_>, texts: BTreeSet<String>) {
        match target {
            Expr::Var(var) => self.set.entry(var.id.to_owned()).or_default().extend(texts),
            other => self.bind(other),
        }
    }
}

fn unknown() -> BTreeSet<String> {
    [VALUE.to_string()].into()
}

/// The texts that an expression may be.
fn addresses(expr: &Expr<'_>) -> BTreeSet<String> {
    let found: BTreeSet<String> = match expr {
        Expr::Const(constant) => [constant.value.to_string()].into(),
        Expr::BinOp(op) if matches!(op.op, BinOpKind::Concat) => {
            let (left, right) = (addresses(&op.left), addresses(&op.right));
            let both = left
                .iter()
                .flat_map(|left| right.iter().map(move |right| format!("{left}{right}")));
            both.collect()
        }
        Expr::IfExpr(choice) => {
            let mut either = addresses(&choice.true_expr);
            match &choice.false_expr {
                Some(other) => either.extend(addresses(other)),
                None => either.extend(unknown()),
            }
            either
        }
        _ => unknown(),
    };
    match found.len() > MOST {
        true => unknown(),
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_pages_set_it_to() {
        let form = "<form action=\"{{ here }}\"></form>";
        let sources = [
            ("form.html", form.to_owned()),
            ("other.html", form.to_owned()),
            ("macro.html", format!("{{% macro m(here) %}}{form}{{% endmacro %}}")),
            (
                "pages/a.html",
                "{% set here = '/a/' ~ a.id ~ '/' ~ ('x' if b else 'y') %}{% include 'form.html' %}".to_owned(),
            ),
            (
                "pages/b.html",
                "{% with here = '/b' %}{% include 'form.html' %}{% endwith %}{% set there = 1 %}".to_owned(),
            ),
            ("pages/c.html", "{% include 'other.html' %}".to_owned()),
            (
                "pages/d.html",
                "{% set here = '/d' %}{% import 'macro.html' as m %}".to_owned(),
            ),
            ("pages/e.html", format!("{{% set here = d.url %}}{form}")),
        ];
        let sources = sources.map(|(name, text)| (name.to_owned(), text));
        let set = SetAddresses::new(sources.into());
        let found = |name: &str| {
            let forms = set.forms(name, form).into_iter();
            let shown = forms.map(|form| form.action.unwrap().replace(VALUE, "*"));
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("form.html"), "/a/*/x /a/*/y /b");
        for unknown in ["other.html", "macro.html", "pages/e.html"] {
            assert_eq!(found(unknown), "*", "{unknown}");
        }
    }
}
