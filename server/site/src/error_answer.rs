//! Answers that are errors: the one place where they are made.
//!
//! A page of the site's own is `pages/422.html` for one status, `pages/4xx.html` for a kind of
//! them. It is given the status, its name and the sentence that is sent as plain text where there
//! is no such page; it knows nothing of the request. So it is the same for each visitor, and is
//! prepared once for each sentence. Not one of these answers is stored under the key of a page.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use millpond_http::{Parts, Prepared, Request, Response, reason_phrase};
use minijinja::Value;
use parking_lot::Mutex;

use crate::{
    Problem,
    compile::Pages,
    core::Generation,
    dev,
    page_type::HTML,
    problem_details::{FieldError, wants_json},
    suggest::closest,
    template::failure as render_fault,
};

/// The most answers that are prepared for later requests; of a longer or later sentence each answer
/// is rendered anew. Sentences are the site's, but a database may quote a value in one.
const MOST_PREPARED: usize = 64;
const LONGEST_SENTENCE: usize = 200;

/// An error to answer with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorAnswer<'e> {
    pub(crate) status: u16,
    /// For the visitor.
    pub(crate) sentence: &'e str,
    /// Further fields, such as `Retry-After`.
    pub(crate) fields: &'e [(&'e str, &'e str)],
    /// What is wrong with single parameters.
    pub(crate) errors: &'e [FieldError],
    /// Whether the address is for programs, which get JSON.
    pub(crate) is_api: bool,
}

impl<'e> ErrorAnswer<'e> {
    pub(crate) const fn new(status: u16, sentence: &'e str) -> Self {
        Self {
            status,
            sentence,
            fields: &[],
            errors: &[],
            is_api: false,
        }
    }

    pub(crate) const fn with(self, fields: &'e [(&'e str, &'e str)]) -> Self {
        Self { fields, ..self }
    }

    pub(crate) const fn errors(self, errors: &'e [FieldError]) -> Self {
        Self { errors, ..self }
    }

    pub(crate) const fn of_api(self, is_api: bool) -> Self {
        Self { is_api, ..self }
    }

    /// 503 with the advice to come back.
    const fn unavailable(sentence: &'e str) -> Self {
        Self::new(503, sentence).with(&[("Retry-After", "1")])
    }

    /// The sentence as a small page, because a person at a form reads it.
    fn plain(&self) -> Response {
        self.response("text/plain; charset=utf-8", format!("{}\n", self.sentence))
    }

    /// An answer that is made for one request.
    pub(crate) fn response(&self, media_type: &str, body: String) -> Response {
        let response = Response::builder(self.status)
            .field("Content-Type", media_type)
            .field("X-Content-Type-Options", "nosniff")
            .field("Cache-Control", "no-store");
        let fields = self.fields.iter();
        let response = fields.fold(response, |response, (name, value)| {
            response.field(name, value)
        });
        response.body(body)
    }
}

/// 503 while too much is asked for.
pub(crate) const BUSY: ErrorAnswer<'static> =
    ErrorAnswer::unavailable("The site is too busy just now. Please try again in a moment.");

/// 503 where a statement reached its time limit: as a rule a fault of the site, but another
/// program's lock may be the reason.
pub(crate) const SLOW: ErrorAnswer<'static> =
    ErrorAnswer::unavailable("This page takes too long to make. Please try again in a moment.");

/// 503 while the database is away.
pub(crate) const AWAY: ErrorAnswer<'static> = ErrorAnswer::unavailable(
    "The site cannot reach its data just now. Please try again in a moment.",
);

/// The answers that were made of the site's own error pages.
#[derive(Debug, Default)]
pub(crate) struct PreparedErrors(Mutex<BTreeMap<StatusAndSentence, Arc<Prepared>>>);

type StatusAndSentence = (u16, Box<str>);

impl Generation {
    /// The answer for an error.
    pub(crate) fn refuse(&self, request: &Request<'_>, error: &ErrorAnswer<'_>) -> Response {
        if wants_json(request, error.is_api) {
            return error.problem();
        }
        let Some(prepared) = self.prepared_error(error) else {
            return error.plain();
        };
        let lines = error.fields.iter();
        let lines: String = lines
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let response = prepared.respond(request, Bytes::from(lines));
        match &self.dev {
            // The site's own page need not show the sentence.
            Some(dev) => dev.mark(response, dev::of_refusal(request, error.sentence)),
            None => response,
        }
    }

