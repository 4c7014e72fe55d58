//! Answers that are errors: the one place where they are made.
//!
//! A page of the site's own is `pages/422.html` for one status, `pages/4xx.html` for a kind of
//! them. It is given the status, its name and the sentence that is sent as plain text where there
//! is no such page; of the request it knows the parts of the path that its folder names. So it is
//! the same for each visitor, and is prepared once for each sentence. Not one of these answers is
//! stored under the key of a page.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use millpond_http::{Parts, Prepared, Request, Response, names_html, path, reason_phrase};
use millpond_pages::Refused;
use minijinja::{ErrorKind, Value};
use parking_lot::Mutex;

use super::{own_page, problem_details::wants_json};
use crate::{core::Generation, dev::report};
use millpond_site_compile::{
    compile::Pages,
    error_pages::ErrorPage,
    page_type::HTML,
    refusal::upload::UploadRefusal,
    template::{failure as render_fault, render_failure},
};
use millpond_site_format::{Problem, params::FieldError};

/// The most answers that are prepared for later requests; of a longer or later sentence each answer
/// is rendered anew. Sentences are the site's, but a database may quote a value in one.
const MOST_PREPARED: usize = 64;
const LONGEST_SENTENCE: usize = 200;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorAnswer<'e> {
    pub(crate) status: u16,
    /// For the visitor.
    pub(crate) sentence: &'e str,
    /// Further fields, such as `Retry-After`.
    pub(crate) fields: &'e [(&'e str, &'e str)],
    /// Faults of single parameters.
    pub(crate) errors: &'e [FieldError],
    /// True if the address is for programs, which get JSON.
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

    /// The sentence as a page for a browser, else as plain text.
    fn plain(&self, is_for_browser: bool) -> Response {
        if is_for_browser {
            let told = (reason_phrase(self.status), self.sentence);
            return own_page::refusal(self.status, told, &self.lines());
        }
        self.response("text/plain; charset=utf-8", format!("{}\n", self.sentence))
    }

    /// The further fields as lines.
    fn lines(&self) -> String {
        let lines = self.fields.iter();
        let lines = lines.map(|(name, value)| format!("{name}: {value}\r\n"));
        lines.collect()
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

/// Returns the answer to a form that is refused for its files.
pub(crate) fn refusal_answer(refusal: &UploadRefusal) -> ErrorAnswer<'_> {
    let answer = ErrorAnswer::new(refusal.status, &refusal.sentence);
    match refusal.status {
        503 | 507 => answer.with(&[("Retry-After", "10")]),
        _ => answer,
    }
}

/// 503 while the database is away.
pub(crate) const AWAY: ErrorAnswer<'static> = ErrorAnswer::unavailable(
    "The site cannot reach its data just now. Please try again in a moment.",
);

/// The answers that were made of the site's own error pages.
#[derive(Debug, Default)]
pub(crate) struct PreparedErrors(Mutex<BTreeMap<PreparedKey, Arc<Prepared>>>);

/// The name of the page, the values in its path, the status and the sentence.
type PreparedKey = (String, Vec<String>, u16, Box<str>);

impl Generation {
    pub(crate) fn refuse(&self, request: &Request<'_>, error: &ErrorAnswer<'_>) -> Response {
        if wants_json(request, error.is_api) {
            return error.problem();
        }
        let Some(prepared) = self.prepared_error(request, error) else {
            // The developer's browser shows the sentence on a page of its own.
            return error.plain(names_html(request) && !self.is_dev);
        };
        let response = prepared.respond(request, Bytes::from(error.lines()));
        match self.is_dev {
            // The site's own page need not show the sentence.
            true => response.with_note(report::of_refusal(request, error.sentence)),
            false => response,
        }
    }

    /// The answer while there is too much to do.
    #[cold]
    pub(crate) fn refuse_busy(
        &self,
        request: &Request<'_>,
        is_api: bool,
        status: u16,
        refused: Refused,
    ) -> Response {
        let seconds = refused.retry_after().to_string();
        let fields = [("Retry-After", &*seconds)];
        let error = ErrorAnswer { status, ..BUSY };
        self.refuse(request, &error.with(&fields).of_api(is_api))
    }

