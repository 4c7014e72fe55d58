//! The addresses of live pages: the script, and the streams.
//!
//! A stream is opened by the page's own request, as the visitor would send it: who may not see the
//! page gets no stream of it.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use millpond_http::{Reply, Response, path};

use super::{SiteService, context::RequestContext};
use crate::{
    answer::{
        cached::{bundle_key, page_key},
        owned,
        visitor::Visitor,
    },
    labels::AnswerKind,
    live::{
        board::{LivePage, WantedPage},
        script::{FOLDER, STREAM, script},
        stream::{LiveStream, gone, streamed, turned_away},
    },
    session::Session,
};
use millpond_site_format::{params::Given, rules::split};

/// Fields of the request for a stream that are not those of a request for the page.
const OF_STREAM: [&str; 8] = [
    "accept",
    "accept-encoding",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "last-event-id",
    "range",
];

impl SiteService {
    /// Answers at the addresses of live pages; none at another.
    pub(super) fn live(&self, at: RequestContext<'_>) -> Option<Reply> {
        let request = at.request;
        if at.path == STREAM && request.method == "GET" {
            return Some(self.stream(at));
        }
        let script = script();
        let is_asked = matches!(request.method, "GET" | "HEAD");
        (at.path == script.path && is_asked).then(|| {
            if let Some(coding) = script.prepared.wanted(request) {
                let compressor = &self.core.compressor;
                compressor.request_coding(&script.prepared, coding, |_| {});
            }
            let response = script.prepared.respond(request, Bytes::new());
            AnswerKind::Static.of(response).into()
        })
    }

    /// Opens the stream of the page that the query names.
    fn stream(&self, at: RequestContext<'_>) -> Reply {
        let request = at.request;
        let query = request.query.unwrap_or_default().as_bytes();
        let (mut target, mut has) = (String::new(), String::new());
        for (name, value) in form_urlencoded::parse(query) {
            match &*name {
                "page" => target = value.into_owned(),
                "seen" => has = value.into_owned(),
                _ => {}
            }
        }
        // A program that comes again has what was told last. A browser may not have asked for it.
        if has.is_empty() {
            let last = request.fields.get("last-event-id").unwrap_or_default();
            has = String::from_utf8_lossy(last).into_owned();
        }
        let is_foreign = request.fields.get("sec-fetch-site") == Some(b"cross-site");
        let is_path = target.starts_with('/') && !target.starts_with("//");
        if is_foreign || !is_path || target.starts_with(FOLDER) {
            return gone().into();
        }
        let owned = request.to_owned().without(&OF_STREAM);
        let owned = owned.field("accept", "text/html, */*;q=0.1");
        let mut inner = owned.as_request();
        inner.path = target.split_once('?').map_or(&target, |(path, _)| path);
        inner.query = target.split_once('?').map(|(_, query)| query);
        inner.target = &target;
        let Ok(inner_path) = path::normalize(inner.path) else {
            return gone().into();
        };
        let at = RequestContext {
            generation: at.generation,
            request: &inner,
            path: &inner_path,
            route: at.route,
        };
        let Some((page, session)) = self.live_page(at) else {
            return gone().into();
        };
        let client = request.client();
        let client = (!client.is_exempt(&self.core.exempt)).then(|| client.network());
        let core = self.core.clone();
        // Before the page is asked for: what is told from now on may be newer than the answer.
        let known = match &page {
            WantedPage::Known(page) => Some((page.version(), page.clone())),
            WantedPage::New(_) => None,
        };
        let opens = move |response: Response| -> Response {
            let tag = response.field("etag").unwrap_or_default().trim_matches('"');
            match response.status() {
                200 if !tag.is_empty() => {}
                300..=399 | 401 | 403 | 404 | 410 => return gone(),
                _ => return turned_away(),
            }
            let Some(ticket) = core.live.ticket(client) else {
                return turned_away();
            };
            let first = match page.is_shared() {
                true => tag,
                false => "",
            };
            let page = core.live.page(page, first);
            // Of a page that has begun meanwhile, all that was told is news.
            let known = known.filter(|(_, known)| Arc::ptr_eq(known, &page));
            let version = known.map_or(0, |(version, _)| version);
            match LiveStream::new(&page, ticket, version, (tag, &has), session.as_ref()) {
                Some(stream) => AnswerKind::Live.of(streamed(stream)),
                None => turned_away(),
            }
        };
        match self.answer_at(at, &mut Vec::new()) {
            Reply::Ready(response) => opens(response).into(),
            Reply::Reusable(reply) => opens(reply.0).into(),
            Reply::Later(response) => Reply::later(async move { opens(response.await) }),
        }
    }

    /// The live page at which a request is answered, with the session that it has; none if there is
    /// no such page.
    fn live_page(&self, at: RequestContext<'_>) -> Option<(WantedPage, Option<Session>)> {
        let (generation, request) = (at.generation, at.request);
        let rules = generation.rules.as_ref();
        let rewritten = rules.and_then(|rules| rules.rewrite(at.path, request.query));
        let (place, query) = match &rewritten {
            Some(target) => {
                let (path, query) = split(target);
                (generation.place_of(&path).to_owned(), query)
            }
            None => (at.path.to_owned(), request.query),
        };
        let found = generation.pages.router.find(&place)?;
        let page = generation.pages.endpoints[found.page].page.as_ref()?;
        if !self.core.live.is_live(page) {
            return None;
        }
        let mut given = Given {
            path: &found.values,
            form: &[],
            query,
        };
        let with_language;
        if let Err(bad) = given.values(&page.params) {
            with_language = page.with_missing_language(request, &bad)?;
            given.query = Some(&with_language);
        }
        let is_shared = !page.private.load(Ordering::Relaxed);
        let is_open = page.needs.is_none() && is_shared && !generation.may_be_guarded(at.path);
        let session = match is_open {
            true => None,
            false => generation.sessions.of(request),
        };
        let mut values = given.values(&page.params).ok()?;
        let claims = session.as_ref().map(Session::claims);
        values.extend(page.needs.values(claims));
        let number = generation.number;
        let mut key = Vec::new();
        if is_shared {
            let vary = |field: &str| generation.sessions.field(request, field);
            page_key(&mut key, number, page, &given, session.as_ref(), vary).ok()?;
        } else {
            key = bundle_key(number, page, &values);
        }
        if let Some(page) = self.core.live.find(&key) {
            return Some((WantedPage::Known(page), session));
        }
        let of = (&**page, &*values);
        let sessions = &generation.sessions;
        let path = at.path.to_owned();
        let visitor = Visitor::new(owned(request), path, of, sessions, session.as_ref());
        let is_public = is_open && page.is_public();
        let page = LivePage::new((key, is_shared, is_public), number, (page, values), visitor);
        Some((WantedPage::New(Box::new(page)), session))
    }
}
