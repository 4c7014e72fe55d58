//! The methods that an address accepts, and the answers to other methods.

use bytes::Bytes;
use millpond_http::Response;

use crate::page::Endpoint;

/// The methods of RFC 9110, section 9, and PATCH: known, though a path may not have them.
pub(crate) const KNOWN: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// What a file has, as `Allow` lists it.
pub(crate) const FILE_METHODS: &str = "GET, HEAD, OPTIONS";

/// What a page says to a method that it does not take.
pub(crate) fn not_allowed(endpoint: &Endpoint) -> Response {
    without_method(endpoint.allow())
}

/// 405 with the methods that there are.
pub(crate) fn without_method(allow: &str) -> Response {
    Response::builder(405)
        .field("Allow", allow)
        .field("Content-Type", "text/plain; charset=utf-8")
        .field("X-Content-Type-Options", "nosniff")
        .body(Bytes::from_static(
            b"This address does not take that method.\n",
        ))
}

/// The answer to OPTIONS.
pub(crate) fn options(allow: &str) -> Response {
    Response::builder(204)
        .field("Allow", allow)
        .field("X-Content-Type-Options", "nosniff")
        .empty()
}
