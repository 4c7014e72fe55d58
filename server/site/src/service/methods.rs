//! The methods that an address accepts, and the answers to other methods.

use millpond_http::{Request, Response};

use crate::{
    core::{Generation, error_answer::ErrorAnswer},
    form::body::ACCEPTED,
};
use millpond_site_compile::page::Endpoint;
use millpond_site_format::write_method::WriteMethod;

/// 405 with the methods that there are.
pub(crate) fn not_allowed(
    generation: &Generation,
    request: &Request<'_>,
    is_api: bool,
    allow: &str,
) -> Response {
    let fields = [("Allow", allow)];
    let error = ErrorAnswer::new(405, "This address does not take that method.");
    generation.refuse(request, &error.with(&fields).of_api(is_api))
}

/// The answer to OPTIONS.
pub(crate) fn options(allow: &str) -> Response {
    Response::builder(204)
        .field("Allow", allow)
        .field("X-Content-Type-Options", "nosniff")
        .empty()
}

/// The answer to OPTIONS of a page's address, with the types of its writes (RFC 5789 section 3.1).
pub(crate) fn options_of(endpoint: &Endpoint) -> Response {
    let response = Response::builder(204)
        .field("Allow", &endpoint.allow)
        .field("X-Content-Type-Options", "nosniff");
    let methods = endpoint.forms.iter().map(|form| form.method);
    let fields = methods.filter_map(types_field);
    let response = fields.fold(response, |response, field| response.field(field, ACCEPTED));
    response.empty()
}

/// The field that says which types of bodies a method takes.
pub(crate) fn types_field(method: WriteMethod) -> Option<&'static str> {
    match method {
        WriteMethod::Patch => Some("Accept-Patch"),
        WriteMethod::Post => Some("Accept-Post"),
        WriteMethod::Put | WriteMethod::Delete => None,
    }
}
