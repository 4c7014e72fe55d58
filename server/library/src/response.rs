//! What a handler returns.

use std::borrow::Cow;

use bytes::Bytes;

use crate::failure::Failure;
use crate::stream::Stream;

/// A response: status, media type, field lines and a body.
///
/// ```
/// use millpond::Response;
///
/// let response = Response::new("text/csv", "a;b\n").with_field("Cache-Control", "no-store");
/// assert_eq!(response.status(), 200);
/// ```
#[derive(Debug)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) media_type: Option<Cow<'static, str>>,
    pub(crate) fields: Vec<(Cow<'static, str>, String)>,
    pub(crate) content: ResponseContent,
}

/// Content behind the head.
#[derive(Debug)]
pub(crate) enum ResponseContent {
    Empty,
    Bytes(Bytes),
    Stream(Stream),
    /// Failure of which the program's function for failures makes a response.
    Failure(Failure),
}

impl Response {
    /// A 200 with a body of this media type.
    #[must_use]
    pub fn new(media_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self {
            status: 200,
            media_type: Some(media_type.into()),
            fields: Vec::new(),
            content: ResponseContent::Bytes(body.into()),
        }
    }

    /// A 200 of plain text.
    #[must_use]
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::new("text/plain; charset=utf-8", body)
    }

    /// A 200 of HTML.
    #[must_use]
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    /// A 200 of XML.
    #[must_use]
    pub fn xml(body: impl Into<Bytes>) -> Self {
        Self::new("application/xml", body)
    }

    /// A 200 of JSON.
    #[must_use]
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::new("application/json", body)
    }

    /// A 200 whose body is made while it is sent.
    #[must_use]
    pub fn stream(media_type: impl Into<Cow<'static, str>>, stream: Stream) -> Self {
        Self {
            status: 200,
            media_type: Some(media_type.into()),
            fields: Vec::new(),
            content: ResponseContent::Stream(stream),
        }
    }

    /// A response without a body, such as 204.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            media_type: None,
            fields: Vec::new(),
            content: ResponseContent::Empty,
        }
    }

    /// A 303: the client asks for `location` by GET. For the end of a form.
    #[must_use]
    pub fn see_other(location: impl Into<String>) -> Self {
        Self::redirect(303, location)
    }

    /// A response with this status, which is 301, 302, 303, 307 or 308, that sends the client to
    /// `location`; another status becomes 500. Clients keep a 301 and a 308 for long. Add
    /// `Cache-Control: no-store` where each visit is to reach the service.
    #[must_use]
    pub fn redirect(status: u16, location: impl Into<String>) -> Self {
        let status = match status {
            301..=303 | 307 | 308 => status,
            _ => 500,
        };
        Self::empty(status).with_field("Location", location)
    }

    pub(crate) fn failed(failure: Failure) -> Self {
        Self {
            status: failure.status(),
            media_type: None,
            fields: Vec::new(),
            content: ResponseContent::Failure(failure),
        }
    }

    /// Replaces the status, from 200 to 599; any other becomes 500.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = if (200..600).contains(&status) {
            status
        } else {
            500
        };
        self
    }

    /// Adds one more field line. Bytes that a value cannot have become spaces, so that no value can
    /// begin another line. `Content-Type`, `Content-Length`, `Transfer-Encoding`, `Connection` and
    /// `Date` are the library's own and are left out here.
    #[must_use]
    pub fn with_field(
        mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        let name = name.into();
        let is_own = OWN_FIELDS.iter().any(|own| name.eq_ignore_ascii_case(own));
        match self.content {
            _ if is_own => {}
            // What it looks like is made later.
            ResponseContent::Failure(failure) => {
                self.content = ResponseContent::Failure(failure.with_field(name, value));
            }
            _ => self.fields.push((name, value.into())),
        }
        self
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// True if it has a field line with this name.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        let mut names = self.fields.iter().map(|(name, _)| name);
        let is_there = names.any(|found| found.eq_ignore_ascii_case(name));
        let failed = matches!(&self.content, ResponseContent::Failure(it) if it.has_field(name));
        is_there || failed
    }

    /// Adds `Accept` and `Authorization` to the `Vary` of the response.
    pub(crate) fn varying_by_accept(mut self) -> Self {
        match &mut self.content {
            ResponseContent::Failure(failure) => failure.vary_by_accept(),
            _ => vary_by_accept(&mut self.fields),
        }
        self
    }
}

/// Fields that an answer depends on where `Accept` was read: a client that sends a token may prefer
/// JSON.
const ACCEPT: [&str; 2] = ["Accept", "Authorization"];

/// True if a `Vary` among these field lines names `Accept`, or all fields.
pub(crate) fn varies_by_accept(fields: &[(Cow<'_, str>, String)]) -> bool {
    varies_by(fields, ACCEPT[0])
}

/// True if a `Vary` among these field lines names a field, or all fields.
fn varies_by(fields: &[(Cow<'_, str>, String)], name: &str) -> bool {
    let lines = fields.iter().filter(|(name, _)| is_vary(name));
    let mut names = lines.flat_map(|(_, names)| names.split(','));
    names.any(|found| found.trim() == "*" || found.trim().eq_ignore_ascii_case(name))
}

/// Adds `Accept` and `Authorization` to the `Vary` of these field lines, unless they are there.
pub(crate) fn vary_by_accept(fields: &mut Vec<(Cow<'static, str>, String)>) {
    for name in ACCEPT {
        if varies_by(fields, name) {
            continue;
        }
        match fields.iter_mut().find(|(name, _)| is_vary(name)) {
            Some((_, names)) if names.trim().is_empty() => name.clone_into(names),
            Some((_, names)) => {
                names.push_str(", ");
                names.push_str(name);
            }
            None => fields.push(("Vary".into(), name.to_owned())),
        }
    }
}

fn is_vary(name: &str) -> bool {
    name.eq_ignore_ascii_case("vary")
}

const OWN_FIELDS: [&str; 5] = [
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "date",
];

/// Type that a handler may return: a [`Response`], a text, nothing (204), an [`Option`] (404
/// without a value), or a [`Result`] whose error is a response too, such as a [`Failure`].
pub trait IntoResponse {
    /// The response.
    fn into_response(self) -> Response;
}

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

impl IntoResponse for &'static str {
    fn into_response(self) -> Response {
        Response::text(self)
    }
}

impl IntoResponse for String {
    fn into_response(self) -> Response {
        Response::text(self)
    }
}

impl IntoResponse for () {
    fn into_response(self) -> Response {
        Response::empty(204)
    }
}

impl<T: IntoResponse> IntoResponse for Option<T> {
    fn into_response(self) -> Response {
        match self {
            Some(response) => response.into_response(),
            None => Response::failed(Failure::not_found()),
        }
    }
}

impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(response) => response.into_response(),
            Err(error) => error.into_response(),
        }
    }
}
