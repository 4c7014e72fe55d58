//! Requests for the console: its pages, and what they may ask the server to do.

use std::sync::Arc;

use millpond_http::{BodyHandling, Reply, Request, Response, Service};
use millpond_site::{SitesService, is_from_own_page};

use crate::{Controls, History};

/// Explains the address in `target`, at the host in `host`, and leads to the page that shows it.
const ASK: &str = "/ask";
/// Ends all that is in memory.
const PURGE: &str = "/purge";

/// The console on one worker.
pub struct ConsoleService {
    pages: SitesService,
    history: Arc<History>,
    controls: Arc<dyn Controls>,
}

impl ConsoleService {
    pub(crate) fn new(
        pages: SitesService,
        history: Arc<History>,
        controls: Arc<dyn Controls>,
    ) -> Self {
        Self {
            pages,
            history,
            controls,
        }
    }

    /// Explains an address. The explanation becomes a row, which a page shows as any other row.
    fn ask(&self, request: &Request<'_>) -> Reply {
        let given = |name: &str| {
            let query = request.query.unwrap_or_default().as_bytes();
            let found = form_urlencoded::parse(query).find(|(found, _)| found == name);
            let value = found.map(|(_, value)| value.trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        let (mut host, target) = (given("host"), given("target").unwrap_or_default());
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
        if !target.starts_with('/') {
            return lead("/why?wrong=target").into();
        }
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
}

impl Service for ConsoleService {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        self.pages.body_begins(request)
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        match (request.method, request.path) {
            ("GET", ASK) | ("POST", PURGE) if !is_from_own_page(request) => {
                Response::text(403, "This was sent from another site.\n").into()
            }
            ("GET", ASK) => self.ask(request),
            ("POST", PURGE) => {
                self.controls.purge();
                lead("/purge?done=1").into()
            }
            _ => self.pages.call(request),
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
