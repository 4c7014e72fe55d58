//! Requests for HTTP/2, made before the run: the hot path only copies the fields.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, USER_AGENT};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use crate::request::{OWN_USER_AGENT, check_field, has_length};
use crate::url::Url;
use crate::{Error, RequestPlan};

/// Fields about one connection, which HTTP/2 does not have (RFC 9113, section 8.2.2). `te` is
/// allowed with the value `trailers`.
const OF_CONNECTIONS: [&str; 2] = ["keep-alive", "proxy-connection"];

/// A request as `h2` takes it.
pub(crate) struct Http2Request {
    head: Parts,
    /// The DATA to send; empty for no body.
    pub(crate) body: Bytes,
}

impl Http2Request {
    /// The request for one target of a plan. A `Host` field sets the authority, as in HTTP/1.1.
    pub(crate) fn new(plan: &RequestPlan, url: &Url, target: &str) -> Result<Self, Error> {
        let (fields, host) = fields(plan).map_err(Error::Plan)?;
        let authority = host.as_deref().unwrap_or(&url.authority);
        let authority: Authority = authority.parse().map_err(|error| {
            Error::Plan(format!(
                "{authority:?} cannot be the authority of an HTTP/2 request: {error}"
            ))
        })?;
        let target: PathAndQuery = target.parse().map_err(|error| {
            Error::Plan(format!(
                "{target:?} cannot be the path of an HTTP/2 request: {error}"
            ))
        })?;
        let wrong = |error: &dyn std::fmt::Display| Error::Plan(error.to_string());
        let uri = Uri::builder()
            .scheme(if url.secure { "https" } else { "http" })
            .authority(authority)
            .path_and_query(target)
            .build()
            .map_err(|error| wrong(&error))?;
        let method = Method::from_bytes(plan.method.as_bytes()).map_err(|error| wrong(&error))?;
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = fields;
        Ok(Self {
            head: request.into_parts().0,
            body: Bytes::from(plan.body.clone()),
        })
    }

    /// A copy to send.
    pub(super) fn request(&self) -> Request<()> {
        Request::from_parts(self.head.clone(), ())
    }
}

/// The fields of every request of a plan, and the value of a `Host` field.
fn fields(plan: &RequestPlan) -> Result<(HeaderMap, Option<String>), String> {
    let mut fields = HeaderMap::new();
    let mut host = None;
    for (name, value) in &plan.headers {
        check_field(name, value)?;
        let lower = name.to_ascii_lowercase();
        let is_te = lower == "te" && !value.eq_ignore_ascii_case("trailers");
        if is_te || OF_CONNECTIONS.contains(&lower.as_str()) {
            return Err(format!(
                "the field {name} is about one connection and has no place in HTTP/2"
            ));
        }
        let wrong = |error: &dyn std::fmt::Display| format!("the field {name}: {error}");
        let field = HeaderName::from_bytes(lower.as_bytes()).map_err(|error| wrong(&error))?;
        if field == HOST {
            host = Some(value.clone());
        } else {
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|error| wrong(&error))?;
            fields.append(field, value);
        }
    }
    if !fields.contains_key(USER_AGENT) {
        fields.insert(USER_AGENT, HeaderValue::from_static(OWN_USER_AGENT));
    }
    if has_length(plan) {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(plan.body.len()));
    }
    Ok((fields, host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    fn prepare(plan: &Plan) -> Result<Http2Request, Error> {
        let url = Url::parse(&plan.target.url)?;
        Http2Request::new(&plan.request, &url, &url.target)
    }

    fn with(name: &str, value: &str) -> Plan {
        Plan::new("https://h:81/a?b=%20")
            .with(|plan| plan.request.headers = vec![(name.into(), value.into())])
    }

    #[test]
    fn a_request_is_what_the_plan_says() {
        let plan = with("X-Name", "v").with(|plan| {
            plan.request.method = "POST".into();
            plan.request.body = b"x=1".to_vec();
        });
        let prepared = prepare(&plan).unwrap();
        let request = prepared.request();
        assert_eq!(request.uri().to_string(), "https://h:81/a?b=%20");
        assert_eq!(
            (request.method().as_str(), &prepared.body[..]),
            ("POST", &b"x=1"[..])
        );
        assert_eq!(request.headers()["x-name"], "v");
        assert_eq!(request.headers()["content-length"], "3");
        assert!(request.headers().contains_key("user-agent"));
    }

    #[test]
    fn a_host_field_is_the_authority() {
        let request = prepare(&with("host", "other")).unwrap().request();
        assert_eq!(request.uri().to_string(), "https://other/a?b=%20");
        assert!(!request.headers().contains_key("host"));
        assert!(prepare(&with("Host", "no host")).is_err());
    }

    #[test]
    fn fields_about_one_connection_are_refused() {
        for (name, value) in [("Keep-Alive", "1"), ("TE", "gzip"), ("Connection", "close")] {
            assert!(prepare(&with(name, value)).is_err(), "{name}");
        }
        assert!(prepare(&with("TE", "trailers")).is_ok());
    }
}
