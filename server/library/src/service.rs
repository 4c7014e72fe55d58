//! From a request of the connections to the handler of its route, and back.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use millpond_access_log::{AccessLog, LogLine};
use millpond_http::{BodyHandling, Compressor, Reply, Service, path};
use millpond_pages::Admission;

use crate::failure::Failure;
use crate::handler::{HandlerCall, PageJob, ReadingJob, RequestJob};
use crate::param::ParamTexts;
use crate::pool::BlockingPool;
use crate::reading::{ArrivingBody, BodyReader};
use crate::request::Request;
use crate::response::{Response, ResponseContent};
use crate::routes::{FoundRoute, Route, Routes};
use crate::slot::slot;
use crate::store::Store;
use crate::stored::{PageRequest, answer_hit};
use crate::stream::BegunStream;

type HttpRequest<'a> = millpond_http::Request<'a>;

/// State that all workers share.
pub(crate) struct Shared {
    pub(crate) routes: Routes,
    pub(crate) pool: Arc<BlockingPool>,
    /// Decides which page is made next.
    pub(crate) admission: Arc<Admission>,
    pub(crate) compressor: Compressor,
    pub(crate) log: Option<AccessLog>,
    /// The most bytes of a body that is whole.
    pub(crate) whole_body: u64,
}

impl Shared {
    /// Ends the threads that may block, and the log.
    pub(crate) fn stop(&self) {
        self.pool.stop();
        if let Some(log) = &self.log {
            log.stop();
        }
    }
}

/// The service of one worker.
pub(crate) struct RouteService {
    shared: Arc<Shared>,
    key: RefCell<Vec<u8>>,
}

impl RouteService {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            key: RefCell::default(),
        }
    }

    fn run(&self, route: &Route, texts: &ParamTexts<'_>, http: &HttpRequest<'_>) -> Reply {
        let shared = &self.shared;
        if let Some(limit) = route.handler.body_limit
            && http.body.len() as u64 > limit
        {
            return self.fail(http, too_large(limit));
        }
        match &route.handler.call {
            HandlerCall::Quick(call) => {
                let accept_read = AtomicBool::new(false);
                let request = Request::new(http, &accept_read);
                let call = AssertUnwindSafe(|| call(&request, texts));
                match catch_unwind(call) {
                    Ok(Ok(response)) => shared.render(response, http).into(),
                    Ok(Err(failure)) => self.fail(http, failure),
                    Err(_) => shared.render_panic(http).into(),
                }
            }
            HandlerCall::Blocking(begin) => match begin(texts) {
                Ok(job) => self.block(http, job),
                Err(failure) => self.fail(http, failure),
            },
            HandlerCall::Reading(begin) => match begin(texts) {
                Ok(job) => self.read_whole(http, job),
                Err(failure) => self.fail(http, failure),
            },
            HandlerCall::Stored(store, begin) => self.stored(route, store, texts, http, begin),
        }
    }

    fn stored(
        &self,
        route: &Route,
        store: &Store,
        texts: &ParamTexts<'_>,
        http: &HttpRequest<'_>,
        begin: &dyn Fn(&ParamTexts<'_>) -> Result<PageJob, Failure>,
    ) -> Reply {
        let mut key = self.key.borrow_mut();
        key.clear();
        key.extend_from_slice(&route.number.to_le_bytes());
        texts.push_key(&mut key);
        let why = match store.pages().get(&key, http.received) {
            Ok(hit) => return answer_hit(&self.shared, store, &key, &hit, http),
            Err(why) => why,
        };
        match begin(texts) {
            Ok(job) => {
                let page = PageRequest {
                    shared: Arc::clone(&self.shared),
                    store: store.clone(),
                    key: key.clone(),
                    request: http.to_owned(),
                    job,
                    why,
                };
                Reply::later(page.answer())
            }
            Err(failure) => self.fail(http, failure),
        }
    }

    /// Calls a handler on a thread of the pool, unless its client goes away before.
    fn block(&self, http: &HttpRequest<'_>, job: RequestJob) -> Reply {
        let request = Arc::new(http.to_owned());
        let shown_to = Arc::clone(&request);
        let (answer, receiver) = slot();
        let submitted = self.shared.pool.submit(Box::new(move || {
            if !answer.is_unwanted() {
                let (http, accept_read) = (request.as_request(), AtomicBool::new(false));
                answer.send(job(&Request::new(&http, &accept_read)));
            }
        }));
        if submitted.is_err() {
            return self.fail(http, Failure::busy());
        }
        let shared = Arc::clone(&self.shared);
        Reply::later(async move {
            let request = shown_to.as_request();
            match receiver.await {
                Some(response) => shared.render(response, &request),
                None => shared.render_panic(&request),
            }
        })
    }

    /// A body that is there, because it is empty.
    fn read_whole(&self, http: &HttpRequest<'_>, job: ReadingJob) -> Reply {
        let body = BodyReader::whole(http.body.clone());
        self.block(http, Box::new(move |request| job(request, body)))
    }

    fn fail(&self, http: &HttpRequest<'_>, failure: Failure) -> Reply {
        self.shared.render(Response::failed(failure), http).into()
    }

    /// Decides about a body, by the route of its request.
    fn body(&self, http: &HttpRequest<'_>) -> BodyHandling {
        let shared = &self.shared;
        let refuse =
            |failure| BodyHandling::Refused(shared.render(Response::failed(failure), http));
        let Ok(path) = path::normalize(http.path) else {
            // The request is answered when it is there.
            return BodyHandling::Whole;
        };
        let found = self.shared.routes.find(http.method, &path, http.query);
        let FoundRoute::Route(route, texts) = found else {
            return BodyHandling::Whole;
        };
        let handler = &route.handler;
        let most = match handler.call {
            HandlerCall::Reading(_) => u64::MAX,
            _ => self.shared.whole_body,
        };
        let limit = handler.body_limit.unwrap_or(most).min(most);
        if length(http).is_some_and(|length| length > limit) {
            return refuse(too_large(limit));
        }
        let HandlerCall::Reading(begin) = &handler.call else {
            return BodyHandling::Whole;
        };
        match begin(&texts) {
            Ok(job) => {
                let body = ArrivingBody::new(&self.shared, http.to_owned(), job, limit);
                BodyHandling::Streamed(Box::new(body))
            }
            Err(failure) => refuse(failure),
        }
    }
}

