//! What stands before the sites of a server that is started with `--dev`.
//!
//! The server listens on loopback only, and yet others may reach it: through a proxy on this
//! machine, or by a name that leads to 127.0.0.1 (DNS rebinding). So a request is the developer's
//! only if it names this machine and no proxy has left a trace in it. All other requests are
//! answered as without `--dev`.

use std::{
    cell::OnceCell,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use millpond_http::{BodyHandling, BodyReceiver, Reply, Request, Response, Service, Version};
use serde_json::Value as Json;

use super::{
    DevState,
    inject::{tag, with_script},
    page::{self, ErrorFormat},
    report::of_sentence,
    state::{WaitEnd, without_mark},
};
use crate::{Sites, SitesService, problem_details::wants_json};

/// The script of each page.
pub(super) const SCRIPT: &str = "/_millpond/dev/reload.js";
/// Answers when a file has changed.
const CHANGES: &str = "/_millpond/dev/changes";

/// Serves sites under development on one worker.
pub struct DevService {
    sites: Arc<Sites>,
    /// Made when the sites are open.
    inner: OnceCell<SitesService>,
}

impl DevService {
    /// A service for one worker.
    #[must_use]
    pub fn new(sites: Arc<Sites>) -> Self {
        Self {
            sites,
            inner: OnceCell::new(),
        }
    }

    /// The service of the sites, if they could be opened.
    fn inner(&self) -> Option<&SitesService> {
        if self.inner.get().is_none() && self.sites.is_open() {
            let _ = self.inner.set(self.sites.service());
        }
        self.inner.get()
    }
}

impl Service for DevService {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        let inner = self.inner();
        let Some((inner, (_, state))) = inner.and_then(|inner| Some((inner, inner.dev(request)?)))
        else {
            return inner.map_or(BodyHandling::Whole, |inner| inner.body_begins(request));
        };
        let shown = is_of_developer(request).then(|| Shown::new(request, state));
        match inner.body_begins(request) {
            BodyHandling::Whole => BodyHandling::Whole,
            BodyHandling::Refused(response) => BodyHandling::Refused(match shown {
                Some(shown) => shown.response(response),
                None => without_mark(response),
            }),
            BodyHandling::Streamed(receiver) => {
                BodyHandling::Streamed(Box::new(ShownAnswer { receiver, shown }))
            }
        }
    }

    fn wants_done(&self) -> bool {
        false
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        let is_own = is_of_developer(request);
        let Some(inner) = self.inner() else {
            return match self.sites.waiting().filter(|_| is_own) {
                Some(waiting) => {
                    let state = &waiting.state;
                    own_address(request, state).unwrap_or_else(|| {
                        let format = format(request);
                        let problems = state.problems();
                        page::of_faults(&waiting.dir, &problems, false, &state.token(), format)
                            .into()
                    })
                }
                None => not_ready().into(),
            };
        };
        let Some((dir, state)) = inner.dev(request) else {
            return inner.call(request);
        };
        if !is_own {
            return unless_reusable(inner.call(request), without_mark);
        }
        if let Some(reply) = own_address(request, state) {
            return reply;
        }
        let problems = state.problems();
        let shown = Shown::new(request, state);
        if shown.script.is_some() && !problems.is_empty() {
            return page::of_faults(dir, &problems, true, &shown.token, shown.format).into();
        }
        if shown.request.is_none() {
            return unless_reusable(inner.call(request), move |response| {
                shown.response(response)
            });
        }
        let left_out = match shown.script {
            Some(_) => &PARTIAL[..],
            None => &PARTIAL[..1],
        };
        let reply = inner.call(&request.to_owned().without(left_out).as_request());
        let reply = match reply {
            Reply::Reusable(reply) => reply.0.into(),
            other => other,
        };
        unless_reusable(reply, move |response| shown.response(response))
    }
}

/// How a response is shown to the developer.
struct Shown {
    state: Arc<DevState>,
    token: String,
    format: ErrorFormat,
    /// What was asked for, where a browser asks for a page.
    request: Option<Json>,
    /// The tag of the script, where a browser asks with GET.
    script: Option<String>,
}

impl Shown {
    fn new(request: &Request<'_>, state: &Arc<DevState>) -> Self {
        let token = state.token();
        let is_page = asks_for_page(request);
        Self {
            state: state.clone(),
            format: format(request),
            request: is_page.then(|| of_sentence(request)),
            script: (is_page && request.method == "GET").then(|| tag(&token, false)),
            token,
        }
    }

    fn response(&self, response: Response) -> Response {
        if let Some(report) = self.state.report_of(&response) {
            // An address for programs answers them as it does without `--dev`.
            let is_for_program = page::is_problem(&response) && self.request.is_none();
            let format = match is_for_program {
                true => ErrorFormat::Json,
                false => self.format,
            };
            if report.is_refusal && self.request.is_none() && !is_for_program {
                return without_mark(response);
            }
            return page::of_failure(&report.facts, &response, &self.token, format);
        }
        let response = without_mark(response);
        match (&self.request, &self.script) {
            (Some(facts), _) if page::is_sentence(&response) => {
                page::of_failure(facts, &response, &self.token, self.format)
            }
            (_, Some(script)) => with_script(response, script),
            (_, None) => response,
        }
    }
}

