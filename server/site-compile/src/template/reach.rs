//! Which templates a page may show.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::machinery;

use super::{
    syntax::{constant_text, visit_stmt},
    syntax_config,
};

/// For each template, itself and those that it may extend, include or import, directly or through
/// others.
///
/// A template counts as shown where its name is written out as a text, so a name that is kept in a
/// variable counts too. A name that is put together of parts is not recognized.
#[derive(Debug, Default)]
pub struct Reach(BTreeMap<String, BTreeSet<String>>);

impl Reach {
    pub fn new(sources: &BTreeMap<String, String>) -> Self {
        let named = sources.iter().map(|(name, source)| {
            let mut found = BTreeSet::new();
            // One that does not parse is reported elsewhere.
            if let Ok(root) = machinery::parse(source, name, syntax_config()) {
                visit_stmt(&root, &mut |expr| {
                    let text = constant_text(expr).and_then(|text| sources.get_key_value(text));
                    found.extend(text.map(|(name, _)| name.as_str()));
                });
            }
            (name.as_str(), found)
        });
        let named: BTreeMap<&str, BTreeSet<&str>> = named.collect();
        let all = named.keys().map(|name| {
            let reached = closure(&named, name).into_iter().map(str::to_owned);
            ((*name).to_owned(), reached.collect())
        });
        Self(all.collect())
    }

    /// True if a page of this template may show another template.
    pub fn shows(&self, template: &str, other: &str) -> bool {
        let shown = self.0.get(template);
        shown.is_some_and(|shown| shown.contains(other))
    }
}

/// All names that can be reached from one.
fn closure<'n>(named: &BTreeMap<&'n str, BTreeSet<&'n str>>, from: &'n str) -> BTreeSet<&'n str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            open.extend(named.get(name).into_iter().flatten().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_what_is_named_on_the_way() {
        let sources = [
            ("pages/a.html", "{% extends \"layout.html\" %}"),
            (
                "layout.html",
                "{% if x %}{% include ['menu.html', 'none.html'] %}{% endif %}",
            ),
            (
                "menu.html",
                "{% set part = 'end.html' %}{% include part %}{% include 'layout.html' %}",
            ),
            ("end.html", ""),
            ("pages/b.html", "{% include 'e' ~ 'nd.html' %}"),
            ("pages/c.html", "{% from 'end.html' import x %}"),
            ("broken.html", "{% if %}"),
        ];
        let sources = sources.map(|(name, source)| (name.to_owned(), source.to_owned()));
        let reach = Reach::new(&sources.into());
        for (template, other, expected) in [
            ("pages/a.html", "layout.html", true),
            ("pages/a.html", "menu.html", true),
            ("pages/a.html", "end.html", true),
            ("pages/a.html", "none.html", false),
            ("menu.html", "menu.html", true),
            ("end.html", "menu.html", false),
            ("pages/b.html", "end.html", false),
            ("pages/c.html", "end.html", true),
            ("nothing.html", "end.html", false),
        ] {
            assert_eq!(reach.shows(template, other), expected, "{template} {other}");
        }
    }
}
