//! Which handler answers which request.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use crate::error::RouteError;
use crate::failure::Failure;
use crate::handler::{Handler, HandlerCall};
use crate::pairs::pairs;
use crate::param::{MAX_PARAMS, ParamTexts, not_utf8};
use crate::pattern::{PatternSegment, RoutePattern};
use crate::request::Request;
use crate::response::{Response, ResponseContent};
use crate::store::Store;

/// The routes of a service.
///
/// A pattern is a path whose segments are texts or parameters, and after a question mark the
/// parameters of the query: `/albums/{id}?{page}&{sort}`. `{rest...}` at the end is all that is
/// left of the path. A text goes before a parameter, and a parameter before a rest. In the last
/// segment a parameter may have an ending: `/albums/{id}.json` goes before `/albums/{id}`, and a
/// longer ending before a shorter one.
///
/// A handler takes the parameters in the order of the pattern, each as the type that it names: a
/// value in the path that is none of that type is 404, one in the query 400.
///
/// A method without a handler is 405 with `Allow`. HEAD is answered by the handler of GET, OPTIONS
/// by the list of methods. A path is compared in its normal form: percent-decoded, without dot
/// segments.
pub struct Routes {
    root: RouteNode,
    error: Option<RouteError>,
    failures: FailureFunction,
    /// Of the routes with stored pages.
    stores: Vec<Store>,
}

type FailureFunction = Arc<dyn Fn(&Request<'_>, &Failure) -> Response + Send + Sync>;

/// The handler of one method, and the names of its parameters.
pub(crate) struct Route {
    method: Box<str>,
    pub(crate) handler: Handler,
    names: Box<[Box<str>]>,
    in_path: usize,
    /// Tells it from all other routes of the process, in keys of the store.
    pub(crate) number: u64,
}

#[derive(Default)]
struct RouteNode {
    texts: HashMap<Box<str>, RouteNode, foldhash::fast::RandomState>,
    param: Option<Box<RouteNode>>,
    /// Of a parameter with an ending in the last segment: the longest ending first.
    endings: Vec<(Box<str>, Vec<Route>)>,
    rest: Vec<Route>,
    here: Vec<Route>,
}

/// Route that answers a request.
pub(crate) enum FoundRoute<'a> {
    Route(&'a Route, ParamTexts<'a>),
    /// 204 with the methods, to OPTIONS.
    Methods(String),
    Failure(Failure),
}

impl Default for Routes {
    fn default() -> Self {
        Self::new()
    }
}

