//! What all workers of a site share.

pub(crate) mod error_answer;
pub(crate) mod outages;
pub(crate) mod own_page;
pub(crate) mod problem_details;

use std::{
    borrow::Cow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use base_clock::Boottime;
use bytes::Bytes;
use millpond_db::{Database, Error};
use millpond_http::{Compressor, Network, Prepared, Request, Response};
use millpond_pages::Admission;

use crate::{
    answer::cached::{Cached, PageFailure, SiteStore},
    dev::{DevState, Report},
    labels::RouteNumbers,
    live::board::Board,
    log::Log,
    service::addresses::Addresses,
    session::{Attempts, Passwords, Sessions},
    statics::Statics,
    uploads::Uploads,
};
use error_answer::PreparedErrors;
use millpond_site_compile::{compile::Pages, page::Page};
use millpond_site_format::{
    access::RESERVED,
    config::show_time,
    params::{Param, refused, unusable},
    rules::Rules,
};
use outages::Outcomes;
use own_page::StatusPage;

/// Everything except the pages, for the whole life of a site.
pub(crate) struct Core {
    pub(crate) dir: PathBuf,
    pub(crate) database: Database,
    pub(crate) store: Arc<SiteStore>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) live: Arc<Board>,
    /// Clients without limits (`limits.client_exempt`).
    pub(crate) exempt: Vec<Network>,
    pub(crate) compressor: Compressor,
    pub(crate) passwords: Passwords,
    pub(crate) attempts: Attempts,
    /// True if it was said that browsers drop the session's cookie.
    pub(crate) has_told_of_http: AtomicBool,
    pub(crate) cache: bool,
    /// True if responses tell their times (`server.timing`).
    pub(crate) is_timed: bool,
    /// How long beyond the bound a page may be given if the database is away.
    pub(crate) stale_if_error: Duration,
    /// `database.statement_timeout`, for messages.
    pub(crate) statement_timeout: Duration,
    pub(crate) log: Arc<Log>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) routes: RouteNumbers,
    pub(crate) outcomes: Outcomes,
    /// True if links may lead out of `static/`. The watch is opened with this setting, so it holds
    /// until the site stops.
    pub(crate) follow_links: bool,
    pub(crate) current: ArcSwap<Generation>,
    /// The edition of `current`; set after each replacement.
    pub(crate) edition: Arc<AtomicU64>,
    /// For development only.
    pub(crate) dev: Option<Arc<DevState>>,
}

/// One reading of the site folder.
pub(crate) struct Generation {
    /// How many readings of the folder were in use before this one.
    pub(crate) edition: u64,
    /// Part of every key; grows when pages or templates have changed.
    pub(crate) number: u32,
    pub(crate) fingerprint: u64,
    pub(crate) pages: Arc<Pages>,
    /// The numbers of the routes of `pages`, by the places of their endpoints.
    pub(crate) routes: Box<[u32]>,
    pub(crate) statics: Arc<Statics>,
    pub(crate) addresses: Addresses,
    /// None where the configuration has no rules: then a request costs a look at this.
    pub(crate) rules: Option<Rules>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) not_found: StatusPage,
    pub(crate) error: StatusPage,
    /// `/robots.txt`, where the site has none and asks crawlers to stay away from pages.
    pub(crate) robots: Option<Arc<Prepared>>,
    /// Other error pages of the site's own.
    pub(crate) errors: PreparedErrors,
    /// True if the developer is told why a response is what it is.
    pub(crate) is_dev: bool,
}

impl Core {
    /// Tells the owner.
    pub(crate) fn log(&self, message: &str) {
        self.log.line(message);
    }

    /// A line that a request brings about.
    pub(crate) fn log_request(&self, message: &str) {
        self.log.line_of_request(message, Boottime::now());
    }

    /// The response, with why for the developer if it is an error. `report` is made in development
    /// only.
    #[cold]
    pub(crate) fn explained(
        &self,
        response: Response,
        report: impl FnOnce() -> Arc<Report>,
    ) -> Response {
        match &self.dev {
            Some(_) if response.status() >= 400 => response.with_note(report()),
            _ => response,
        }
    }

