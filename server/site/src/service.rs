//! One worker's view of a site: requests in, responses out.

use std::{
    cell::RefCell,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::{ArcSwap, Cache};
use bytes::Bytes;
use millpond_db::{DatabaseFeed, Position};
use millpond_http::{BodyHandling, Prepared, Reply, Request, Response, Service, Validity, path};
use millpond_pages::{Arrival, CacheStatus, repeat, request_coding};
use millpond_store::Hit;

use crate::{
    answer::{
        Ask, MissOrBypass,
        cached::{Cached, page_key},
        owned,
        validity::{EditionCheck, PageCheck, of_file},
        visitor::Visitor,
    },
    core::{Core, Generation, error_answer::ErrorAnswer, own_page::with_policy},
    dev::{DevState, refusals},
    labels::{AnswerKind, KnownRoute, Labeler},
    session::Session,
};
use addresses::AddressMatch;
use methods::{not_allowed, options, options_of};
use millpond_site_compile::{compile::sign_in, page::Page};
use millpond_site_format::{
    access::Gate,
    params::Given,
    route::Match,
    rules::{encode_path, local, moved},
    write_method::{ALL_METHODS, FILE_METHODS, KNOWN, WriteMethod},
};

pub(crate) mod addresses;
pub(crate) mod admission;
mod admitted;
mod by_rules;
mod context;
mod forms;
mod listing;
mod live;
pub(crate) mod methods;
mod no_page;
pub(crate) mod see_other;
mod uploaded_files;
mod uploads;

use context::{Entered, RequestContext};
use no_page::not_taken_here;

/// Serves a site on one worker.
pub struct SiteService {
    core: Arc<Core>,
    worker: usize,
    scratch: RefCell<Scratch>,
}

/// Buffers that a hit needs and would otherwise allocate anew.
struct Scratch {
    /// Looks at the shared pointer, and loads it only when it has changed.
    generation: Cache<ArcSwapOf, Arc<Generation>>,
    key: Vec<u8>,
}

/// The current generation, reachable through the core.
pub(crate) struct ArcSwapOf(Arc<Core>);

impl std::ops::Deref for ArcSwapOf {
    type Target = ArcSwap<Generation>;

    fn deref(&self) -> &ArcSwap<Generation> {
        &self.0.current
    }
}

static WORKERS: AtomicUsize = AtomicUsize::new(0);

impl SiteService {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let generation = Cache::new(ArcSwapOf(core.clone()));
        let scratch = RefCell::new(Scratch {
            generation,
            key: Vec::with_capacity(256),
        });
        Self {
            core,
            worker: WORKERS.fetch_add(1, Ordering::Relaxed),
            scratch,
        }
    }

    /// The site's folder and what is known of it, if it is under development.
    pub(crate) fn dev(&self) -> Option<(&Path, &Arc<DevState>)> {
        self.core.dev.as_ref().map(|state| (&*self.core.dir, state))
    }

    fn get(&self, at: RequestContext<'_>, key: &mut Vec<u8>, found: &Match<'_>) -> Reply {
        let RequestContext {
            generation,
            request,
            path,
            ..
        } = at;
        let Some(page) = &generation.pages.endpoints[found.page].page else {
            return not_taken_here(at, found).into();
        };
        let session = match self.enter(at, found, Entered::Page(page)) {
            Ok(session) => session,
            Err(refused) => return refused.into(),
        };
        let session = session.as_ref();
        let given = Given {
            path: &found.values,
            form: &[],
            query: request.query,
        };
        let vary = |field: &str| generation.sessions.field(request, field);
        let written = page_key(key, generation.number, page, &given, session, vary);
        if let Err(bad) = written {
            return self.without_key(at, key, found, page, &bad);
        }
        let why = match self.look(at, page, key) {
            Ok(hit) => return self.give(at, page, key, session, &hit),
            Err(why) => why,
        };
        let arrival = match self.admit(at, page, key, session.is_some(), &why) {
            Ok(arrival) => arrival,
            Err(refused) => return refused.into(),
        };
        match given.values(&page.params) {
            Ok(mut values) => {
                values.extend(page.needs.values(session.map(Session::claims)));
                let sessions = &generation.sessions;
                let of = (&**page, &*values);
                let visitor = Visitor::new(owned(request), path.to_owned(), of, sessions, session);
                self.ask(generation, page, values, key, visitor, (arrival, why))
            }
            Err(bad) => self.not_taken(at, page, found, &bad).into(),
        }
    }

    /// The reply that a hit gives, with its validity if the request wants one.
    fn give(
        &self,
        at: RequestContext<'_>,
        page: &Arc<Page>,
        key: &[u8],
        session: Option<&Session>,
        hit: &Hit<Cached, DatabaseFeed>,
    ) -> Reply {
        let (generation, request) = (at.generation, at.request);
        page.counters.hit(self.worker);
        let visitors = self.core.admission.visitors();
        visitors.note(request.client().network());
        let mut validity = None;
        if let Cached::Page(prepared) = &**hit {
            if let Some(coding) = prepared.wanted(request) {
                let (compressor, store) = (&self.core.compressor, &self.core.store);
                request_coding(compressor, store, (key, hit.value()), (prepared, coding));
            }
            // Before the response is made: the validity reads which codings there are.
            if request.wants_validity {
                let check = PageCheck {
                    hit: hit.clone(),
                    edition: EditionCheck {
                        core: self.core.clone(),
                        edition: generation.edition,
                    },
                    page: page.clone(),
                    worker: self.worker,
                    session_end: session.map(Session::expiry),
                };
                validity = repeat::validity(prepared, request, check);
            }
        } else if let Cached::Missing(query) = &**hit {
            return self.missing_again(at, page, session, hit.value(), *query);
        }
        let extra = CacheStatus::Hit.line();
        let response = generation.respond(page, hit.value(), request, extra);
        let response = AnswerKind::Hit.of(response);
        Reply::reusable(response, validity)
    }

    /// The session, where a page or a form needs one; or the answer to a visitor who may not enter.
    /// This is checked at each look-up, so the stored page may be shared by all visitors who may
    /// enter.
    fn enter(
        &self,
        at: RequestContext<'_>,
        found: &Match<'_>,
        entered: Entered<'_>,
    ) -> Result<Option<Session>, Response> {
        let needs = entered.needs();
        if needs.is_none() {
            return Ok(None);
        }
        let (generation, request) = (at.generation, at.request);
        let session = generation.sessions.of(request);
        match needs.gate(session.as_ref().map(Session::claims)) {
            Gate::Open => Ok(session),
            closed => {
                let pattern = &generation.pages.endpoints[found.page].pattern;
                let path;
                let closed = match closed {
                    Gate::SignIn(otherwise) => {
                        path = sign_in::filled(otherwise, pattern, &found.values);
                        Gate::SignIn(&path)
                    }
                    other => other,
                };
                let is_api = entered.is_api_for(request);
                let refused =
                    generation.refuse_admission(request, closed, session.is_some(), is_api);
                Err(self.core.explained(refused, || {
                    let (required, files) = (needs.require.iter(), entered.files(&self.core));
                    refusals::of_entry(&self.core, required, session.as_ref(), request, &files)
                }))
            }
        }
    }

    fn look(
        &self,
        at: RequestContext<'_>,
        page: &Page,
        key: &[u8],
    ) -> Result<Hit<Cached, DatabaseFeed>, MissOrBypass> {
        let (generation, request) = (at.generation, at.request);
        if page.forms.is_some()
            && let Some(flash) = generation.sessions.flash_of(request, at.path)
        {
            return Err(MissOrBypass::RefusedForm(flash));
        }
        if !self.core.cache {
            return Err(MissOrBypass::CacheOff);
        }
        let unseen = self.unseen(generation, page, request);
        if !unseen.is_empty() {
            return Err(MissOrBypass::UnseenWrites(unseen));
        }
        let found = self.core.store.get(key, request.received);
        found.map_err(MissOrBypass::Miss)
    }

    /// The writes of this visitor through other nodes that this node may not have applied yet. A
    /// write that this node has applied stays applied in the same epoch, so the answer may be kept
    /// for the same request.
    fn unseen(&self, generation: &Generation, page: &Page, request: &Request<'_>) -> Vec<Position> {
        if page.queries.is_empty() {
            return Vec::new();
        }
        let written = generation.sessions.written(request);
        written
            .filter(|position| !self.core.database.has_passed(position))
            .collect()
    }

    fn ask(
        &self,
        generation: &Arc<Generation>,
        page: &Arc<Page>,
        values: Vec<millpond_db::Value>,
        key: &[u8],
        visitor: Arc<Visitor>,
        (arrival, why): (Arrival, MissOrBypass),
    ) -> Reply {
        let ask = Ask {
            core: self.core.clone(),
            generation: generation.clone(),
            page: page.clone(),
            values,
            key: key.to_vec(),
            visitor,
            arrival,
            report: OnceLock::new(),
        };
        Reply::later(async move {
            match why {
                MissOrBypass::Miss(why) => ask.answer(why).await,
                MissOrBypass::UnseenWrites(unseen) => ask.answer_writer(unseen).await,
                MissOrBypass::RefusedForm(flash) => ask.answer_refused_form(flash).await,
                MissOrBypass::CacheOff => ask.answer_uncached().await,
            }
        })
    }

    /// Answers where no page does.
    fn other(&self, at: RequestContext<'_>) -> Reply {
        let RequestContext {
            generation,
            request,
            path,
            ..
        } = at;
        if let Some(found) = generation.addresses.find(&generation.statics, path) {
            return self.file(at, &found);
        }
        if let Some(response) =
            uploaded_files::respond(&self.core.uploads, generation, request, path)
        {
            return response.into();
        }
        if let Some(robots) = generation.robots.as_ref().filter(|_| path == "/robots.txt")
            && matches!(request.method, "GET" | "HEAD")
        {
            let response = robots.respond(request, Bytes::new());
            return AnswerKind::Static.of(response).into();
        }
        match generation.moved_to(path) {
            Some(to) => {
                let query = request.query.map(|query| format!("?{query}"));
                let to = local(&encode_path(&to)) + &query.unwrap_or_default();
                moved(308, &to).into()
            }
            None => self.nothing(at).into(),
        }
    }

    fn file(&self, at: RequestContext<'_>, found: &AddressMatch<'_>) -> Reply {
        let (generation, request) = (at.generation, at.request);
        match request.method {
            "GET" | "HEAD" => {}
            "OPTIONS" => return options(FILE_METHODS).into(),
            _ => return not_allowed(generation, request, false, FILE_METHODS).into(),
        }
        let compressor = &self.core.compressor;
        match found {
            AddressMatch::File(file) => {
                generation.statics.request_coding(file, request, compressor);
                let validity = self.file_validity(generation, file.steady(), request);
                Reply::reusable(AnswerKind::Static.of(file.respond(request)), validity)
            }
            AddressMatch::Listing(listing) => {
                let prepared = listing.prepared();
                if let Some(coding) = prepared.wanted(request) {
                    compressor.request_coding(prepared, coding, |_| {});
                }
                let validity = self.file_validity(generation, Some(prepared), request);
                let response = prepared.respond(request, with_policy(b""));
                Reply::reusable(AnswerKind::Listing.of(response), validity)
            }
        }
    }

    /// The validity of a file's response that is made of `prepared`, if the request wants one. The
    /// caller makes the response afterwards, because the validity reads which codings there are.
    fn file_validity(
        &self,
        generation: &Generation,
        prepared: Option<&Arc<Prepared>>,
        request: &Request<'_>,
    ) -> Option<Validity> {
        let prepared = prepared.filter(|_| request.wants_validity)?;
        of_file(&self.core, generation.edition, prepared, request)
    }

    fn page(&self, at: RequestContext<'_>, key: &mut Vec<u8>, found: &Match<'_>) -> Reply {
        at.note_route(found);
        match at.request.method {
            "GET" | "HEAD" => self.get(at, key, found),
            "OPTIONS" => options_of(&at.generation.pages.endpoints[found.page]).into(),
            method => match WriteMethod::of(method) {
                Some(method) => self.write(at, method, found),
                None => not_taken_here(at, found).into(),
            },
        }
    }

    /// Answers at a path in its normal form: a page, else a file.
    fn answer(&self, at: RequestContext<'_>, key: &mut Vec<u8>) -> Reply {
        // No file and no page has a name that begins with a dot, but a page may take any name.
        if at.path.as_bytes().get(1) == Some(&b'.')
            && let Some(reply) = self.live(at)
        {
            return reply;
        }
        match at.generation.pages.router.find(at.path) {
            Some(found) => self.page(at, key, &found),
            None => self.other(at),
        }
    }

    /// Answers by the rules of the configuration, if there are any.
    fn answer_at(&self, at: RequestContext<'_>, key: &mut Vec<u8>) -> Reply {
        match &at.generation.rules {
            None => self.answer(at, key),
            Some(rules) => self.answer_by_rules(rules, at, key),
        }
    }
}

