//! Why a request is refused, where the site has no fault: a 404, 400 or 403 whose cause the
//! developer looks for all the same.

use std::{path::PathBuf, sync::Arc};

use millpond_db::{Expect, Value};
use millpond_http::Request;
use serde_json::{Value as Json, json};

use super::{
    excerpt,
    failures::{of_page, of_statements, passwords, point_at},
    report::{Report, of_sentence, sentence},
    scope,
};
use crate::{
    answer::visitor::Visitor,
    core::{Core, Generation},
    session::Session,
};
use millpond_site_compile::page::{Form, Page};
use millpond_site_format::{
    access::Require,
    params::{BadParam, Given, Param},
    suggest::closest,
};

/// The report of a page that does not exist because its query at the place `at` gave no row.
pub(crate) fn of_missing(
    core: &Core,
    page: &Page,
    values: &[Value],
    visitor: &Visitor,
    at: usize,
) -> Arc<Report> {
    let mut facts = of_page(page, values, visitor);
    let Some(query) = page.queries.get(at) else {
        return Report::of_refusal(facts);
    };
    let name = &query.name;
    let given = with_values(&facts["queries"][at]["params"]);
    let (cause, hint) = match &page.bytes {
        Some(bytes) if bytes.content.query == at => (
            format!("The query `{name}` gave no bytes{given}"),
            format!(
                "it gave no row, or `{}` is null there",
                bytes.content.column
            ),
        ),
        _ => (
            format!("The query `{name}` gave no row{given}"),
            match page.guard(at) {
                Some(_) => format!("`-- require: {name}` lets in only where it gives one"),
                None => "a `:one` without a row is a 404; `:one?` is for a row that may be missing"
                    .to_owned(),
            },
        ),
    };
    facts["cause"] = sentence(&cause);
    facts["hint"] = hint.into();
    facts["queries"][at]["is_without_row"] = true.into();
    point_at(core, &mut facts, &query.file, query.line);
    Report::of_refusal(facts)
}

/// The report of a form that is refused because its step at the place `at` gave no row.
pub(crate) fn of_step(
    core: &Core,
    form: &Form,
    values: &[Value],
    request: &Request<'_>,
    at: usize,
) -> Arc<Report> {
    let mut facts = of_statements(form, values, request);
    let Some(step) = form.steps.get(at) else {
        return Report::of_refusal(facts);
    };
    let given = with_values(&facts["queries"][at]["params"]);
    facts["cause"] = sentence(&format!("The step `{}` gave no row{given}", step.name));
    facts["hint"] = match step.otherwise {
        Some(status) => format!("`else {status}` says what is answered then"),
        None if form.guard(at).is_some() => {
            format!(
                "`-- require: {}` lets in only where it gives one",
                step.name
            )
        }
        None => "a `:one` without a row is a 404, and nothing is written; `:one?` is for a row \
                 that may be missing, `else 409` for one that has changed meanwhile"
            .to_owned(),
    }
    .into();
    facts["queries"][at]["is_without_row"] = (step.expect == Expect::One).into();
    point_at(core, &mut facts, &form.file, step.line);
    Report::of_refusal(facts)
}

/// The report of a page that does not take a value of the request.
pub(crate) fn of_parameter(
    core: &Core,
    page: &Page,
    given: &Given<'_>,
    request: &Request<'_>,
    bad: &BadParam,
) -> Arc<Report> {
    let mut facts = of_given(&page.params, given, request, &[]);
    facts["route"] = page.route.clone().into();
    let files = files_of(core, page);
    explain_inputs(core, &mut facts, &files, std::iter::once(bad));
    Report::of_refusal(facts)
}

/// The report of a form that does not take some values of the request.
pub(crate) fn of_inputs(
    core: &Core,
    form: &Form,
    given: &Given<'_>,
    request: &Request<'_>,
    bad: &[BadParam],
) -> Arc<Report> {
    let mut facts = of_given(&form.params, given, request, &passwords(form));
    facts["route"] = form.route.clone().into();
    explain_inputs(
        core,
        &mut facts,
        std::slice::from_ref(&form.file),
        bad.iter(),
    );
    Report::of_refusal(facts)
}

