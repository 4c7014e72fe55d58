//! Requests for the console: its pages, and what they may ask the server to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_http::{BodyHandling, Reply, Request, Response, Service};
use millpond_site::{SitesService, is_from_own_page};

use crate::{Controls, History};

/// Explains the address in the field `target`, at the host in `host`, and leads to the page that
/// shows it.
const ASK: &str = "/ask";
/// Ends the address in the field `target`, at the host in `host`; without it all that is in memory.
const PURGE: &str = "/purge";
/// The page of the last requests, which are held while it is looked at.
const REQUESTS: &str = "/requests";

/// The console on one worker.
pub struct ConsoleService {
    pages: SitesService,
    history: Arc<History>,
    controls: Arc<dyn Controls>,
    last_look: Arc<AtomicU64>,
}

impl ConsoleService {
    pub(crate) fn new(
        pages: SitesService,
        history: Arc<History>,
        controls: Arc<dyn Controls>,
        last_look: Arc<AtomicU64>,
    ) -> Self {
        Self {
            pages,
            history,
            controls,
            last_look,
        }
    }

    /// Explains an address. The explanation becomes a row, which a page shows as any other.
    fn ask(&self, request: &Request<'_>) -> Reply {
        let Some((host, target)) = wanted_address(request) else {
            return lead("/why?wrong=target").into();
        };
        let explained = match self.controls.explain(host.as_deref(), &target) {
            Ok(Some(explanation)) => explanation,
            Ok(None) => return lead("/why?wrong=host").into(),
            Err(_) => return lead("/why?wrong=target").into(),
        };
        let history = Arc::clone(&self.history);
        Reply::later(async move {
            let host = host.as_deref();
            match history.keep_explanation(host, &target, &explained).await {
                Ok(id) => lead(&format!("/why/{id}")),
                Err(error) => Response::text(503, &format!("It cannot be written down: {error}\n")),
            }
        })
    }

    /// Ends one address, or all that is in memory.
    fn purge(&self, request: &Request<'_>) -> Response {
        if field(request, "target").is_none() {
            self.controls.purge();
            return lead("/purge?done=1");
        }
        let ended = wanted_address(request)
            .and_then(|(host, target)| self.controls.purge_address(host.as_deref(), &target));
        match ended {
            Some(ended) => lead(&format!("/purge?ended={ended}")),
            None => lead("/purge?wrong=1"),
        }
    }
}

/// Reads the host and the target in a form; `None` if that is no address.
fn wanted_address(request: &Request<'_>) -> Option<(Option<String>, String)> {
    let (mut host, target) = (field(request, "host"), field(request, "target")?);
    // A whole address names its host too.
    let target = match target.split_once("://") {
        Some((_, rest)) => {
            let (named, path) = rest.split_once('/').unwrap_or((rest, ""));
            host = host.or_else(|| Some(named.to_owned()));
            format!("/{path}")
        }
        None => target,
    };
    let target = target.split('#').next().unwrap_or_default().to_owned();
    target.starts_with('/').then_some((host, target))
}

/// Returns a field of a form, without blanks around it; `None` if it is empty.
fn field(request: &Request<'_>, name: &str) -> Option<String> {
    let found = form_urlencoded::parse(&request.body).find(|(found, _)| found == name);
    let value = found.map(|(_, value)| value.trim().to_owned());
    value.filter(|value| !value.is_empty())
}

impl Service for ConsoleService {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        match request.path {
            ASK | PURGE => BodyHandling::Whole,
            _ => self.pages.body_begins(request),
        }
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        match (request.method, request.path) {
            ("POST", ASK | PURGE) if !is_from_own_page(request) => {
                Response::text(403, "This was sent from another site.\n").into()
            }
            ("POST", ASK) => self.ask(request),
            ("POST", PURGE) => self.purge(request).into(),
            (_, path) => {
                if path == REQUESTS && is_from_own_page(request) {
                    let now = base_clock::Boottime::now().as_nanos();
                    self.last_look.store(now, Ordering::Relaxed);
                }
                self.pages.call(request)
            }
        }
    }

    fn wants_done(&self) -> bool {
        self.pages.wants_done()
    }
}

fn lead(to: &str) -> Response {
    Response::builder(303)
        .field("Location", to)
        .field("Cache-Control", "no-store")
        .body("")
}
