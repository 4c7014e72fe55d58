//! The filters and tests that there are, and templates that name others.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{
    Environment,
    machinery::ast::{CallArg, Expr},
};

use super::{
    findings::{Finding, Parsed, TemplatePlace},
    syntax::{constant_text, visit_stmt},
};
use millpond_site_format::suggest::closest;

/// Filters of the engine that may be there, for suggestions: it cannot list its own.
const FILTERS: &str = "\
    abs attr batch bool capitalize chain count d default dictsort e escape first float format \
    groupby indent int items join last length lines list lower map max min pprint reject \
    rejectattr replace reverse round safe select selectattr slice sort split string sum title \
    tojson trim unique upper zip";

/// Tests that may be there.
const TESTS: &str = "\
    boolean defined divisibleby endingwith eq equalto escaped even false filter float ge \
    greaterthan gt in int integer iterable le lessthan lower lt mapping ne none number odd safe \
    sameas sequence startingwith string test true undefined upper";

/// The filters and tests of the templates' engine.
pub(super) struct Names {
    filters: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Names {
    /// Collects the names that may be there, or that a template mentions, as far as they exist.
    pub(super) fn new(environment: &Environment<'_>, templates: &[Parsed<'_>]) -> Self {
        let known = FILTERS.split(' ').chain(crate::filters::names());
        let mut filters: BTreeSet<String> = known.map(str::to_owned).collect();
        let mut tests: BTreeSet<String> = TESTS.split(' ').map(str::to_owned).collect();
        for template in templates {
            mentions(template, |kind, name, _| {
                match kind {
                    Mention::Filter => filters.insert(name),
                    Mention::Test => tests.insert(name),
                };
            });
        }
        let exists = |asked: &str, names: BTreeSet<String>| -> BTreeSet<String> {
            let question = environment.compile_expression(asked);
            let names = names.into_iter().filter(|name| {
                let context = BTreeMap::from([("name", name.clone())]);
                let answer = question.as_ref().map(|question| question.eval(context));
                matches!(answer, Ok(Ok(answer)) if answer.is_true())
            });
            names.collect()
        };
        Self {
            filters: exists("name is filter", filters),
            tests: exists("name is test", tests),
        }
    }

    pub(super) fn is_filter(&self, name: &str) -> bool {
        self.filters.contains(name)
    }

    /// The filters and tests in a template that do not exist.
    pub(super) fn unknown(&self, file: usize, template: &Parsed<'_>) -> Vec<Finding> {
        let mut unknown = Vec::new();
        mentions(template, |kind, name, offset| {
            let (what, known) = match kind {
                Mention::Filter => ("filter", &self.filters),
                Mention::Test => ("test", &self.tests),
            };
            if known.contains(&name) {
                return;
            }
            let hint = match closest(&name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "there are: {}",
                    known
                        .iter()
                        .map(String::as_str)
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            };
            let message = format!("there is no {what} `{name}`");
            let place = TemplatePlace {
                file,
                offset,
                is_lack: false,
            };
            unknown.push(Finding::new(place, message, Some(hint)));
        });
        unknown
    }
}

#[derive(Clone, Copy)]
enum Mention {
    Filter,
    Test,
}

/// Calls `see` for each filter and test that a template names, with its offset.
fn mentions(template: &Parsed<'_>, mut see: impl FnMut(Mention, String, usize)) {
    let start = template.source.as_ptr() as usize;
    let offset = |name: &str| (name.as_ptr() as usize).wrapping_sub(start);
    visit_stmt(&template.root, &mut |expr| match expr {
        Expr::Filter(filter) => {
            see(Mention::Filter, normal(filter.name), offset(filter.name));
            // Filters that apply others, or tests, to each item of a list.
            let (kind, at) = match filter.name {
                "map" => (Mention::Filter, 0),
                "select" | "reject" => (Mention::Test, 0),
                "selectattr" | "rejectattr" => (Mention::Test, 1),
                _ => return,
            };
            let named = match filter.args.get(at) {
                Some(CallArg::Pos(expr)) => expr,
                _ => return,
            };
            if let Some(name) = constant_text(named) {
                see(kind, name.to_owned(), named.span().start_offset as usize);
            }
        }
        Expr::Test(test) => see(Mention::Test, normal(test.name), offset(test.name)),
        _ => {}
    });
}

/// A name as the engine looks it up.
fn normal(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_whitespace()).collect()
}