/// The report of a visitor who may not enter, because the session does not meet one of `required`.
/// `files` are those in which it may be written as a line; else it is a rule of the settings.
pub(crate) fn of_entry<'r>(
    core: &Core,
    required: impl Iterator<Item = &'r Require>,
    session: Option<&Session>,
    request: &Request<'_>,
    files: &[PathBuf],
) -> Arc<Report> {
    let mut facts = of_sentence(request);
    let claim_of = |require: &Require| {
        session.and_then(|session| session.claims.get(&require.condition.claim))
    };
    let is_met = |require: &&Require| {
        claim_of(require).is_some_and(|claim| require.condition.is_met_by(claim))
    };
    let claims = session.into_iter().flat_map(|it| it.claims.iter());
    facts["claims"] = claims
        .map(|(name, value)| scope::named(name, value))
        .collect();
    let mut required = required.filter(|require| !is_met(require));
    let Some(unmet) = required.next() else {
        return Report::of_refusal(facts);
    };
    let claim = &unmet.condition.claim;
    let has = match (session, claim_of(unmet)) {
        (None, _) => "the visitor has no session".to_owned(),
        (_, None) => format!("the session has no claim `{claim}`"),
        (_, Some(value)) => {
            let shown = scope::named(claim, value);
            let shown = shown["value"].as_str().unwrap_or_default();
            format!("the session has {claim} = {shown}")
        }
    };
    facts["cause"] = sentence(&format!("`{}` is required, and {has}", unmet.condition));
    let text = format!("claims.{claim}");
    let line = |line: &str| {
        let rest = line.trim_start().strip_prefix("--").map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with("require") && rest.contains(&text))
    };
    match find_line(core, files, line) {
        Some((file, line)) => point_at(core, &mut facts, &file, line),
        None => facts["place"] = json!({ "file": "millpond.toml" }),
    }
    Report::of_refusal(facts)
}

/// The report of an address at which nothing is.
pub(crate) fn of_address(generation: &Generation, request: &Request<'_>) -> Arc<Report> {
    let mut facts = of_sentence(request);
    let path = scope::short(request.path);
    facts["cause"] = sentence(&format!("No page and no file has the address {path}"));
    let pages = generation.pages.endpoints.iter();
    let pages: Vec<String> = pages.map(|endpoint| endpoint.pattern.to_string()).collect();
    let files = generation.statics.files().map(|(path, _)| path);
    let known = pages.iter().map(String::as_str).chain(files);
    facts["hint"] = match closest(request.path, known) {
        Some(near) => format!("did you mean {near}?"),
        None => "a page is a file below `pages/` (`pages/about.html` is /about), a file is one \
                 below `static/`"
            .to_owned(),
    }
    .into();
    Report::of_refusal(facts)
}

/// ` with id = 7, slug = x`, or nothing.
fn with_values(params: &Json) -> String {
    let params = params.as_array().into_iter().flatten();
    let pairs = params.map(|param| {
        let text = |member: &str| param[member].as_str().unwrap_or_default().to_owned();
        match param["kind"] == "text" {
            true => format!("{} = '{}'", text("name"), text("value")),
            false => format!("{} = {}", text("name"), text("value")),
        }
    });
    match pairs.collect::<Vec<_>>().join(", ") {
        pairs if pairs.is_empty() => pairs,
        pairs => format!(" with {pairs}"),
    }
}

