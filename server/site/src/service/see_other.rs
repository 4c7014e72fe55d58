//! Redirects after which a browser asks with GET.

use millpond_http::{Request, Response};
use percent_encoding::utf8_percent_encode;

use crate::form::is_own_origin;
use millpond_site_format::{access::is_path, rules::VALUE};

/// RFC 9110, section 15.4.4: the result is found elsewhere, with GET.
pub(crate) fn see_other(target: &str, cookies: impl IntoIterator<Item = String>) -> Response {
    let response = Response::builder(303)
        .field("Location", target)
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff");
    let cookies = cookies.into_iter();
    let response = cookies.fold(response, |response, cookie| {
        response.field("Set-Cookie", &cookie)
    });
    response.empty()
}

/// Redirects an unknown visitor to the sign-in page, with the address that they wanted. A form
/// cannot be sent again, so there it is the page on which it was.
pub(crate) fn sign_in(path: &str, request: &Request<'_>) -> Response {
    let wanted = match request.method {
        "GET" | "HEAD" => Some(request.target.to_owned()),
        _ => own_page(request),
    };
    let Some(wanted) = wanted else {
        return see_other(path, None);
    };
    let sign = if path.contains('?') { '&' } else { '?' };
    let next = utf8_percent_encode(&wanted, VALUE);
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let fragment = if fragment.is_empty() {
        String::new()
    } else {
        format!("#{fragment}")
    };
    see_other(&format!("{path}{sign}next={next}{fragment}"), None)
}

/// The page of this site that has sent a form, by `Referer` (RFC 9110, section 10.1.3).
fn own_page(request: &Request<'_>) -> Option<String> {
    let referer = std::str::from_utf8(request.fields.get("referer")?).ok()?;
    let host = referer.find("://")? + 3;
    let (origin, rest) = referer.split_at(host + referer[host..].find('/')?);
    let path = rest.split('#').next()?;
    (is_own_origin(request, origin) && is_path(path)).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    #[test]
    fn a_visitor_is_redirected_back_after_signing_in() {
        let led = |method: &str, target: &str, path: &str| {
            let request = OwnedRequest::new(method, target);
            let response = sign_in(path, &request.as_request());
            response.field("location").unwrap().to_owned()
        };
        assert_eq!(
            led("GET", "/me?a=1&b=2", "/login"),
            "/login?next=%2Fme%3Fa%3D1%26b%3D2"
        );
        assert_eq!(
            led("HEAD", "/me", "/login?x=1#form"),
            "/login?x=1&next=%2Fme#form"
        );
        assert_eq!(led("POST", "/me", "/login"), "/login");
    }
}