/// The receiver of a body, whose answers are shown to the developer.
struct ShownAnswer {
    receiver: Box<dyn BodyReceiver>,
    /// None where another client sends the body.
    shown: Option<Shown>,
}

impl BodyReceiver for ShownAnswer {
    fn limit(&self) -> u64 {
        self.receiver.limit()
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.receiver.poll_ready(context)
    }

    fn receive(&mut self, piece: &[u8]) -> Result<(), Response> {
        let received = self.receiver.receive(piece);
        received.map_err(|response| match &self.shown {
            Some(shown) => shown.response(response),
            None => without_mark(response),
        })
    }

    fn finish(self: Box<Self>, request: &Request<'_>) -> Reply {
        let Self { receiver, shown } = *self;
        unless_reusable(receiver.finish(request), move |response| match shown {
            Some(shown) => shown.response(response),
            None => without_mark(response),
        })
    }
}

/// Fields by which a client asks for less than the whole page as it is. The answer to a form has to
/// be read too, but its conditions hold.
const PARTIAL: [&str; 7] = [
    "accept-encoding",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
];

/// Fields that proxies add.
const OF_PROXIES: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Whether a browser or a program on this machine has sent the request, and no proxy. No browser
/// uses HTTP/1.0, which nginx does where nothing else is set.
fn is_of_developer(request: &Request<'_>) -> bool {
    request.peer.ip().to_canonical().is_loopback()
        && request.version > Version::Http10
        && request.host().is_some_and(is_of_this_machine)
        && OF_PROXIES
            .iter()
            .all(|name| request.fields.get(name).is_none())
}

/// Whether a host is an address of this machine or a name that no public server can have (RFC 6761
/// section 6).
fn is_of_this_machine(host: &str) -> bool {
    let host = crate::hosts::without_port(host);
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost") || last.eq_ignore_ascii_case("test")
}

/// Whether a browser asks for a page to be shown, and not for a part of one.
fn asks_for_page(request: &Request<'_>) -> bool {
    let is_part = request
        .fields
        .get("sec-fetch-dest")
        .is_some_and(|to| !matches!(to, b"document" | b"iframe" | b"frame"));
    !is_part && accepts(request, "text/html")
}

fn accepts(request: &Request<'_>, media_type: &str) -> bool {
    let mut values = request.fields.get_all("accept");
    values.any(|value| {
        String::from_utf8_lossy(value)
            .to_ascii_lowercase()
            .contains(media_type)
    })
}

fn format(request: &Request<'_>) -> ErrorFormat {
    match wants_json(request, false) {
        true => ErrorFormat::Json,
        false => ErrorFormat::Html {
            is_after_post: request.method != "GET",
        },
    }
}

/// The answer of an address that only `--dev` has.
fn own_address(request: &Request<'_>, state: &Arc<DevState>) -> Option<Reply> {
    if request.method != "GET" {
        return None;
    }
    match request.path {
        SCRIPT => {
            let script = Bytes::from_static(include_bytes!("reload.js"));
            let response = plain(200, "text/javascript; charset=utf-8");
            Some(response.body(script).into())
        }
        CHANGES => {
            let known = request.query.unwrap_or_default().to_owned();
            let state = state.clone();
            Some(Reply::later(async move {
                match state.wait(known).await {
                    WaitEnd::Now(token) => plain(200, "text/plain; charset=utf-8").body(token),
                    WaitEnd::Over => plain(503, "text/plain; charset=utf-8").empty(),
                }
            }))
        }
        _ => None,
    }
}

fn plain(status: u16, media_type: &str) -> millpond_http::Builder {
    Response::builder(status)
        .field("Content-Type", media_type)
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
}

/// What others get of a site that cannot be opened yet.
fn not_ready() -> Response {
    plain(503, "text/plain; charset=utf-8")
        .field("Retry-After", "1")
        .body("The site is not ready. Please try again in a moment.\n")
}

/// The reply with its response changed, unless the connection may repeat it. Such a response is no
/// error, so it has no report, and stays as quick as it is.
fn unless_reusable(reply: Reply, change: impl FnOnce(Response) -> Response + 'static) -> Reply {
    match reply {
        Reply::Ready(response) => change(response).into(),
        Reply::Later(response) => Reply::later(async move { change(response.await) }),
        reusable @ Reply::Reusable(_) => reusable,
    }
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    #[test]
    fn only_a_client_of_this_machine_is_the_developer() {
        let of = |host: &str| OwnedRequest::new("GET", "/").field("Host", host);
        for host in [
            "127.0.0.1:8080",
            "127.1.2.3",
            "localhost:8080",
            "LOCALHOST",
            "shop.localhost:8080",
            "shop.test",
            "[::1]:8080",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_of_developer(&of(host).as_request()), "{host}");
        }
        for host in [
            "example.org",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "10.0.0.1",
            "[::2]",
            "0.0.0.0",
            "",
        ] {
            assert!(!is_of_developer(&of(host).as_request()), "{host}");
        }
        for field in OF_PROXIES {
            let request = of("localhost").field(field, "10.0.0.1");
            assert!(!is_of_developer(&request.as_request()), "{field}");
        }
        let elsewhere = of("localhost").from_peer(([10, 0, 0, 1], 1).into(), Default::default());
        assert!(!is_of_developer(&elsewhere.as_request()));
        assert!(!is_of_developer(
            &OwnedRequest::new("GET", "/").as_request()
        ));
    }
}