impl Routes {
    /// No routes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            root: RouteNode::default(),
            error: None,
            failures: Arc::new(|_: &Request<'_>, failure: &Failure| plain_failure(failure)),
            stores: Vec::new(),
        }
    }

    /// Answers GET and HEAD. A mistake in a pattern is an error when the server is started.
    pub fn get(&mut self, pattern: &str, handler: Handler) -> &mut Self {
        self.method("GET", pattern, handler)
    }

    /// Answers POST.
    pub fn post(&mut self, pattern: &str, handler: Handler) -> &mut Self {
        self.method("POST", pattern, handler)
    }

    /// Answers PUT.
    pub fn put(&mut self, pattern: &str, handler: Handler) -> &mut Self {
        self.method("PUT", pattern, handler)
    }

    /// Answers PATCH.
    pub fn patch(&mut self, pattern: &str, handler: Handler) -> &mut Self {
        self.method("PATCH", pattern, handler)
    }

    /// Answers DELETE.
    pub fn delete(&mut self, pattern: &str, handler: Handler) -> &mut Self {
        self.method("DELETE", pattern, handler)
    }

    /// Answers another method. Methods are case-sensitive.
    pub fn method(&mut self, method: &str, pattern: &str, handler: Handler) -> &mut Self {
        if let Err(error) = self.add(method, pattern, handler) {
            self.error.get_or_insert(error);
        }
        self
    }

    /// Says what [`Failure`]s look like: those of handlers, and 400, 404, 405, 413, 500 and 503 of
    /// the library. Without it they are plain text. The status stays that of the failure, and so
    /// do its [field lines](Failure::fields), unless the response has such ones.
    ///
    /// The function sees the request without its body. It is called for each client on its worker,
    /// so it must not block, also for a failure that a [store](crate::stored) keeps. If it reads
    /// `Accept`, such as by [`Request::prefers_json`], the response has `Vary: Accept,
    /// Authorization`.
    ///
    /// ```
    /// use millpond::{Failure, Request, Response, Routes};
    ///
    /// let mut routes = Routes::new();
    /// routes.failures(|request: &Request, failure: &Failure| match request.prefers_json() {
    ///     true => Response::json(format!(r#"{{"status":{}}}"#, failure.status())),
    ///     false => Response::html(format!("<h1>Error {}</h1>", failure.status())),
    /// });
    /// ```
    ///
    /// A request that is no HTTP, or over a limit of the connection, is answered in plain text.
    pub fn failures(
        &mut self,
        function: impl Fn(&Request<'_>, &Failure) -> Response + Send + Sync + 'static,
    ) -> &mut Self {
        self.failures = Arc::new(function);
        self
    }

    fn add(&mut self, method: &str, pattern: &str, handler: Handler) -> Result<(), RouteError> {
        let parsed = RoutePattern::parse(pattern)?;
        let fault = |what: String| Err(RouteError::new(pattern, what));
        if parsed.names.len() != handler.params {
            let count = parsed.names.len();
            let plural = if count == 1 { "" } else { "s" };
            let taken = handler.params;
            return fault(format!(
                "has {count} parameter{plural}, and the function of its handler takes {taken}"
            ));
        }
        if method == "HEAD" || method == "OPTIONS" {
            return fault(format!(
                "is for {method}, which the library answers by itself"
            ));
        }
        let mut node = &mut self.root;
        let (mut is_rest, mut ending) = (false, None);
        for segment in parsed.segments {
            match segment {
                PatternSegment::Text(text) => node = node.texts.entry(text).or_default(),
                PatternSegment::Param => node = node.param.get_or_insert_default(),
                PatternSegment::Rest => is_rest = true,
                PatternSegment::ParamWithEnding(text) => ending = Some(text),
            }
        }
        let routes = match ending {
            Some(ending) => node.of_ending(ending),
            None if is_rest => &mut node.rest,
            None => &mut node.here,
        };
        if routes.iter().any(|route| *route.method == *method) {
            return fault(format!("has a handler of {method} already"));
        }
        if let HandlerCall::Stored(store, _) = &handler.call {
            self.stores.push(store.clone());
        }
        routes.push(Route {
            method: method.into(),
            handler,
            names: parsed.names,
            in_path: parsed.in_path,
            number: crate::store::next_route(),
        });
        Ok(())
    }

    /// The first mistake.
    pub(crate) fn check(&self) -> Result<(), RouteError> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// A server begins to serve them: what is wrong with their stores.
    pub(crate) fn begin_serving(&self) -> impl Iterator<Item = &'static str> {
        self.stores.iter().filter_map(Store::begin_serving)
    }

    /// The route for a path in its normal form.
    pub(crate) fn find<'a>(
        &'a self,
        method: &str,
        path: &'a str,
        query: Option<&'a str>,
    ) -> FoundRoute<'a> {
        let mut captured = [""; MAX_PARAMS];
        let rest = path.strip_prefix('/').unwrap_or(path);
        let Some(routes) = self.root.find(Some(rest), &mut captured, 0) else {
            return FoundRoute::Failure(Failure::not_found());
        };
        let wanted = if method == "HEAD" { "GET" } else { method };
        let Some(route) = routes.iter().find(|route| *route.method == *wanted) else {
            let methods = methods(routes);
            return match method {
                "OPTIONS" => FoundRoute::Methods(methods),
                _ => FoundRoute::Failure(
                    Failure::new(405, format!("this address answers {methods}"))
                        .with_field("Allow", methods),
                ),
            };
        };
        match route.texts(&captured, query) {
            Ok(texts) => FoundRoute::Route(route, texts),
            Err(failure) => FoundRoute::Failure(failure),
        }
    }

    /// Makes the response of a failure for the client of this request.
    pub(crate) fn show(&self, failure: &Failure, http: &millpond_http::Request<'_>) -> Response {
        let mut head = http.clone();
        head.body = Bytes::new();
        let accept_read = AtomicBool::new(false);
        let request = Request::new(&head, &accept_read);
        let shown = catch_unwind(AssertUnwindSafe(|| (self.failures)(&request, failure)));
        let mut shown = match shown {
            Ok(shown) if !matches!(shown.content, ResponseContent::Failure(_)) => shown,
            _ => plain_failure(failure),
        };
        shown.status = failure.status();
        let missing = failure.fields().filter(|(name, _)| !shown.has_field(name));
        let missing: Vec<_> = missing.collect();
        for (name, value) in missing {
            shown = shown.with_field(name.to_owned(), value);
        }
        if failure.varies_by_accept() {
            // The function's own `Vary` went before that of the failure.
            shown = shown.varying_by_accept();
        }
        request.answered(shown)
    }
}

