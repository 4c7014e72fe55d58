//! Which handler answers which request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::error::RouteError;
use crate::failure::Failure;
use crate::handler::Handler;
use crate::param::{MAX_PARAMS, ParamTexts};
use crate::pattern::{PatternSegment, RoutePattern};
use crate::response::{Response, ResponseContent};

/// The routes of a service.
///
/// A pattern is a path whose segments are texts or parameters, and after a question mark the
/// parameters of the query: `/albums/{id}?{page}&{sort}`. `{rest...}` at the end is all that is
/// left of the path. A text goes before a parameter, and a parameter before a rest. A handler takes
/// the parameters in the order of the pattern, each as the type that it names: a value in the path
/// that is none of that type is 404, one in the query 400.
///
/// A method without a handler is 405 with `Allow`. HEAD is answered by the handler of GET, OPTIONS
/// by the list of methods. A path is compared in its normal form: percent-decoded, without dot
/// segments.
pub struct Routes {
    root: RouteNode,
    error: Option<RouteError>,
    failures: FailureFunction,
}

type FailureFunction = Arc<dyn Fn(&Failure) -> Response + Send + Sync>;

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
    rest: Vec<Route>,
    here: Vec<Route>,
}

/// What a request is answered by.
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
            failures: Arc::new(plain_failure),
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
    /// the library. Without it they are plain text. The status stays that of the failure.
    ///
    /// A request that is no HTTP, or over a limit of the connection, is answered in plain text.
    pub fn failures(
        &mut self,
        function: impl Fn(&Failure) -> Response + Send + Sync + 'static,
    ) -> &mut Self {
        self.failures = Arc::new(function);
        self
    }

    fn add(&mut self, method: &str, pattern: &str, handler: Handler) -> Result<(), RouteError> {
        let parsed = RoutePattern::parse(pattern)?;
        let fault = |what: String| Err(RouteError::new(pattern, what));
        if parsed.names.len() != handler.params {
            return fault(format!(
                "has {} parameters, and the function of its handler takes {}",
                parsed.names.len(),
                handler.params
            ));
        }
        if method == "HEAD" || method == "OPTIONS" {
            return fault(format!(
                "is for {method}, which the library answers by itself"
            ));
        }
        let mut node = &mut self.root;
        let mut is_rest = false;
        for segment in parsed.segments {
            match segment {
                PatternSegment::Text(text) => node = node.texts.entry(text).or_default(),
                PatternSegment::Param => node = node.param.get_or_insert_default(),
                PatternSegment::Rest => is_rest = true,
            }
        }
        let routes = if is_rest {
            &mut node.rest
        } else {
            &mut node.here
        };
        if routes.iter().any(|route| *route.method == *method) {
            return fault(format!("has a handler of {method} already"));
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

    /// What a failure looks like.
    pub(crate) fn show(&self, failure: &Failure) -> Response {
        let shown = (self.failures)(failure);
        let mut shown = match shown.content {
            ResponseContent::Failure(_) => plain_failure(failure),
            _ => shown,
        };
        shown.status = failure.status();
        for (name, value) in &failure.fields {
            if !shown.has_field(name) {
                shown = shown.with_field(*name, value);
            }
        }
        shown
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
            for (name, value) in form_urlencoded::parse(query.as_bytes()) {
                let Some(at) = self.names.iter().position(|known| **known == *name) else {
                    continue;
                };
                if at < self.in_path {
                    continue;
                }
                if texts.is_set(at) {
                    return Err(Failure::new(400, format!("{name} is given twice")));
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
