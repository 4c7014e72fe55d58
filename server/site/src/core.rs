//! What all workers of a site share.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use millpond_db::{Database, Error};
use millpond_http::{Body, Parts, Prepared, Request, Response};

use crate::{
    addresses::Addresses,
    cached::{Cached, PageFailure, SiteStore},
    compile::Pages,
    compress::Compressor,
    page_type::HTML,
    params::{Param, refused, unusable},
    rules::Rules,
    session::{Attempts, Passwords, RESERVED, Sessions},
    statics::Statics,
    submit::refusal,
};

/// Everything except the pages, for the whole life of a site.
pub(crate) struct Core {
    pub(crate) dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) store: Arc<SiteStore>,
    pub(crate) compressor: Compressor,
    pub(crate) passwords: Passwords,
    pub(crate) attempts: Attempts,
    /// Whether it was said that browsers drop the session's cookie.
    pub(crate) has_told_of_http: AtomicBool,
    pub(crate) cache: bool,
    /// True if links may lead out of `static/`. The watch is opened with this setting, so it holds
    /// until the site stops.
    pub(crate) follow_links: bool,
    pub(crate) current: ArcSwap<Generation>,
    /// The edition of `current`; set after each replacement.
    pub(crate) edition: Arc<AtomicU64>,
}

/// One reading of the site folder.
pub(crate) struct Generation {
    /// How many readings of the folder were in use before this one.
    pub(crate) edition: u64,
    /// Part of every key; grows when pages or templates have changed.
    pub(crate) number: u32,
    pub(crate) fingerprint: u64,
    pub(crate) pages: Arc<Pages>,
    pub(crate) statics: Arc<Statics>,
    pub(crate) addresses: Addresses,
    /// None where the configuration has no rules: then a request costs a look at this.
    pub(crate) rules: Option<Rules>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) not_found: Arc<Prepared>,
    pub(crate) error: Arc<Prepared>,
}

impl Core {
    /// Tells the owner.
    pub(crate) fn log(&self, message: &str) {
        eprintln!("millpond: {message}");
    }

    /// Reports the error to the owner, and returns what the visitor may know. A malformed parameter
    /// is the visitor's mistake and is not logged.
    pub(crate) fn failure(&self, route: &str, params: &[Param], error: &Error) -> PageFailure {
        if let Error::Parameter { name, message } = error {
            let is_part = |param: &Param| param.name == *name && param.in_path.is_some();
            return match params.iter().any(is_part) {
                true => PageFailure::NoSuchPage,
                false => PageFailure::Parameter(refused(name, message).into()),
            };
        }
        self.log(&format!("{route}: {error}"));
        match error {
            Error::Value { names, .. } => {
                let names = names.iter().map(String::as_str);
                let names: Vec<&str> = names.filter(|name| !name.starts_with(RESERVED)).collect();
                PageFailure::Parameter(unusable(&names).into())
            }
            Error::Overloaded | Error::Timeout | Error::Unavailable { .. } => {
                PageFailure::Unavailable
            }
            _ => PageFailure::Internal,
        }
    }
}

impl Generation {
    /// The canonical address for a path at which no page answers: the address of a page has no
    /// slash at its end, the address of a folder has one. Both are in normal form.
    pub(crate) fn canonical<'a>(&'a self, path: &'a str) -> Option<&'a str> {
        if let Some(to) = self.addresses.moved(path) {
            return Some(to);
        }
        let without = path.strip_suffix('/')?.trim_end_matches('/');
        let is_page = !without.is_empty() && self.pages.router.find(without).is_some();
        is_page.then_some(without)
    }

    /// The path whose page answers a rewritten path, which the client does not see: the path
    /// itself, or the path to which a client would be redirected. A redirect here would give the
    /// client an address from which it may be sent back.
    pub(crate) fn place_of<'a>(&'a self, path: &'a str) -> &'a str {
        let answers = self.pages.router.find(path).is_some()
            || self.addresses.behind(&self.statics, path).is_some();
        if answers {
            return path;
        }
        self.canonical(path).unwrap_or(path)
    }

    /// The response that a kept value gives.
    pub(crate) fn respond(
        &self,
        value: &Arc<Cached>,
        request: &Request<'_>,
        extra: Bytes,
    ) -> Response {
        match &**value {
            Cached::Page(prepared) => prepared.respond(request, extra),
            Cached::Missing => self.not_found.respond(request, extra),
            Cached::Failed(PageFailure::Unavailable) => unavailable(),
            Cached::Failed(PageFailure::Parameter(sentence)) => refusal(400, sentence),
            Cached::Failed(PageFailure::NoSuchPage) => {
                self.not_found.respond(request, Bytes::new())
            }
            Cached::Failed(PageFailure::Internal) | Cached::Object(_) | Cached::Bundle(_) => {
                self.error.respond(request, Bytes::new())
            }
        }
    }
}

/// 503 with the advice to come back.
pub(crate) fn unavailable() -> Response {
    Response::builder(503)
        .field("Retry-After", "1")
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("X-Content-Type-Options", "nosniff")
        .field("Cache-Control", "no-store")
        .body(Bytes::from_static(
            b"The site is too busy just now. Please try again in a moment.\n",
        ))
}

/// An error page: the site's own, or a plain one; `before` if that has the same content.
pub(crate) fn error_page(
    status: u16,
    (title, sentence): (&str, &str),
    own: Option<Bytes>,
    before: Option<&Arc<Prepared>>,
) -> Arc<Prepared> {
    let body = own.unwrap_or_else(|| {
        Bytes::from(format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1.5rem}}</style>\n<h1>{title}</h1>\n<p>{sentence}</p>\n"
        ))
    });
    let same = |before: &&Arc<Prepared>| matches!(before.body(), Body::Bytes(old) if *old == body);
    if let Some(before) = before.filter(same) {
        return before.clone();
    }
    let parts = Parts {
        status,
        media_type: HTML,
        fields: &[("Cache-Control", "no-cache")],
        body,
        last_modified: None,
        compressible: true,
    };
    Arc::new(Prepared::new(parts))
}
