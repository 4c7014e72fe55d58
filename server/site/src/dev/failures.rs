//! What is known of a failed request.

use std::{path::Path, sync::Arc, time::Duration};

use millpond_db::{Error, Value};
use millpond_http::Request;
use serde_json::{Value as Json, json};

use super::{
    excerpt,
    report::{Report, sentence},
    scope,
    suggestion::suggestion,
};
use crate::{answer::visitor::Visitor, core::Core};
use millpond_site_compile::{
    object::QueryResult,
    page::{Form, FormStep, Page, PageQuery, redirect_target::ArgumentSource},
    template::{file_of, render_failure},
};
use millpond_site_format::{access::RESERVED, config::show_time};

/// True if an error is a mistake in what the visitor has sent, which the site answers as it is to.
pub(crate) fn is_of_visitor(error: &Error) -> bool {
    matches!(error, Error::Parameter { .. })
}

/// The report of a template that failed. `database` is the time that its queries took; zero if
/// their results were in memory.
pub(crate) fn of_render(
    page: &Page,
    values: &[Value],
    objects: &[Arc<QueryResult>],
    database: Duration,
    visitor: &Visitor,
    error: &minijinja::Error,
) -> Arc<Report> {
    let failure = render_failure(error);
    let mut facts = of_page(page, values, visitor);
    facts["cause"] = sentence(&match std::error::Error::source(failure.error) {
        Some(cause) => format!("{}, because {cause}", failure.sentence),
        None => failure.sentence.clone(),
    });
    facts["hint"] = suggestion(&failure.sentence, page).into();
    facts["through"] = failure.through.into();
    let inner = failure.error;
    let file = inner.name().map(file_of).unwrap_or_default();
    let source = inner.template_source().unwrap_or_default();
    facts["place"] = json!({ "file": file, "line": inner.line() });
    facts["excerpt"] = match (inner.range(), inner.line()) {
        (Some(range), _) => {
            let problem = millpond_site_format::Problem::new("", "").at_offset(source, range.start);
            if let Some((line, column)) = problem.at {
                facts["place"] = json!({ "file": file, "line": line, "column": column });
            }
            excerpt::around(source, range)
        }
        (None, Some(line)) => excerpt::lines(source, line, &(0..0)),
        (None, None) => Json::Null,
    };
    for (query, object) in facts["queries"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .zip(objects)
    {
        query["rows"] = scope::rows(object);
    }
    facts["time"] = match (page.queries.len(), database) {
        (0, _) => Json::Null,
        (_, Duration::ZERO) => "from memory".into(),
        (1, time) => format!("the query took {}", milliseconds(time)).into(),
        (_, time) => format!("the queries took {}", milliseconds(time)).into(),
    };
    Report::of_failure(facts)
}

/// The report of a page whose queries failed.
pub(crate) fn of_read(
    core: &Core,
    page: &Page,
    values: &[Value],
    visitor: &Visitor,
    error: &Error,
) -> Arc<Report> {
    let mut facts = of_page(page, values, visitor);
    let failed = page.query_of(error);
    describe(
        core,
        &mut facts,
        error,
        failed.map(|query| (&*query.file, query.line)),
    );
    let all = facts["queries"].as_array_mut().into_iter().flatten();
    for (query, shown) in page.queries.iter().zip(all) {
        shown["has_failed"] = failed
            .is_some_and(|failed| std::ptr::eq(failed, query))
            .into();
    }
    Arc::new(Report {
        facts,
        is_refusal: is_of_visitor(error),
    })
}

/// The report of a form whose statements failed.
pub(crate) fn of_form(
    core: &Core,
    form: &Form,
    values: &[Value],
    request: &Request<'_>,
    error: &Error,
) -> Arc<Report> {
    let sql = error.sql();
    let has_failed = |step: &&FormStep| sql == Some(step.query.sql());
    let failed = form.steps.iter().find(has_failed);
    let mut facts = of_statements(form, values, request);
    let all = facts["queries"].as_array_mut().into_iter().flatten();
    for (step, shown) in form.steps.iter().zip(all) {
        shown["has_failed"] = has_failed(&step).into();
    }
    let line = failed.map_or(1, |step| step.line);
    describe(core, &mut facts, error, Some((&form.file, line)));
    if let Error::Constraint {
        kind,
        violated,
        sql,
        ..
    } = error
        && let Some(hint) = form.texts.left_out(*kind, violated, sql)
    {
        facts["hint"] = hint.into();
    }
    Report::of_failure(facts)
}

/// Returns the members that all failures of a form have in common.
pub(super) fn of_statements(form: &Form, values: &[Value], request: &Request<'_>) -> Json {
    let hidden = passwords(form);
    // A password that was hashed meanwhile is hidden by its place.
    let shown = |at: usize, name: &str| match (hidden.contains(&at), values.get(at)) {
        (false, Some(value)) => scope::named(name, value),
        _ => json!({ "name": name, "kind": "hidden", "value": "hidden" }),
    };
    let params = form.params.iter().enumerate();
    let queries = form.steps.iter().map(|step| {
        let names = step.query.params();
        let given = step.bind.iter().zip(&*names).map(|(source, param)| match source {
            ArgumentSource::Param(at) => shown(*at, &param.name),
            ArgumentSource::Column { column, .. } => json!({
                "name": param.name, "kind": "column", "value": format!("the column {column} of a statement before"),
            }),
        });
        json!({
            "name": format!("line {}", step.line),
            "sql": step.query.sql().trim(),
            "params": given.filter(is_of_the_site).collect::<Json>(),
        })
    });
    json!({
        "route": form.route,
        "method": "POST",
        "params": params.map(|(at, param)| shown(at, &param.name)).collect::<Json>(),
        "queries": queries.collect::<Json>(),
        "request": scope::request(request, request.path),
    })
}

/// The places of a form's passwords among its values.
pub(super) fn passwords(form: &Form) -> Vec<usize> {
    let signing = &form.signing;
    let verified = signing.verify.as_ref().map(|verify| verify.password);
    signing.hashes.iter().copied().chain(verified).collect()
}

/// Returns the members that all failures of a page have in common.
pub(super) fn of_page(page: &Page, values: &[Value], visitor: &Visitor) -> Json {
    let request = visitor.request().as_request();
    let claims = visitor.session().into_iter();
    let claims = claims.flat_map(|session| session.claims.iter());
    json!({
        "route": page.route,
        "method": request.method,
        "params": scope::params(&page.params, values),
        "claims": claims.map(|(name, value)| scope::named(name, value)).collect::<Json>(),
        "queries": page.queries.iter().map(|query| of_query(query, values)).collect::<Json>(),
        "request": scope::request(&request, visitor.path()),
    })
}

fn of_query(query: &PageQuery, values: &[Value]) -> Json {
    let statement = query.statement(values);
    let names = statement.query.params();
    let params = statement.args.iter().zip(&*names);
    let params = params.filter_map(|(at, param)| Some(scope::named(&param.name, values.get(*at)?)));
    json!({
        "name": statement.name(query),
        "place": format!("{}:{}", query.file.display(), query.line),
        "sql": statement.query.sql().trim(),
        "params": params.filter(is_of_the_site).collect::<Json>(),
        "has_failed": false,
    })
}

/// Claims have names in the statements that no author has written.
fn is_of_the_site(param: &Json) -> bool {
    let name = param["name"].as_str().unwrap_or_default();
    !name.starts_with(RESERVED)
}

/// The error of a statement, with the place where the statement is written.
fn describe(core: &Core, facts: &mut Json, error: &Error, place: Option<(&Path, usize)>) {
    facts["cause"] = match error {
        Error::Sql { message, .. } => sentence(message),
        Error::Constraint { message, .. } => sentence(message),
        Error::Value { message, names, .. } => {
            let names: Vec<_> = names
                .iter()
                .filter(|name| !name.starts_with(RESERVED))
                .collect();
            facts["hint"] =
                "a value of the visitor that no statement can use is a 400; a parameter of a \
                             narrower type, or a check before the statement, refuses it earlier"
                    .into();
            sentence(&match &names[..] {
                [] => message.clone(),
                [name] => format!("a value of `{name}` cannot be used: {message}"),
                _ => format!("one of {names:?} cannot be used: {message}"),
            })
        }
        Error::Timeout { .. } => {
            facts["hint"] =
                "an index may be missing; `explain query plan` (SQLite) or `explain analyze` \
                             (PostgreSQL) shows what takes the time"
                    .into();
            let limit = show_time(core.statement_timeout);
            sentence(&format!(
                "the statement was ended, as it took longer than {limit} (database.statement_timeout)"
            ))
        }
        other => sentence(&other.to_string()),
    };
    if let Some((file, line)) = place {
        point_at(core, facts, file, line);
    }
}

/// Shows a line of a file of the site.
pub(super) fn point_at(core: &Core, facts: &mut Json, file: &Path, line: usize) {
    facts["place"] = json!({ "file": file.display().to_string(), "line": line });
    if let Some(text) = excerpt::source(&core.dir, file) {
        facts["excerpt"] = excerpt::lines(&text, line, &(0..0));
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}
