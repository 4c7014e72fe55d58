//! What stands before the sites of a server that is started with `--dev`.
//!
//! Requests of others than the developer ([`DevDoor`](super::DevDoor)) are answered as without
//! `--dev`.

use std::{
    cell::OnceCell,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use millpond_http::{BodyHandling, BodyReceiver, Reply, Request, Response, Service};
use serde_json::Value as Json;

use super::{
    DevState,
    door::asks_for_page,
    inject::{tag, with_script},
    page::{self, ErrorFormat},
    report::{Report, of_sentence},
    stream::{known, with_changes},
};
use crate::{Sites, SitesService, core::problem_details::wants_json, live::script::script};

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

    /// Returns true if the developer has sent the request.
    fn is_own(&self, request: &Request<'_>) -> bool {
        let door = self.sites.door();
        door.is_some_and(|door| door.admits(request))
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
        let shown = self.is_own(request).then(|| Shown::new(request, state));
        match inner.body_begins(request) {
            BodyHandling::Whole => BodyHandling::Whole,
            BodyHandling::Refused(response) => BodyHandling::Refused(match shown {
                Some(shown) => shown.response(response),
                None => response,
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
        if let Some(entered) = self.sites.door().and_then(|door| door.enter(request)) {
            return entered.into();
        }
        let is_own = self.is_own(request);
        let Some(inner) = self.inner() else {
            return match self.sites.waiting().filter(|_| is_own) {
                Some(waiting) => {
                    let state = &waiting.state;
                    if request.path == script().path {
                        return script().prepared.respond(request, Bytes::new()).into();
                    }
                    if let Some((known, _)) = known(request) {
                        return with_changes(None, state, known).into();
                    }
                    let (format, problems) = (format(request), state.problems());
                    page::of_faults(&waiting.dir, &problems, false, &state.token(), format).into()
                }
                None => not_ready().into(),
            };
        };
        let Some((dir, state)) = inner.dev(request) else {
            return inner.call(request);
        };
        if !is_own {
            return inner.call(request);
        }
        if let Some((known, has_page)) = known(request) {
            let page = has_page.then(|| whole(inner.call(request)));
            let state = state.clone();
            return match page {
                None => with_changes(None, &state, known).into(),
                Some(page) => {
                    unless_reusable(page, move |page| with_changes(Some(&page), &state, known))
                }
            };
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
        unless_reusable(whole(reply), move |response| shown.response(response))
    }
}

/// How a response is shown to the developer.
struct Shown {
    token: String,
    format: ErrorFormat,
    /// Request, where a browser asks for a page.
    request: Option<Json>,
    /// The tag of the script, where a browser asks with GET.
    script: Option<String>,
}

impl Shown {
    fn new(request: &Request<'_>, state: &Arc<DevState>) -> Self {
        let token = state.token();
        let is_page = asks_for_page(request);
        Self {
            format: format(request),
            request: is_page.then(|| of_sentence(request)),
            script: (is_page && request.method == "GET").then(|| tag(&token, false)),
            token,
        }
    }

    fn response(&self, response: Response) -> Response {
        if let Some(report) = response.note::<Report>() {
            // An address for programs answers them as it does without `--dev`.
            let is_for_program = page::is_problem(&response) && self.request.is_none();
            let format = match is_for_program {
                true => ErrorFormat::Json,
                false => self.format,
            };
            if report.is_refusal && self.request.is_none() && !is_for_program {
                return response;
            }
            return page::of_failure(&report.facts, &response, &self.token, format);
        }
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
            None => response,
        })
    }

    fn finish(self: Box<Self>, request: &Request<'_>) -> Reply {
        let Self { receiver, shown } = *self;
        unless_reusable(receiver.finish(request), move |response| match shown {
            Some(shown) => shown.response(response),
            None => response,
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

fn format(request: &Request<'_>) -> ErrorFormat {
    match wants_json(request, false) {
        true => ErrorFormat::Json,
        false => ErrorFormat::Html {
            is_after_post: request.method != "GET",
        },
    }
}

fn plain(status: u16, media_type: &str) -> millpond_http::Builder {
    Response::builder(status)
        .field("Content-Type", media_type)
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
}

/// Makes the response of a site that cannot be opened yet, for others than the developer.
fn not_ready() -> Response {
    plain(503, "text/plain; charset=utf-8")
        .field("Retry-After", "1")
        .body("The site is not ready. Please try again in a moment.\n")
}

/// The reply as one that no connection repeats.
fn whole(reply: Reply) -> Reply {
    match reply {
        Reply::Reusable(reply) => reply.0.into(),
        other => other,
    }
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
