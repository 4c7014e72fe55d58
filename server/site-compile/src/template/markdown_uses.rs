//! How the templates of a site show Markdown.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{
    Environment,
    machinery::{
        self,
        ast::{BinOpKind, CallArg, Expr, Filter, Stmt},
    },
};

use super::{
    reach::Reach,
    sources,
    syntax::{constant_text, visit_expr, visit_stmt},
    syntax_config,
};

/// The filter `markdown` in the templates of a site.
#[derive(Debug, Default)]
pub struct MarkdownUses {
    /// The templates that have it, and keep its links.
    showing: BTreeSet<String>,
    reach: Reach,
    /// True if one of them lets links between files lead to pages.
    pub leads_to_pages: bool,
    /// True if one of them gives documents a path with a folder that is written out, as
    /// `document = "posts/" ~ post.slug`: then links lead from table to table.
    pub has_tree: bool,
}

impl MarkdownUses {
    pub fn of(environment: &Environment<'_>) -> Self {
        let sources: BTreeMap<String, String> = sources(environment).into_iter().collect();
        let mut uses = Self {
            reach: Reach::new(&sources),
            ..Self::default()
        };
        for (name, source) in &sources {
            // One that does not parse is reported elsewhere.
            if let Ok(root) = machinery::parse(source, name, syntax_config()) {
                uses.read(name, &root);
            }
        }
        uses
    }

    /// Takes up one template. Text from which `striptags` takes the tags has no links.
    fn read(&mut self, name: &str, root: &Stmt<'_>) {
        let mut without_tags: BTreeSet<*const Filter<'_>> = BTreeSet::new();
        let mut found: Vec<&Filter<'_>> = Vec::new();
        visit_stmt(root, &mut |expr| {
            let Expr::Filter(filter) = expr else { return };
            let filter: &Filter<'_> = filter;
            match (filter.name, &filter.expr) {
                ("markdown", _) => found.push(filter),
                ("striptags", Some(inner)) => visit_expr(inner, &mut |part| {
                    if let Expr::Filter(part) = part {
                        let part: &Filter<'_> = part;
                        without_tags.insert(std::ptr::from_ref(part));
                    }
                }),
                _ => {}
            }
        });
        found.retain(|filter| !without_tags.contains(&std::ptr::from_ref(*filter)));
        for filter in found {
            self.showing.insert(name.to_owned());
            let document = filter.args.iter().find_map(|part| match part {
                CallArg::Kwarg("document", path) => Some(path),
                _ => None,
            });
            self.leads_to_pages |= document.is_some();
            self.has_tree |= document.is_some_and(begins_with_folder);
        }
    }

    /// True if a page of this template may show Markdown with its links.
    pub fn are_in(&self, template: &str) -> bool {
        let mut showing = self.showing.iter();
        showing.any(|other| self.reach.shows(template, other))
    }

    /// True if a page of one of these templates shows each template that has the filter. Otherwise
    /// names of templates are put together of parts.
    pub fn are_all_in(&self, templates: &[&str]) -> bool {
        let is_shown = |other: &String| {
            let mut templates = templates.iter();
            templates.any(|template| self.reach.shows(template, other))
        };
        self.showing.iter().all(is_shown)
    }
}

/// True for a text with a folder at its start.
fn begins_with_folder(path: &Expr<'_>) -> bool {
    match path {
        Expr::BinOp(joined) if matches!(joined.op, BinOpKind::Concat | BinOpKind::Add) => {
            begins_with_folder(&joined.left)
        }
        path => constant_text(path).is_some_and(|text| text.trim_start_matches('/').contains('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(templates: &[(&'static str, &'static str)]) -> MarkdownUses {
        let mut environment = Environment::new();
        for (name, source) in templates {
            environment.add_template(name, source).unwrap();
        }
        MarkdownUses::of(&environment)
    }

    #[test]
    fn what_keeps_its_links_is_shown_by_pages_that_reach_it() {
        let found = uses(&[
            (
                "post.html",
                "{% set html = x | markdown(document = x.slug) %}{{ html }}",
            ),
            (
                "excerpt.html",
                "{{ x | markdown(html = true) | striptags | truncate(9) }}",
            ),
            ("pages/a.html", "{% include 'post.html' %}"),
            ("pages/list.html", "{% include 'excerpt.html' %}"),
        ]);
        assert!(found.are_in("pages/a.html") && !found.are_in("pages/list.html"));
        assert!(found.leads_to_pages && !found.has_tree);
        assert!(found.are_all_in(&["pages/a.html"]) && !found.are_all_in(&["pages/list.html"]));
    }

    #[test]
    fn a_path_with_a_folder_leads_from_table_to_table() {
        for (argument, is_tree) in [
            ("\"posts/\" ~ slug", true),
            ("\"a/b/\" ~ x ~ \"/\" ~ slug", true),
            ("folder ~ \"/\" ~ slug", false),
            ("\"/\" ~ slug", false),
            ("slug", false),
        ] {
            let source = format!("{{{{ x | markdown(document = {argument}) }}}}");
            let mut environment = Environment::new();
            environment.add_template("a", &source).unwrap();
            let found = MarkdownUses::of(&environment);
            assert!(found.leads_to_pages);
            assert_eq!(found.has_tree, is_tree, "{argument}");
        }
    }
}
