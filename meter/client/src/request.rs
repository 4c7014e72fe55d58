//! Requests, rendered before the run: on the hot path a request is a slice of bytes.

use crate::body::BodyCheck;
use crate::http2::Http2Request;
use crate::url::Url;
use crate::{Error, Order, RequestPlan, TargetPlan};
use millrace_stats::random::mix;

/// All requests of a plan.
pub struct Requests {
    /// Bytes of the requests for HTTP/1.1; empty for HTTP/2, whose requests are in `prepared`.
    rendered: Vec<Box<[u8]>>,
    prepared: Vec<Http2Request>,
    order: Order,
    checks: Vec<BodyCheck>,
    /// Responses to HEAD have no body, regardless of their fields.
    pub head: bool,
}

impl Requests {
    pub(crate) fn render(
        server: &TargetPlan,
        request: &RequestPlan,
        url: &Url,
    ) -> Result<Self, Error> {
        check_method(&request.method).map_err(Error::Plan)?;
        let fields = fields(request, url)?;
        let one = |target: &str| {
            if server.http2 {
                return Box::default();
            }
            let mut bytes = format!("{} {target} HTTP/1.1\r\n", request.method).into_bytes();
            bytes.extend_from_slice(fields.as_bytes());
            bytes.extend_from_slice(&request.body);
            bytes.into_boxed_slice()
        };
        let targets = targets(request, url)?;
        let prepared = if server.http2 {
            let all = targets.iter();
            all.map(|target| Http2Request::new(request, url, target))
                .collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        Ok(Self {
            rendered: targets.iter().map(|target| one(target)).collect(),
            prepared,
            order: request.order,
            checks: checks(request)?,
            head: request.method == "HEAD",
        })
    }

    /// The index of the `n`th request's bytes: the same for every number of threads.
    pub(crate) fn pick(&self, n: u64) -> u32 {
        let count = self.rendered.len() as u64;
        let index = match self.order {
            Order::Sequence => n % count,
            Order::Random(seed) => ((u128::from(mix(seed, n)) * u128::from(count)) >> 64) as u64,
        };
        index as u32
    }

    /// The checks on the body of a response to a request.
    pub(crate) fn checks(&self, _index: u32) -> &[BodyCheck] {
        &self.checks
    }

    /// True if any response is checked.
    pub(crate) fn has_checks(&self) -> bool {
        !self.checks.is_empty()
    }

    /// The bytes of a request.
    pub fn bytes(&self, index: u32) -> &[u8] {
        &self.rendered[index as usize]
    }

    /// The request for HTTP/2; the plan must use HTTP/2.
    pub(crate) fn prepared(&self, index: u32) -> &Http2Request {
        &self.prepared[index as usize]
    }
}

/// The request targets, in order.
fn targets(request: &RequestPlan, url: &Url) -> Result<Vec<String>, Error> {
    if request.urls.is_empty() {
        return Ok(vec![url.target.clone()]);
    }
    let targets = request.urls.iter().enumerate().map(|(n, text)| {
        url.join(text)
            .map_err(|error| Error::Plan(format!("URL {}: {error}", n + 1)))
    });
    targets.collect()
}

/// True if the length of the body is sent even if the body is empty.
pub(crate) fn has_length(request: &RequestPlan) -> bool {
    !request.body.is_empty() || matches!(request.method.as_str(), "POST" | "PUT" | "PATCH")
}

fn checks(request: &RequestPlan) -> Result<Vec<BodyCheck>, Error> {
    let expression = request.expect_body.as_deref().map(BodyCheck::matches);
    let digest = request.expect_sha256.as_deref().map(BodyCheck::sha256);
    let checks: Vec<_> = expression
        .into_iter()
        .chain(digest)
        .collect::<Result<_, _>>()?;
    if request.method == "HEAD" && !checks.is_empty() {
        return Err(Error::Plan(
            "an answer to HEAD has no body that could be checked".to_owned(),
        ));
    }
    Ok(checks)
}

/// The fields with the empty line that ends them.
fn fields(request: &RequestPlan, url: &Url) -> Result<String, Error> {
    let mut text = head_fields(request, &url.authority).map_err(Error::Plan)?;
    if has_length(request) {
        text.push_str(&format!("Content-Length: {}\r\n", request.body.len()));
    }
    text.push_str("\r\n");
    Ok(text)
}

/// The fields of every request of a plan, without those that depend on the body.
pub fn head_fields(request: &RequestPlan, authority: &str) -> Result<String, String> {
    let given = |name: &str| {
        request
            .headers
            .iter()
            .any(|(given, _)| given.eq_ignore_ascii_case(name))
    };
    let mut text = own_fields(given, authority);
    for (name, value) in &request.headers {
        check_field(name, value)?;
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !request.keep_alive {
        text.push_str("Connection: close\r\n");
    }
    Ok(text)
}

/// The client's name.
pub const OWN_USER_AGENT: &str = concat!("millrace/", env!("CARGO_PKG_VERSION"));

/// The fields that each request has, but for those that are `given`.
pub(crate) fn own_fields(given: impl Fn(&str) -> bool, authority: &str) -> String {
    let mut text = String::new();
    if !given("host") {
        text.push_str(&format!("Host: {authority}\r\n"));
    }
    if !given("user-agent") {
        text.push_str(&format!("User-Agent: {OWN_USER_AGENT}\r\n"));
    }
    text
}

/// The error says why the method cannot be measured.
pub(crate) fn check_method(method: &str) -> Result<(), String> {
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(format!("{method:?} is no request method"));
    }
    if method == "CONNECT" {
        return Err("CONNECT opens a tunnel, which cannot be measured".to_owned());
    }
    Ok(())
}

/// The error says why the field cannot be sent.
pub(crate) fn check_field(name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("{name:?} is no field name"));
    }
    if value
        .bytes()
        .any(|byte| byte < 0x20 && byte != b'\t' || byte == 0x7f)
    {
        return Err(format!(
            "the field {name} has a control character in its value"
        ));
    }
    // The client frames the body and closes the connection itself; another value would
    // desynchronise the connection.
    if [
        "content-length",
        "transfer-encoding",
        "connection",
        "expect",
        "upgrade",
    ]
    .iter()
    .any(|own| name.eq_ignore_ascii_case(own))
    {
        return Err(format!("the field {name} is the client's own"));
    }
    Ok(())
}

