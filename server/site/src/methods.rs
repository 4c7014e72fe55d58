//! The methods that an address accepts, and the answers to other methods.

use millpond_http::{Request, Response};

use crate::{core::Generation, error_answer::ErrorAnswer, page::Endpoint};

/// The methods of RFC 9110, section 9, and PATCH: known, though a path may not have them.
pub(crate) const KNOWN: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// What a file has, as `Allow` lists it.
pub(crate) const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

/// What a page says to a method that it does not take.
pub(crate) fn not_allowed(
    generation: &Generation,
    request: &Request<'_>,
    endpoint: &Endpoint,
) -> Response {
    without_method(generation, request, endpoint.allow())
}

/// 405 with the methods that there are.
pub(crate) fn without_method(
    generation: &Generation,
    request: &Request<'_>,
    allow: &str,
) -> Response {
    let fields = [("Allow", allow)];
    let error = ErrorAnswer::new(405, "This address does not take that method.");
    generation.refuse(request, &error.with(&fields))
}

/// The answer to OPTIONS.
pub(crate) fn options(allow: &str) -> Response {
    Response::builder(204)
        .field("Allow", allow)
        .field("X-Content-Type-Options", "nosniff")
        .empty()
}
