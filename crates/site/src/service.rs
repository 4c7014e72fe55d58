//! One worker's view of a site: requests in, responses out.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::{ArcSwap, Cache};
use bytes::Bytes;
use millpond_http::{Prepared, Reply, Request, Response, Service, path};
use millpond_store::Why;

use crate::{
    answer::{Ask, owned},
    cached::{Cached, page_key},
    core::{Core, Generation},
    form::{self, Refused},
    page::{Endpoint, Page},
    params::{BadParam, Given},
    route::Match,
    submit::{Submission, refusal},
    visitor::Visitor,
};

/// Serves a site on one worker.
pub struct SiteService {
    core: Arc<Core>,
    worker: usize,
    scratch: RefCell<Scratch>,
}

/// What a hit needs and would otherwise allocate anew.
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

    fn get(
        &self,
        generation: &Arc<Generation>,
        key: &mut Vec<u8>,
        request: &Request<'_>,
        path: &str,
        found: &Match<'_>,
    ) -> Reply {
        let Some(page) = &generation.pages.endpoints[found.page].page else {
            return not_allowed(&generation.pages.endpoints[found.page]).into();
        };
        let given = Given {
            path: &found.values,
            form: &[],
            query: request.query,
        };
        let vary = |field: &str| request.fields.get(field);
        if let Err(BadParam(sentence)) = page_key(key, generation.number, page, &given, vary) {
            return refusal(400, &sentence).into();
        }
        let why = match self.look(key, request) {
            Ok(value) => {
                page.counters.hit(self.worker);
                if let Cached::Page(prepared) = &*value {
                    self.wish(prepared, request, key, &value);
                }
                return generation
                    .respond(&value, request, Bytes::from_static(HIT))
                    .into();
            }
            Err(why) => why,
        };
        match given.values(&page.params) {
            Ok(values) => self.ask(generation, page, values, key, path, request, why),
            Err(BadParam(sentence)) => refusal(400, &sentence).into(),
        }
    }

    fn look(&self, key: &[u8], request: &Request<'_>) -> Result<Arc<Cached>, Why> {
        if self.core.cache {
            self.core.store.get(key, request.received)
        } else {
            Err(Why::Absent)
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "what a hit has looked up is handed on, not looked up again"
    )]
    fn ask(
        &self,
        generation: &Arc<Generation>,
        page: &Arc<Page>,
        values: Vec<millpond_db::Value>,
        key: &[u8],
        path: &str,
        request: &Request<'_>,
        why: Why,
    ) -> Reply {
        let ask = Ask {
            core: self.core.clone(),
            generation: generation.clone(),
            page: page.clone(),
            values,
            key: key.to_vec(),
            visitor: Visitor::new(owned(request), path.to_owned(), page.vary.clone()),
        };
        let cache = self.core.cache;
        Reply::later(async move {
            if cache {
                ask.answer(why).await
            } else {
                ask.answer_uncached().await
            }
        })
    }

    /// Has a coding made that this client could use, for the next one.
    fn wish(
        &self,
        prepared: &Arc<Prepared>,
        request: &Request<'_>,
        key: &[u8],
        value: &Arc<Cached>,
    ) {
        let Some(coding) = prepared.wanted(request) else {
            return;
        };
        let (core, key, value) = (Arc::downgrade(&self.core), key.to_vec(), value.clone());
        self.core.compressor.wish(prepared, coding, move |bytes| {
            if let Some(core) = core.upgrade() {
                core.store.grow(&key, &value, bytes);
            }
        });
    }

    fn post(
        &self,
        generation: &Arc<Generation>,
        request: &Request<'_>,
        found: &Match<'_>,
    ) -> Reply {
        let endpoint = &generation.pages.endpoints[found.page];
        let Some(form) = &endpoint.form else {
            return not_allowed(endpoint).into();
        };
        let checked = form::guard(request)
            .and_then(|()| form::encoding(request))
            .and_then(|encoding| {
                form::preconditions(request, endpoint.page.is_some()).map(|()| encoding)
            });
        let encoding = match checked {
            Ok(encoding) => encoding,
            Err(Refused(status, sentence)) => return refusal(status, sentence).into(),
        };
        let submission = Submission {
            core: self.core.clone(),
            generation: generation.clone(),
            form: form.clone(),
            path_values: found
                .values
                .iter()
                .map(|value| (*value).to_owned())
                .collect(),
            request: request.to_owned(),
            encoding,
        };
        Reply::later(submission.submit())
    }

    fn other(&self, generation: &Generation, request: &Request<'_>, path: &str) -> Reply {
        if let Some(file) = generation.statics.find(path) {
            match request.method {
                "GET" | "HEAD" => {}
                "OPTIONS" => return options(FILE_METHODS).into(),
                _ => return without_method(FILE_METHODS).into(),
            }
            if let Some(prepared) = file.prepared()
                && let Some(coding) = prepared.wanted(request)
            {
                self.core.compressor.wish(prepared, coding, |_| {});
            }
            return file.respond(request).into();
        }
        // A page has one address: without the slash at the end.
        let without = path.trim_end_matches('/');
        if without.len() < path.len()
            && !without.is_empty()
            && generation.pages.router.find(without).is_some()
        {
            let query = request
                .query
                .map(|query| format!("?{query}"))
                .unwrap_or_default();
            let raw = request.path.trim_end_matches('/');
            // A path that begins with two slashes would be read as another host.
            let target = format!("/{}{query}", raw.trim_start_matches('/'));
            return Response::builder(308)
                .field("Location", &target)
                .field("Cache-Control", "no-cache")
                .field("X-Content-Type-Options", "nosniff")
                .empty()
                .into();
        }
        generation.not_found.respond(request, Bytes::new()).into()
    }
}

const HIT: &[u8] = b"Cache-Status: millpond; hit\r\n";

/// The methods of RFC 9110, section 9, and PATCH: known, though a path may not have them.
const KNOWN: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// What a file has, as `Allow` lists it.
const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

fn not_allowed(endpoint: &Endpoint) -> Response {
    without_method(endpoint.allow())
}

fn without_method(allow: &str) -> Response {
    Response::builder(405)
        .field("Allow", allow)
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("X-Content-Type-Options", "nosniff")
        .body(Bytes::from_static(
            b"This address does not take that method.\n",
        ))
}

fn options(allow: &str) -> Response {
    Response::builder(204)
        .field("Allow", allow)
        .field("X-Content-Type-Options", "nosniff")
        .empty()
}

impl Service for SiteService {
    fn wants_done(&self) -> bool {
        false
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        let Scratch { generation, key } = &mut *self.scratch.borrow_mut();
        if !KNOWN.contains(&request.method) {
            return Response::text(501, "This server does not know that method.\n").into();
        }
        if request.target == "*" {
            return options("GET, HEAD, OPTIONS, POST").into();
        }
        let path = match path::normalize(request.path) {
            Ok(path) => path,
            Err(_) => return refusal(400, "The path cannot be read.").into(),
        };
        // Once: a reload in the middle of a request must not show it two generations.
        let generation = generation.load();
        let Some(found) = generation.pages.router.find(&path) else {
            return self.other(generation, request, &path);
        };
        match request.method {
            "GET" | "HEAD" => self.get(generation, key, request, &path, &found),
            "POST" => self.post(generation, request, &found),
            method => {
                let endpoint = &generation.pages.endpoints[found.page];
                if method == "OPTIONS" {
                    options(endpoint.allow()).into()
                } else {
                    not_allowed(endpoint).into()
                }
            }
        }
    }
}