/// A `tchar` of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    fn render(plan: &Plan) -> Result<Requests, Error> {
        Requests::render(
            &plan.target,
            &plan.request,
            &Url::parse(&plan.target.url).unwrap(),
        )
    }

    #[test]
    fn requests_are_rendered_once() {
        let plan = Plan::new("http://h:81/")
            .with(|plan| plan.request.urls = vec!["/a".into(), "/b".into()]);
        let requests = render(&plan).unwrap();
        let text = std::str::from_utf8(requests.bytes(1)).unwrap();
        assert!(
            text.starts_with("GET /b HTTP/1.1\r\nHost: h:81\r\nUser-Agent: millrace/"),
            "{text}"
        );
        assert!(text.ends_with("\r\n\r\n"));
        assert_eq!(
            (requests.pick(0), requests.pick(1), requests.pick(2)),
            (0, 1, 0)
        );
    }

    #[test]
    fn a_body_has_its_length_and_a_host_field_replaces_ours() {
        let plan = Plan::new("http://h/").with(|plan| {
            plan.request.method = "POST".into();
            plan.request.body = b"x=1".to_vec();
            plan.request.keep_alive = false;
            plan.request.headers = vec![("host".into(), "other".into())];
        });
        let requests = render(&plan).unwrap();
        let text = std::str::from_utf8(requests.bytes(0)).unwrap();
        assert!(text.contains("host: other\r\n") && !text.contains("Host: h"));
        assert!(text.ends_with("Connection: close\r\nContent-Length: 3\r\n\r\nx=1"));
    }

    #[test]
    fn nothing_smuggles_a_second_request() {
        let plan = Plan::new("http://h/");
        for (name, value) in [
            ("X", "a\r\nY: b"),
            ("X\r\nY", "b"),
            ("", "b"),
            ("X Y", "b"),
            ("Content-Length", "5"),
            ("transfer-encoding", "chunked"),
        ] {
            let bad = plan
                .clone()
                .with(|plan| plan.request.headers = vec![(name.into(), value.into())]);
            assert!(render(&bad).is_err(), "{name:?}: {value:?}");
        }
        assert!(
            render(
                &plan
                    .clone()
                    .with(|plan| plan.request.method = "GET /x HTTP/1.1\r\nX:".into())
            )
            .is_err()
        );
        let error = render(
            &plan.with(|plan| plan.request.urls = vec!["/a".into(), "http://other/".into()]),
        )
        .err()
        .unwrap();
        assert!(error.to_string().starts_with("URL 2:"));
    }

    #[test]
    fn random_order_is_even_and_repeats_with_its_seed() {
        let urls: Vec<String> = (0..10).map(|n| format!("/{n}")).collect();
        let plan = Plan::new("http://h/").with(|plan| {
            plan.request.urls = urls;
            plan.request.order = Order::Random(7);
        });
        let requests = render(&plan).unwrap();
        let mut counts = [0; 10];
        for n in 0..10_000 {
            counts[requests.pick(n) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&count| (850..1150).contains(&count)),
            "{counts:?}"
        );
        assert_eq!(requests.pick(5), render(&plan).unwrap().pick(5));
    }
}
