//! Who is given an answer at all: rules of the settings (`[[require]]`) and tokens of programs.
//!
//! Both are looked at before pages and files, so that they hold for everything at an address. An
//! answer that was given because of a session is private, and is repeated for as long as the
//! session lasts. The key of a page stays as it is: visitors who may enter share the page.

use base_clock::Boottime;
use bytes::Bytes;
use millpond_http::{Reply, Request, Response, Validity, ValidityCheck, path};

use super::see_other::sign_in as to_sign_in;
use crate::{
    core::{Generation, error_answer::ErrorAnswer, problem_details::wants_json},
    session::{CookieExpiry, Session, TokenFault},
};
use millpond_site_compile::{compile::sign_in, page::guard::Guard};
use millpond_site_format::{
    access::{Gate, gate},
    rules::{RequireRule, local, split},
    write_method::WriteMethod,
};

/// Requirements by which a request was admitted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admission {
    has_token: bool,
    /// The end of the session, if the answer depends on it.
    end: Option<CookieExpiry>,
}

impl Admission {
    /// True if the session that admitted the client has ended at `now`.
    pub(crate) fn is_over(&self, now: Boottime) -> bool {
        self.end.is_some_and(|end| end.is_over(now))
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            has_token: self.has_token || other.has_token,
            end: self.end.or(other.end),
        }
    }

    /// The reply to the request that was admitted.
    #[inline]
    pub(crate) fn apply(self, reply: Reply) -> Reply {
        match self.end {
            None => reply,
            Some(end) => self.apply_to_private(reply, end),
        }
    }

    fn apply_to_private(self, reply: Reply, end: CookieExpiry) -> Reply {
        match reply {
            Reply::Ready(response) => self.private(response).into(),
            Reply::Reusable(reply) => {
                let (response, validity) = *reply;
                let validity = Validity::Check(Box::new(SessionValidity { validity, end }));
                Reply::reusable(self.private(response), Some(validity))
            }
            Reply::Later(response) => Reply::later(async move { self.private(response.await) }),
        }
    }

    /// Forbids all memories but the client's own to keep the response.
    fn private(self, response: Response) -> Response {
        let response = with_private_caching(response);
        if !self.has_token {
            return response;
        }
        let lines = [&response.extra()[..], b"Vary: Authorization\r\n"].concat();
        response.with_extra(lines.into())
    }
}

const CACHE_CONTROL: &str = "Cache-Control";
const PRIVATE: &str = "Cache-Control: private, no-cache\r\n";

/// RFC 9111 section 5.2.2.7. Costs a copy of the head where it said something else.
fn with_private_caching(response: Response) -> Response {
    let Some(told) = response.field(CACHE_CONTROL) else {
        let lines = [&response.extra()[..], PRIVATE.as_bytes()].concat();
        return response.with_extra(lines.into());
    };
    if told.contains("private") || told.contains("no-store") {
        return response;
    }
    let without = |lines: &Bytes| {
        let mut kept = Vec::with_capacity(lines.len() + PRIVATE.len());
        let is_other = |line: &&[u8]| {
            let name = line.get(..CACHE_CONTROL.len());
            !name.is_some_and(|name| name.eq_ignore_ascii_case(CACHE_CONTROL.as_bytes()))
                || line.get(CACHE_CONTROL.len()) != Some(&b':')
        };
        let others = lines
            .split_inclusive(|byte| *byte == b'\n')
            .filter(is_other);
        others.for_each(|line| kept.extend_from_slice(line));
        kept
    };
    let mut head = without(response.head());
    head.extend_from_slice(PRIVATE.as_bytes());
    let extra = without(response.extra()).into();
    let (status, body) = (response.status(), response.body().clone());
    let private = Response::prepared(status, head.into(), extra, body);
    match response.closes() {
        true => private.closing(),
        false => private,
    }
}

/// The validity of a response that ends with a session.
struct SessionValidity {
    validity: Validity,
    end: CookieExpiry,
}

impl ValidityCheck for SessionValidity {
    fn is_valid(&self, received: Boottime) -> bool {
        !self.end.is_over(received) && self.validity.is_valid(received)
    }