pub(crate) fn too_large(limit: u64) -> Failure {
    Failure::new(413, format!("the body is longer than {limit} bytes"))
}

/// Returns the length of the body that the client says.
fn length(http: &HttpRequest<'_>) -> Option<u64> {
    let text = std::str::from_utf8(http.fields.get("content-length")?).ok()?;
    text.trim().parse().ok()
}

impl Service for RouteService {
    fn call(&self, http: &HttpRequest<'_>) -> Reply {
        let path = match path::normalize(http.path) {
            Ok(path) => path,
            Err(_) if http.path == "*" => return Reply::Ready(methods(ALL_METHODS)),
            Err(error) => return self.fail(http, Failure::new(400, error.to_string())),
        };
        match self.shared.routes.find(http.method, &path, http.query) {
            FoundRoute::Route(route, texts) => self.run(route, &texts, http),
            FoundRoute::Methods(allowed) => Reply::Ready(methods(&allowed)),
            FoundRoute::Failure(failure) => self.fail(http, failure),
        }
    }

    fn body_begins(&self, http: &HttpRequest<'_>) -> BodyHandling {
        self.body(http)
    }

    fn wants_done(&self) -> bool {
        self.shared.log.is_some()
    }

    fn done(&self, request: &HttpRequest<'_>, status: u16, body_bytes: u64, _label: u32) {
        if let Some(log) = &self.shared.log {
            log.record(&LogLine {
                client: request.client().address(),
                method: request.method.as_bytes(),
                target: request.target.as_bytes(),
                version: request.version.as_str(),
                status,
                bytes: body_bytes,
                referer: request.fields.get("referer"),
                user_agent: request.fields.get("user-agent"),
                received: Some(request.received),
            });
        }
    }

    fn refused(&self, peer: SocketAddr, status: u16) {
        if let Some(log) = &self.shared.log {
            // What it asked for was not understood.
            log.record(&LogLine {
                client: peer.ip(),
                method: b"",
                target: b"",
                version: "",
                status,
                bytes: 0,
                referer: None,
                user_agent: None,
                received: None,
            });
        }
    }
}

const ALL_METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

fn methods(allowed: &str) -> millpond_http::Response {
    millpond_http::Response::builder(204)
        .field("Allow", allowed)
        .empty()
}

impl Shared {
    /// The response as the connections send it to the client of this request.
    pub(crate) fn render(
        &self,
        response: Response,
        request: &HttpRequest<'_>,
    ) -> millpond_http::Response {
        self.begin(response).unwrap_or_else(|failure| {
            let shown = self.begin(self.routes.show(&failure, request));
            // What shows failures may fail itself, as a stream.
            shown.unwrap_or_else(|_| millpond_http::Response::builder(failure.status()).empty())
        })
    }

    /// Makes the head, and begins a stream.
    fn begin(&self, response: Response) -> Result<millpond_http::Response, Failure> {
        let mut head = millpond_http::Response::builder(response.status);
        if let Some(media_type) = &response.media_type {
            head = head
                .field("Content-Type", media_type)
                .field("X-Content-Type-Options", "nosniff");
        }
        for (name, value) in &response.fields {
            head = head.field(name, value);
        }
        match response.content {
            ResponseContent::Empty => Ok(head.empty()),
            ResponseContent::Bytes(bytes) => Ok(head.body(bytes)),
            ResponseContent::Failure(failure) => Err(failure),
            ResponseContent::Stream(stream) => match stream.begin(&self.pool) {
                BegunStream::Whole(bytes) => Ok(head.body(bytes)),
                BegunStream::Streamed(body) => Ok(head.streamed(body)),
                BegunStream::Failed => Err(internal()),
                BegunStream::Busy => Err(Failure::busy()),
            },
        }
    }

    /// The answer where a handler has panicked.
    pub(crate) fn render_panic(&self, request: &HttpRequest<'_>) -> millpond_http::Response {
        self.render(Response::failed(internal()), request)
    }
}

fn internal() -> Failure {
    Failure::new(500, "internal server error")
}
