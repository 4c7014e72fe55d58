//! Requests to a node, and what the judge needs of the responses.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use lab_testkit::Response;

/// Longer than any fault lasts: a frozen node answers after it continues.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeAnswer {
    pub(crate) status: u16,
    pub(crate) hit: bool,
    pub(crate) location: String,
    /// The entity tag, without quotes.
    pub(crate) tag: String,
    /// The `name=value` of the cookie that the response sets.
    pub(crate) cookie: String,
    pub(crate) body: String,
}

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct NodeClient(lab_testkit::Client);

impl NodeClient {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        lab_testkit::Client::open(address, PATIENCE).map(Self)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Sends a GET request, with a cookie if it is not empty.
    pub(crate) fn get(&mut self, target: &str, cookie: &str) -> io::Result<NodeAnswer> {
        let field = format!("Cookie: {cookie}");
        let fields = [field.as_str()];
        let fields = if cookie.is_empty() { &[][..] } else { &fields };
        self.0.get(target, fields).and_then(NodeAnswer::of)
    }

    /// Sends a form of the same site.
    pub(crate) fn post(&mut self, target: &str, form: &str) -> io::Result<NodeAnswer> {
        self.0.post(target, form).and_then(NodeAnswer::of)
    }
}

impl NodeAnswer {
    fn of(response: Response) -> io::Result<Self> {
        let field = |name| response.field(name).unwrap_or_default();
        let (cookie, _) = field("set-cookie")
            .split_once(';')
            .unwrap_or((field("set-cookie"), ""));
        Ok(Self {
            status: response.status,
            hit: field("cache-status") == "millpond; hit",
            location: field("location").to_owned(),
            tag: field("etag").trim_matches('"').to_owned(),
            cookie: cookie.trim().to_owned(),
            body: String::from_utf8(response.body).map_err(|_| io::ErrorKind::InvalidData)?,
        })
    }
}