    fn is_over(&self) -> bool {
        self.end.is_over(Boottime::now()) || self.validity.is_over()
    }
}

impl Generation {
    /// Decides if the request is answered, as far as its token says.
    ///
    /// # Errors
    /// The answer to a request with a bad token.
    pub(crate) fn admit_token(&self, request: &Request<'_>) -> Result<Admission, Response> {
        match self.sessions.token_end(request) {
            Ok(None) => Ok(Admission::default()),
            Ok(end) => Ok(Admission {
                has_token: true,
                end,
            }),
            Err(fault) => Err(refuse_token(fault)),
        }
    }

    /// Decides if the request is answered, as far as the rules of the settings say for the path
    /// that it asks for and for the one that answers it by a rewrite.
    ///
    /// # Errors
    /// The answer to a visitor who may not enter.
    pub(crate) fn admit_at(
        &self,
        request: &Request<'_>,
        path: &str,
    ) -> Result<Admission, Response> {
        let wanted = self.required_at(request.method, path);
        if wanted.is_empty() {
            return Ok(Admission::default());
        }
        let session = self.sessions.of(request);
        let required = wanted.iter().map(|rule| &rule.require);
        match gate(required, session.as_ref().map(Session::claims)) {
            Gate::Open => Ok(Admission {
                has_token: false,
                end: session.as_ref().map(Session::expiry),
            }),
            closed => {
                let behind = self.path_behind(path);
                let is_api = self.is_api_at(request, behind.as_deref().unwrap_or(path));
                let guards = self.rules.as_ref().and_then(|rules| rules.guards.as_ref());
                let mut paths = [Some(path), behind.as_deref()].into_iter().flatten();
                let led_to = match closed {
                    Gate::SignIn(otherwise) => {
                        paths.find_map(|path| guards?.led_to(otherwise, path))
                    }
                    _ => None,
                };
                let closed = led_to.as_deref().map_or(Gate::Closed, Gate::SignIn);
                Err(self.refuse_admission(request, closed, session.is_some(), is_api))
            }
        }
    }

    /// Lists the requirements of the settings for a method at a path.
    pub(crate) fn required_at(&self, method: &str, path: &str) -> Vec<&RequireRule> {
        let guards = self.rules.as_ref().and_then(|rules| rules.guards.as_ref());
        let Some(guards) = guards else {
            return Vec::new();
        };
        let behind = self.path_behind(path);
        let paths = [Some(path), behind.as_deref()].into_iter().flatten();
        paths.flat_map(|path| guards.at(method, path)).collect()
    }

    /// The path that answers by a rewrite, if one is for this path.
    pub(crate) fn path_behind(&self, path: &str) -> Option<String> {
        let target = self.rules.as_ref()?.rewrite(path, None)?;
        let (path, _) = split(&target);
        Some(self.place_of(&path).to_owned())
    }

    /// True if what is at a path answers this client as a program.
    fn is_api_at(&self, request: &Request<'_>, path: &str) -> bool {
        let Some(found) = self.pages.router.find(path) else {
            return false;
        };
        let endpoint = &self.pages.endpoints[found.page];
        let form = WriteMethod::of(request.method).and_then(|method| endpoint.form(method));
        match (form, &endpoint.page) {
            (Some(form), _) => !form.is_for_people(),
            (None, Some(page)) => page.is_api_for(request),
            (None, None) => endpoint.is_api_for(request),
        }
    }

    /// True if a page at this path may be given to a visitor because of a rule of the settings.
    pub(crate) fn may_be_guarded(&self, path: &str) -> bool {
        let rules = self.rules.as_ref();
        let rules = rules.filter(|rules| rules.guards.is_some());
        // A guarded path may lead to it by a rewrite.
        rules.is_some_and(|rules| rules.has_rewrites() || !self.required_at("GET", path).is_empty())
    }