fn plain_failure(failure: &Failure) -> Response {
    Response::text(format!("{}\n", failure.message())).with_status(failure.status())
}

fn methods(routes: &[Route]) -> String {
    let mut methods: Vec<&str> = routes.iter().map(|route| &*route.method).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.push("OPTIONS");
    methods.sort_unstable();
    methods.join(", ")
}

impl RouteNode {
    /// The routes of a parameter with this ending.
    fn of_ending(&mut self, ending: Box<str>) -> &mut Vec<Route> {
        let longer = |(known, _): &(Box<str>, _)| (Reverse(known.len()), known.clone());
        let place = (Reverse(ending.len()), ending.clone());
        let at = match self.endings.binary_search_by_key(&place, longer) {
            Ok(at) => at,
            Err(at) => {
                self.endings.insert(at, (ending, Vec::new()));
                at
            }
        };
        &mut self.endings[at].1
    }

    /// The routes of the first ending that the last segment has behind a value.
    fn find_ending<'p>(&self, segment: &'p str) -> Option<(&'p str, &[Route])> {
        self.endings.iter().find_map(|(ending, routes)| {
            let value = segment.strip_suffix(&**ending)?;
            (!value.is_empty()).then_some((value, &**routes))
        })
    }

    /// The routes of the path `rest`, which begins behind a slash; none of it is left if it is
    /// none. A branch that leads nowhere is left again: as patterns have at most eight parameters,
    /// a path tries at most 256 branches, however long it is.
    fn find<'p>(
        &self,
        rest: Option<&'p str>,
        captured: &mut [&'p str; MAX_PARAMS],
        count: usize,
    ) -> Option<&[Route]> {
        let Some(path) = rest else {
            return (!self.here.is_empty()).then_some(&self.here);
        };
        let (segment, behind) = match path.split_once('/') {
            Some((segment, behind)) => (segment, Some(behind)),
            None => (path, None),
        };
        if let Some(node) = self.texts.get(segment)
            && let Some(found) = node.find(behind, captured, count)
        {
            return Some(found);
        }
        if behind.is_none()
            && let Some((value, routes)) = self.find_ending(segment)
        {
            captured[count] = value;
            return Some(routes);
        }
        if let Some(node) = &self.param
            && !segment.is_empty()
        {
            captured[count] = segment;
            if let Some(found) = node.find(behind, captured, count + 1) {
                return Some(found);
            }
        }
        if self.rest.is_empty() {
            return None;
        }
        captured[count] = path;
        Some(&self.rest)
    }
}