/// The parameters with what was sent for them.
fn of_given(params: &[Param], given: &Given<'_>, request: &Request<'_>, hidden: &[usize]) -> Json {
    let mut facts = of_sentence(request);
    let sent = params.iter().enumerate().map(|(at, param)| {
        if hidden.contains(&at) {
            return json!({ "name": param.name, "kind": "hidden", "value": "hidden" });
        }
        let in_path = param.in_path.and_then(|at| given.path.get(at));
        match (in_path, &given.texts(param)[..]) {
            (Some(text), _) => scope::named_text(&param.name, text),
            (None, []) => json!({ "name": param.name, "kind": "null", "value": "not given" }),
            (None, texts) => scope::named_text(&param.name, &texts.join(", ")),
        }
    });
    facts["params"] = sent.collect();
    facts
}

/// The cause, and the line that declares the first parameter that is wrong.
fn explain_inputs<'b>(
    core: &Core,
    facts: &mut Json,
    files: &[PathBuf],
    bad: impl Iterator<Item = &'b BadParam> + Clone,
) {
    let told: Vec<&str> = bad
        .clone()
        .map(|bad| bad.sentence.trim_end_matches('.'))
        .collect();
    facts["cause"] = sentence(&told.join("; "));
    if bad.clone().any(|bad| bad.is_in_path) {
        facts["hint"] =
            "a part of the path that is no value of its parameter is a 404: no page is \
                         at this address"
                .into();
    }
    let mut bad = bad;
    let Some(first) = bad.next() else {
        return;
    };
    let place = find_line(core, files, |line| declares(line, &first.name))
        .or_else(|| find_line(core, files, |line| uses(line, &first.name)));
    if let Some((file, line)) = place {
        point_at(core, facts, &file, line);
    }
}

/// True if a line is `-- param: NAME …` or the like.
fn declares(line: &str, name: &str) -> bool {
    let rest = line.trim_start().strip_prefix("--").map(str::trim_start);
    let rest = rest.and_then(|rest| rest.split_once(':'));
    rest.is_some_and(|(word, rest)| {
        let declared = rest.trim_start().split([' ', '\t', ':', '[', '=']).next();
        matches!(word.trim_end(), "param" | "order" | "file") && declared == Some(name)
    })
}

fn uses(line: &str, name: &str) -> bool {
    line.split(':').skip(1).any(|rest| {
        let rest = rest.strip_prefix(name);
        rest.is_some_and(|rest| {
            !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        })
    })
}

fn find_line(
    core: &Core,
    files: &[PathBuf],
    is_meant: impl Fn(&str) -> bool,
) -> Option<(PathBuf, usize)> {
    files.iter().find_map(|file| {
        let text = excerpt::source(&core.dir, file)?;
        let at = text.lines().position(&is_meant)?;
        Some((file.clone(), at + 1))
    })
}

/// The files in which a page's lines may stand: its own, and those of its partials.
pub(crate) fn files_of(core: &Core, page: &Page) -> Vec<PathBuf> {
    let stem = page.route.replace('{', "[").replace('}', "]");
    let stem = format!("pages{}", stem.trim_end_matches('/'));
    let endings = [".sql", ".sqlite.sql", ".postgres.sql"];
    let own = [stem.clone(), format!("{stem}/index")].into_iter();
    let own = own.flat_map(|stem| endings.map(|ending| PathBuf::from(format!("{stem}{ending}"))));
    let own = own.filter(|file: &PathBuf| core.dir.join(file).is_file());
    let partials = page.queries.iter().map(|query| query.file.clone());
    let mut all: Vec<PathBuf> = own.chain(partials).collect();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_parameter_is_found() {
        for (line, expected) in [
            ("-- param: id integer", true),
            ("--param:id", true),
            ("-- param: track integer[]", false),
            ("-- param: identity text", false),
            ("-- order: id: a = \"a\"", true),
            ("-- name: id :one", false),
            ("select :id", false),
        ] {
            assert_eq!(declares(line, "id"), expected, "{line}");
        }
        assert!(declares("-- param: id[] integer", "id"));
        for (line, expected) in [
            ("where id = :id;", true),
            ("where id = :ids;", false),
            (":x, :id)", true),
            ("id", false),
        ] {
            assert_eq!(uses(line, "id"), expected, "{line}");
        }
    }
}