    /// The answer to a visitor whose session is not what is required. RFC 9110 section 15.5.2: 401
    /// says that a session may help, and how it is shown; 403 that the session is not enough. A
    /// person is led to the page where one signs in, if there is one.
    #[cold]
    pub(crate) fn refuse_admission(
        &self,
        request: &Request<'_>,
        gate: Gate<'_>,
        has_session: bool,
        is_api: bool,
    ) -> Response {
        let is_api = is_api || self.sessions.has_token(request);
        let is_program = wants_json(request, is_api);
        match gate {
            Gate::SignIn(path) if !is_program => to_sign_in(path, request),
            _ if is_program && !has_session => {
                let challenge = self.sessions.challenge();
                let fields = [("WWW-Authenticate", &*challenge)];
                let error = ErrorAnswer::new(401, "This needs a session: please sign in.");
                self.refuse(request, &error.with(&fields).of_api(is_api))
            }
            _ => {
                let error = ErrorAnswer::new(403, "You have no access to this page.");
                self.refuse(request, &error.of_api(is_api))
            }
        }
    }
}

/// RFC 6750 section 3.1.
#[cold]
fn refuse_token(fault: TokenFault) -> Response {
    let (status, sentence, challenge) = match fault {
        TokenFault::Ambiguous(sentence) => (400, sentence, "Bearer error=\"invalid_request\""),
        TokenFault::Invalid => {
            let sentence = "The token is none of this site, or its time is over.";
            (401, sentence, "Bearer error=\"invalid_token\"")
        }
    };
    let fields = [("WWW-Authenticate", challenge)];
    ErrorAnswer::new(status, sentence).with(&fields).problem()
}

impl Generation {
    /// The answer to a visitor for whom the guard's query gave no row, as of a session that is not
    /// what is required.
    #[cold]
    pub(crate) fn refuse_guarded(
        &self,
        guard: &Guard,
        request: &Request<'_>,
        is_api: bool,
    ) -> Response {
        let has_session = self.sessions.of(request).is_some();
        let path = guard.otherwise.as_deref();
        let path = path.map(|path| self.led_to(path, request));
        let gate = path.as_deref().map_or(Gate::Closed, Gate::SignIn);
        self.refuse_admission(request, gate, has_session, is_api)
    }

    /// The path behind `else`, with the parts of the path that is asked for.
    fn led_to(&self, otherwise: &str, request: &Request<'_>) -> String {
        let asked = path::normalize(request.path).unwrap_or_default();
        let behind = self.path_behind(&asked);
        let place = self.place_of(behind.as_deref().unwrap_or(&asked));
        match self.pages.router.find(place) {
            Some(found) => {
                let pattern = &self.pages.endpoints[found.page].pattern;
                sign_in::filled(otherwise, pattern, &found.values)
            }
            None => local(otherwise),
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_http::{Body, Parts, Prepared};

    use super::*;

    #[test]
    fn what_is_said_to_caches_is_replaced_and_the_rest_stays() {
        let made = |value: &str| {
            let prepared = Prepared::new(Parts {
                status: 200,
                media_type: "text/plain",
                fields: &[("Cache-Control", value), ("X-A", "1")],
                body: Bytes::from_static(b"text"),
                last_modified: None,
                compressible: false,
            });
            let request = millpond_http::OwnedRequest::new("GET", "/");
            prepared.respond(&request.as_request(), Bytes::from_static(b"X-B: 2\r\n"))
        };
        for (value, expected) in [
            ("no-cache", "private, no-cache"),
            ("public, max-age=31536000, immutable", "private, no-cache"),
            ("private, no-cache", "private, no-cache"),
            ("no-store", "no-store"),
        ] {
            let private = with_private_caching(made(value).closing());
            let head = String::from_utf8_lossy(private.head()).to_ascii_lowercase();
            assert_eq!(head.matches("cache-control").count(), 1, "{head}");
            assert_eq!(private.field("cache-control"), Some(expected), "{value}");
            assert_eq!(
                (private.field("x-a"), private.field("x-b")),
                (Some("1"), Some("2"))
            );
            assert!(matches!(private.body(), Body::Bytes(bytes) if bytes == "text"));
            assert!(private.closes());
        }
        let bare = with_private_caching(Response::text(412, "x"));
        assert_eq!(bare.field("cache-control"), Some("private, no-cache"));
    }
}
