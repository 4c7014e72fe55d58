//! The page of an error, and the page of a folder with faults, as HTML or JSON.

use std::{borrow::Cow, path::Path, sync::Arc};

use bytes::Bytes;
use millpond_db as db;
use millpond_http::{Body, Response, reason_phrase};
use minijinja::{Environment, Value};
use serde_json::{Value as Json, json};

use super::{
    excerpt,
    inject::{self, tag},
};
use crate::core::problem_details;
use millpond_site_compile::{object::template_value, page_type::HTML};
use millpond_site_format::Problem;

/// The values on the page are a visitor's and the page has source texts: nothing of it is run, and
/// nothing is loaded or sent elsewhere. Styles and pictures of the site are those of its own page
/// for the error, which is shown in a frame where nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      font-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Fields of the site's own response that hold for the page of its error too.
const TAKEN: [&str; 5] = [
    "allow",
    "cache-status",
    "retry-after",
    "set-cookie",
    "www-authenticate",
];

/// Bytes of an error that is a sentence.
const LONGEST_SENTENCE: usize = 4096;
/// Bytes of a page of the site's own that is shown within the page of an error.
const LONGEST_PAGE: usize = 1 << 20;

/// How an error is shown to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    Html { is_after_post: bool },
    Json,
}

/// True if a response is an error in a sentence, which a browser shows as such.
pub(super) fn is_sentence(response: &Response) -> bool {
    let media_type = response.field("content-type").unwrap_or_default();
    response.status() >= 400
        && media_type.starts_with("text/plain")
        && !text(response, LONGEST_SENTENCE).is_empty()
}

/// The body of a response that has at most this many bytes.
fn text(response: &Response, longest: usize) -> Cow<'_, str> {
    match response.body() {
        Body::Bytes(text) if text.len() <= longest => String::from_utf8_lossy(text),
        _ => Cow::default(),
    }
}

/// True if a response is an error for programs.
pub(super) fn is_problem(response: &Response) -> bool {
    response.field("content-type") == Some(problem_details::JSON)
}

/// The page of an error in place of the site's `response`.
pub(super) fn of_failure(
    facts: &Json,
    response: &Response,
    state: &str,
    format: ErrorFormat,
) -> Response {
    let status = response.status();
    let mut facts = facts.clone();
    if is_sentence(response) {
        let text = text(response, LONGEST_SENTENCE);
        facts["sees"] = text.trim().into();
        if facts["cause"].is_null() {
            facts["cause"] = text.trim().trim_end_matches('.').into();
        }
    } else if is_problem(response) {
        let document = text(response, LONGEST_PAGE);
        facts["document"] = serde_json::from_str(&document).unwrap_or_default();
    } else if response.field("content-encoding").is_none() {
        facts["own_page"] = text(response, LONGEST_PAGE).into();
    }
    let taken = inject::fields(response)
        .filter(|(name, _)| TAKEN.iter().any(|taken| name.eq_ignore_ascii_case(taken)));
    let taken = taken.map(|(name, value)| (name.to_owned(), value.to_owned()));
    respond(status, facts, &taken.collect::<Vec<_>>(), state, format)
}

/// The page of a folder that cannot be used. `is_open` if an earlier reading of it is in use.
pub(super) fn of_faults(
    dir: &Path,
    problems: &[Problem],
    is_open: bool,
    state: &str,
    format: ErrorFormat,
) -> Response {
    let problems: Json = problems.iter().map(|problem| fault(dir, problem)).collect();
    let facts = json!({
        "problems": problems,
        "is_open": is_open,
        "cause": "The files of the site have faults",
    });
    respond(500, facts, &[], state, format)
}

fn fault(dir: &Path, problem: &Problem) -> Json {
    let shown = excerpt::source(dir, &problem.file).zip(problem.at);
    let excerpt = shown.map(|(text, (line, column))| {
        excerpt::lines(&text, line, &excerpt::word(&text, line, column))
    });
    json!({
        "cause": problem.message,
        "hint": problem.hint,
        "place": {
            "file": problem.file.display().to_string(),
            "line": problem.at.map(|(line, _)| line),
            "column": problem.at.map(|(_, column)| column),
        },
        "excerpt": excerpt,
    })
}

fn respond(
    status: u16,
    mut facts: Json,
    taken: &[(String, String)],
    state: &str,
    format: ErrorFormat,
) -> Response {
    facts["status"] = status.into();
    facts["reason"] = reason_phrase(status).into();
    let (media_type, body) = match format {
        ErrorFormat::Json => (problem_details::JSON, json(&facts)),
        ErrorFormat::Html { is_after_post } => {
            facts["is_after_post"] = is_after_post.into();
            if facts["document"].is_object() {
                facts["document"] = format!("{:#}", facts["document"]).into();
            }
            (HTML, html(&facts, &tag(state, is_after_post)))
        }
    };
    let mut builder = Response::builder(status)
        .field("Content-Type", media_type)
        .field("X-Content-Type-Options", "nosniff")
        .field("Cache-Control", "no-store")
        .field("Content-Security-Policy", POLICY)
        .field("Referrer-Policy", "no-referrer");
    for (name, value) in taken {
        builder = builder.field(name, value);
    }
    builder.body(Bytes::from(body))
}

fn html(facts: &Json, script: &str) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    let source = include_str!("page.html");
    let rendered = environment.render_named_str(
        "page.html",
        source,
        minijinja::context! {
            facts => template_value(&db::Value::Json(Arc::new(facts.clone()))),
            style => Value::from_safe_string(include_str!("style.css").to_owned()),
            script => Value::from_safe_string(script.to_owned()),
        },
    );
    rendered.unwrap_or_else(|error| format!("<!doctype html><pre>{error}"))
}

/// Writes the document that a program gets without `--dev`, with the cause, its place and the
/// remedy as further members (RFC 9457 section 3.2).
fn json(facts: &Json) -> String {
    let mut document = match &facts["document"] {
        Json::Object(_) => facts["document"].clone(),
        _ => json!({
            "type": "about:blank",
            "title": facts["reason"],
            "status": facts["status"],
            "detail": facts["sees"].as_str().or(facts["cause"].as_str()),
        }),
    };
    let add = |document: &mut Json, facts: &Json| {
        for name in ["cause", "hint", "place"] {
            if !facts[name].is_null() {
                document[name] = facts[name].clone();
            }
        }
    };
    match facts["problems"].as_array() {
        None => add(&mut document, facts),
        Some(problems) => {
            let short = problems.iter().map(|problem| {
                let mut short = json!({});
                add(&mut short, problem);
                short
            });
            document["problems"] = short.collect();
        }
    }
    document.to_string()
}