impl Route {
    fn texts<'a>(
        &'a self,
        captured: &[&'a str; MAX_PARAMS],
        query: Option<&'a str>,
    ) -> Result<ParamTexts<'a>, Failure> {
        let mut texts = ParamTexts::new(&self.names, self.in_path);
        for (at, text) in captured[..self.in_path].iter().enumerate() {
            texts.set(at, Cow::Borrowed(text));
        }
        if let Some(query) = query
            && self.in_path < self.names.len()
        {
            for pair in pairs(query.as_bytes()) {
                let (name, value) = (pair.name, pair.value);
                let Some(at) = self.names.iter().position(|known| **known == *name) else {
                    continue;
                };
                if at < self.in_path {
                    continue;
                }
                if texts.is_set(at) {
                    return Err(Failure::new(400, format!("{name} is given twice")));
                }
                if !pair.is_utf8 {
                    return Err(not_utf8(&name));
                }
                texts.set(at, value);
            }
        }
        Ok(texts)
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, quick};

    fn found(routes: &Routes, method: &str, path: &str) -> String {
        match routes.find(method, path, None) {
            FoundRoute::Route(route, _) => route.names.join(","),
            FoundRoute::Methods(methods) => methods,
            FoundRoute::Failure(failure) => failure.status().to_string(),
        }
    }

    #[test]
    fn a_text_goes_before_a_parameter_and_a_parameter_before_a_rest() {
        let mut routes = Routes::new();
        routes
            .get("/", quick(|_: &Request| ()))
            .get("/a/{x}/c", quick(|_: &Request, _: String| ()))
            .get("/a/b/{y}", quick(|_: &Request, _: String| ()))
            .get("/{rest...}", quick(|_: &Request, _: String| ()))
            .post("/a/b/d", quick(|_: &Request| ()))
            .get("/e/{plain}", quick(|_: &Request, _: String| ()))
            .get("/e/{json}.json", quick(|_: &Request, _: String| ()))
            .get("/e/{map}.map.json", quick(|_: &Request, _: String| ()))
            .get("/e/x.json", quick(|_: &Request| ()))
            .get("/f/", quick(|_: &Request| ()));
        routes.check().unwrap();
        for (path, names) in [
            ("/", ""),
            ("/a/1/c", "x"),
            ("/a/b/c", "y"),
            ("/a/b/c/", "rest"),
            ("/a/b", "rest"),
            ("/f/", ""),
            ("/f", "rest"),
            ("/a//c", "rest"),
            ("/e/a", "plain"),
            ("/e/a.json", "json"),
            ("/e/a.b.json", "json"),
            ("/e/.json.json", "json"),
            ("/e/.json", "plain"),
            ("/e/a.map.json", "map"),
            ("/e/.map.json", "json"),
            ("/e/x.json", ""),
            ("/e/a.jsonx", "plain"),
            ("/e/a.json/", "rest"),
        ] {
            assert_eq!(found(&routes, "GET", path), names, "{path}");
        }
        assert_eq!(found(&routes, "GET", "/a/b/d"), "405");
        assert_eq!(found(&routes, "OPTIONS", "/a/b/d"), "OPTIONS, POST");
        assert_eq!(found(&routes, "OPTIONS", "/f/"), "GET, HEAD, OPTIONS");
        assert_eq!(found(&routes, "get", "/f/"), "405");
    }

    #[test]
    fn a_mistake_is_found_when_the_server_starts() {
        let handler = || quick(|_: &Request| ());
        for (pattern, twice) in [("/{a}", false), ("a", false), ("/b", true)] {
            let mut routes = Routes::new();
            routes.get(pattern, handler());
            if twice {
                routes.get(pattern, handler());
            }
            assert_eq!(routes.check().unwrap_err().pattern(), pattern);
        }
        let mut routes = Routes::new();
        routes.method("HEAD", "/", handler());
        assert!(routes.check().is_err());
    }
}