impl Service for SiteService {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        let Scratch { generation, .. } = &mut *self.scratch.borrow_mut();
        let route = KnownRoute::default();
        let mut handling = self.form_begins(generation.load(), request, &route);
        if let BodyHandling::Refused(response) = &mut handling {
            self.labeler(request, &route).label(response);
        }
        handling
    }

    fn wants_done(&self) -> bool {
        false
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        let route = KnownRoute::default();
        let mut reply = self.reply(request, &route);
        self.labeler(request, &route).label_reply(&mut reply);
        reply
    }
}

impl SiteService {
    /// Returns what labels the response to a request, whose route is noted.
    #[inline]
    pub(crate) fn labeler(&self, request: &Request<'_>, route: &KnownRoute) -> Labeler {
        self.core.routes.labeler(request, route.get())
    }

    fn reply(&self, request: &Request<'_>, route: &KnownRoute) -> Reply {
        let Scratch { generation, key } = &mut *self.scratch.borrow_mut();
        if !KNOWN.contains(&request.method) {
            let error = ErrorAnswer::new(501, "This server does not know that method.");
            return generation.load().refuse(request, &error).into();
        }
        if request.target == "*" {
            return options(ALL_METHODS).into();
        }
        let path = path::normalize(request.path);
        // Once: a reload in the middle of a request must not show it two generations.
        let generation = generation.load();
        let Ok(path) = path else {
            let error = ErrorAnswer::new(400, "The path cannot be read.");
            let reply = generation.refuse(request, &error).into();
            // The path has no normal form, so the rules for fields see it as it was sent.
            return match &generation.rules {
                None => reply,
                Some(rules) => rules.with_fields(request.path, reply),
            };
        };
        let at = RequestContext {
            generation,
            request,
            path: &path,
            route,
        };
        if generation.sessions.take_tokens() {
            return match generation.admit_token(request) {
                Ok(admission) => admission.apply(self.answer_at(at, key)),
                Err(refused) => generation.with_fields(&path, refused).into(),
            };
        }
        self.answer_at(at, key)
    }
}