    /// The site's own page for an error of this request, if it has one.
    fn prepared_error(
        &self,
        request: &Request<'_>,
        error: &ErrorAnswer<'_>,
    ) -> Option<Arc<Prepared>> {
        let fields = [("Cache-Control", "no-store")];
        let pages = &self.pages.error_pages;
        if !pages.has_folders() {
            return self.prepare_error(pages.of_site(error.status)?, error, &fields);
        }
        let path = path::normalize(request.path).unwrap_or_default();
        self.prepare_error(pages.at(&path, error.status)?, error, &fields)
    }

    /// The page for a 404 or a 500 that a folder at this request's path has; none where that of the
    /// whole site is shown.
    #[cold]
    pub(crate) fn folder_error(
        &self,
        request: &Request<'_>,
        (status, sentence): (u16, &str),
    ) -> Option<Arc<Prepared>> {
        let pages = &self.pages.error_pages;
        if !pages.has_folders() {
            return None;
        }
        // A client that prefers JSON gets that.
        let fields = [("Cache-Control", "no-cache"), ("Vary", "Accept")];
        let path = path::normalize(request.path).ok()?;
        let page = pages.in_folder(&path, status)?;
        self.prepare_error(page, &ErrorAnswer::new(status, sentence), &fields)
    }

    fn prepare_error(
        &self,
        page: ErrorPage,
        error: &ErrorAnswer<'_>,
        fields: &[(&str, &str)],
    ) -> Option<Arc<Prepared>> {
        // Visitors can think of any number of values, so only those of a list are kept.
        let is_kept = page.has_known_values && error.sentence.len() <= LONGEST_SENTENCE;
        let sentence = Box::from(error.sentence);
        let key = (page.template, page.values, error.status, sentence);
        if let Some(prepared) = self.errors.0.lock().get(&key) {
            return Some(prepared.clone());
        }
        let (template, values, ..) = &key;
        let params = page.names.iter().cloned().zip(values.iter().cloned());
        // A page that fails with this sentence only: the plain answer is better than none.
        let html = render(
            &self.pages,
            template,
            params.collect(),
            (error.status, error.sentence),
        );
        let prepared = Arc::new(Prepared::new(Parts {
            status: error.status,
            media_type: HTML,
            fields,
            body: html.ok()?.into(),
            last_modified: None,
            compressible: true,
        }));
        let mut kept = self.errors.0.lock();
        if is_kept && kept.len() < MOST_PREPARED {
            kept.insert(key, prepared.clone());
        }
        Some(prepared)
    }
}

/// Lists the faults of the error pages: each is rendered once for each value in its path that is
/// known. What is undefined for other values is a note of `check`, as on any page.
pub(crate) fn faults(pages: &Pages) -> Vec<Problem> {
    let samples = pages.error_pages.samples();
    let rendered = samples.map(|(page, status)| {
        let params = page.names.into_iter().zip(page.values);
        let told = (status, "A sentence.");
        let rendered = rendered(pages, &page.template, params.collect(), told);
        let failed = rendered.err().filter(|error| {
            let is_undefined = render_failure(error).error.kind() == ErrorKind::UndefinedError;
            page.has_known_values || !is_undefined
        })?;
        Some(fault(&page.template, &failed))
    });
    rendered.flatten().collect()
}

/// Renders an error page. `params` are the parts of the path that its folder names.
pub(crate) fn render(
    pages: &Pages,
    name: &str,
    params: BTreeMap<String, String>,
    told: (u16, &str),
) -> Result<String, Problem> {
    rendered(pages, name, params, told).map_err(|error| fault(name, &error))
}

fn rendered(
    pages: &Pages,
    name: &str,
    params: BTreeMap<String, String>,
    (status, sentence): (u16, &str),
) -> Result<String, minijinja::Error> {
    let mut given = pages.partials.without_rows(name);
    given.insert("status".to_owned(), status.into());
    given.insert("title".to_owned(), reason_phrase(status).into());
    given.insert("message".to_owned(), sentence.into());
    if !params.is_empty() {
        given.insert("params".to_owned(), Value::from(params));
    }
    let template = pages.environment.get_template(name);
    template.and_then(|template| template.render(Value::from(given)))
}

fn fault(name: &str, error: &minijinja::Error) -> Problem {
    Problem::new(name, render_fault(error))
        .hint("an error page has `status`, `title`, `message` and the `params` of its folder, no queries and no request; those of partials have no rows there")
}