    /// The site's own page for an error, if it has one.
    fn prepared_error(&self, error: &ErrorAnswer<'_>) -> Option<Arc<Prepared>> {
        let pages = &self.pages;
        let name = pages.error_pages.template(error.status)?;
        let key = (error.status, Box::from(error.sentence));
        if let Some(prepared) = self.errors.0.lock().get(&key) {
            return Some(prepared.clone());
        }
        // A page that fails with this sentence only: the plain answer is better than none.
        let html = render(pages, &name, error.status, error.sentence).ok()?;
        let prepared = Arc::new(Prepared::new(Parts {
            status: error.status,
            media_type: HTML,
            fields: &[("Cache-Control", "no-store")],
            body: html.into(),
            last_modified: None,
            compressible: true,
        }));
        let mut kept = self.errors.0.lock();
        if kept.len() < MOST_PREPARED && error.sentence.len() <= LONGEST_SENTENCE {
            kept.insert(key, prepared.clone());
        }
        Some(prepared)
    }
}

/// The names of the site's error pages: `404`, `5xx`.
#[derive(Debug, Default)]
pub(crate) struct ErrorPages(BTreeSet<String>);

impl ErrorPages {
    /// Whether a page of this name is an error page.
    pub(crate) fn is_name(stem: &str) -> bool {
        let status = stem.parse::<u16>().ok().filter(|_| stem.len() == 3);
        status.is_some_and(|status| (400..600).contains(&status)) || matches!(stem, "4xx" | "5xx")
    }

    /// Adds the error page of this name.
    ///
    /// # Errors
    /// HTTP has no such status.
    pub(crate) fn add(&mut self, stem: &str) -> Result<(), Problem> {
        if let Some(status) = stem.parse().ok().filter(|status| !is_known(*status)) {
            let known = (400..600).filter(|status| is_known(*status));
            let known: Vec<String> = known.map(|status| status.to_string()).collect();
            let message = format!("there is no status {status}, so this error page is never shown");
            let problem = Problem::new(format!("pages/{stem}.html"), message);
            return Err(match closest(stem, known.iter().map(String::as_str)) {
                Some(near) => problem.hint(format!("did you mean `pages/{near}.html`?")),
                None => problem.hint("`pages/4xx.html` is shown for those without a page"),
            });
        }
        self.0.insert(stem.to_owned());
        Ok(())
    }

    /// Whether there is a page for exactly this status.
    pub(crate) fn has(&self, status: u16) -> bool {
        self.0.contains(&status.to_string())
    }

    /// The template of a status, or of its kind.
    pub(crate) fn template(&self, status: u16) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let of_kind = format!("{}xx", status / 100);
        let names = [status.to_string(), of_kind].into_iter();
        let found = names.into_iter().find(|name| self.0.contains(name));
        found.map(|name| format!("pages/{name}.html"))
    }

    /// What is wrong with the pages: each is rendered once.
    pub(crate) fn faults(pages: &Pages) -> Vec<Problem> {
        let rendered = pages.error_pages.0.iter().map(|stem| {
            let status = stem.replace("xx", "00").parse().unwrap_or(500);
            let name = format!("pages/{stem}.html");
            render(pages, &name, status, "A sentence.").map(drop)
        });
        rendered.filter_map(Result::err).collect()
    }
}

fn is_known(status: u16) -> bool {
    reason_phrase(status) != "Unknown"
}

/// What an error page is given.
pub(crate) const ROOTS: &[&str] = &["status", "title", "message"];

/// Renders an error page.
pub(crate) fn render(
    pages: &Pages,
    name: &str,
    status: u16,
    sentence: &str,
) -> Result<String, Problem> {
    let given = minijinja::context! {
        status => status, title => reason_phrase(status), message => sentence,
        ..Value::from(pages.partials.without_rows(name))
    };
    let template = pages.environment.get_template(name);
    let html = template.and_then(|template| template.render(given));
    html.map_err(|error| {
        Problem::new(name, render_fault(&error))
            .hint("an error page has `status`, `title` and `message`, no queries and no request; those of partials have no rows there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_error_pages() {
        for (stem, is_one) in [
            ("404", true),
            ("422", true),
            ("4xx", true),
            ("5xx", true),
            ("399", false),
            ("600", false),
            ("0404", false),
            ("+404", false),
            ("3xx", false),
            ("errors/404", false),
            ("404/index", false),
            ("2024", false),
        ] {
            assert_eq!(ErrorPages::is_name(stem), is_one, "{stem}");
        }
    }

    #[test]
    fn the_page_of_the_status_comes_before_that_of_its_kind() {
        let mut pages = ErrorPages::default();
        assert_eq!(pages.template(404), None);
        for stem in ["4xx", "422"] {
            pages.add(stem).unwrap();
        }
        assert_eq!(pages.template(422).as_deref(), Some("pages/422.html"));
        assert_eq!(pages.template(404).as_deref(), Some("pages/4xx.html"));
        assert_eq!(pages.template(503), None);
        let unknown = pages.add("419").unwrap_err().to_string();
        assert!(unknown.contains("there is no status 419"), "{unknown}");
    }
}