    /// Reports the error to the owner, and returns what the visitor may know. A malformed parameter
    /// is the visitor's mistake and is not logged. That the database is away is only counted: the
    /// [report](outages) says it once. `place` is where the statement is written.
    pub(crate) fn failure(
        &self,
        route: &str,
        params: &[Param],
        place: Option<&str>,
        error: &Error,
    ) -> PageFailure {
        let now = Boottime::now();
        let (failure, message) = match error {
            Error::Parameter {
                name,
                message,
                reported,
            } => {
                if let Some(reported) = reported {
                    let place = place.map_or_else(String::new, |place| format!("{place}: "));
                    let line = format!("{route}: {place}{name}: {reported}");
                    self.log.line_of_request(&line, now);
                }
                let is_part = |param: &Param| param.name == *name && param.in_path.is_some();
                return match params.iter().any(is_part) {
                    true => PageFailure::NoSuchPage,
                    false => PageFailure::Parameter {
                        sentence: refused(name, message).into(),
                        name: Some(name.as_str().into()),
                    },
                };
            }
            Error::Value { names, .. } => {
                let names = names.iter().map(String::as_str);
                let names: Vec<&str> = names.filter(|name| !name.starts_with(RESERVED)).collect();
                let failure = match names[..] {
                    // All its values are the session's, so no request gave one that is wrong.
                    [] => PageFailure::Internal,
                    _ => PageFailure::Parameter {
                        sentence: unusable(&names).into(),
                        name: match names[..] {
                            [name] => Some(name.into()),
                            _ => None,
                        },
                    },
                };
                (failure, error.to_string())
            }
            Error::Unavailable { message }
            | Error::OutcomeUnknown { message }
            | Error::Login { message } => {
                self.outcomes.failed(message, now);
                return PageFailure::Away;
            }
            Error::Overloaded => (
                PageFailure::BUSY,
                "the queue for the database is full (database.queue)".to_owned(),
            ),
            Error::Timeout { .. } => (
                PageFailure::Slow,
                format!(
                    "the query was ended, as it took longer than {} (database.statement_timeout)",
                    show_time(self.statement_timeout)
                ),
            ),
            Error::Locked { .. } => (PageFailure::BUSY, error.to_string()),
            Error::Sql { message, .. } if place.is_some() => {
                (PageFailure::Internal, message.clone())
            }
            other => (PageFailure::Internal, other.to_string()),
        };
        let line = match place {
            Some(place) => format!("{route}: {place}: {message}"),
            None => format!("{route}: {message}"),
        };
        self.log.line_of_request(&line, now);
        failure
    }
}

impl Generation {
    /// Returns a response at a path with the fields that rules add.
    pub(crate) fn with_fields(&self, path: &str, response: Response) -> Response {
        match &self.rules {
            Some(rules) => rules.with_fields_of(path, response),
            None => response,
        }
    }

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

    /// The path to which a client is led from a path at which neither a page nor a file answers:
    /// the canonical one, or the same with or without a slash at its end, if a redirect leads from
    /// there to a page or a file.
    pub(crate) fn moved_to<'a>(&'a self, path: &'a str) -> Option<Cow<'a, str>> {
        if let Some(to) = self.canonical(path) {
            return Some(Cow::Borrowed(to));
        }
        self.rules.as_ref()?.beside(path, |to| self.answers(to))
    }

    /// True if a page or a file answers at a path.
    pub(crate) fn answers(&self, path: &str) -> bool {
        let is_file = || self.addresses.find(&self.statics, path).is_some();
        self.pages.router.find(path).is_some() || is_file()
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

    /// The response that a kept value gives. A hit of a page is inlined.
    #[inline]
    pub(crate) fn respond(
        &self,
        page: &Page,
        value: &Arc<Cached>,
        request: &Request<'_>,
        extra: Bytes,
    ) -> Response {
        match &**value {
            Cached::Page(prepared) => prepared.respond(request, extra),
            other => self.respond_without_page(page, other, request, extra),
        }
    }

    #[cold]
    fn respond_without_page(
        &self,
        page: &Page,
        value: &Cached,
        request: &Request<'_>,
        extra: Bytes,
    ) -> Response {
        let is_api = page.is_api_for(request);
        match value {
            Cached::Page(prepared) => prepared.respond(request, extra),
            Cached::Missing(at) => match page.guard(*at) {
                Some(guard) => self.refuse_guarded(guard, request, is_api),
                None => self.missing(request, is_api, extra),
            },
            Cached::Failed(failure) => self.failed(request, is_api, failure),
            Cached::Object(_) | Cached::Bundle(_) => self.broken(request, is_api, Bytes::new()),
        }
    }
}
