//! A request as a service sees it: borrowed from the connection's buffer, or owned.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base_clock::Boottime;
use bytes::Bytes;

use crate::client::{Client, NamedBy};
use crate::syntax::{FieldSpan, Span};

/// The protocol version of a request; higher minor versions are read as 1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0: closed after the response unless the client asks otherwise.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// As it stands in a request line and in a combined log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}

/// One request, its body complete. Borrows from the connection, so that it costs no allocation.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The method, case-sensitive (RFC 9110 section 9.1).
    pub method: &'a str,
    /// The request-target as it was sent.
    pub target: &'a str,
    /// The path of the target, still percent-encoded; never empty. `*` for `OPTIONS *`.
    /// [`path::normalize`](crate::path::normalize) gives its normal form.
    pub path: &'a str,
    /// Text behind the first question mark, still percent-encoded.
    pub query: Option<&'a str>,
    /// The protocol version.
    pub version: Version,
    /// The field lines.
    pub fields: Fields<'a>,
    /// The decoded body. Empty in [`Service::done`](crate::Service::done), so that nothing is kept
    /// for a log.
    pub body: Bytes,
    /// The address the bytes came from, or the one that a trusted proxy names in a header of the
    /// PROXY protocol.
    pub peer: SocketAddr,
    /// When the last bytes of this request were read from the socket: later than the client sent
    /// them.
    pub received: Boottime,
    /// True if the bytes came through TLS that ends here, or if a trusted proxy says that they came
    /// to it through TLS, so that the URI of the request has the scheme `https`. If another proxy
    /// ends TLS, this is false and the scheme is not known.
    pub is_secure: bool,
    /// True if a request with the very same head came before, so that the connections keep a
    /// [`Reply::Reusable`](crate::Reply). A service need not make a validity for any other request.
    pub wants_validity: bool,
    pub(crate) client: Client,
    pub(crate) host: Option<&'a [u8]>,
}

impl Request<'_> {
    /// Returns who has sent the request: the [peer](Self::peer), or the client that the peer names
    /// if it is a trusted proxy.
    #[must_use]
    pub const fn client(&self) -> Client {
        self.client
    }

    /// Returns whether a proxy has sent the request for another client.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.client.named_by == NamedBy::Field
    }

    /// The host, with its port if it has one, that the client addressed: that of a target in
    /// absolute form, else the Host field (RFC 9112 section 3.2.2). Checked to be one host; none
    /// only in HTTP/1.0.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        // Checked to be ASCII when the head was parsed.
        self.host.and_then(|host| std::str::from_utf8(host).ok())
    }

    /// A copy that outlives the connection's buffer, for futures and tests. Allocates.
    #[must_use]
    pub fn to_owned(&self) -> OwnedRequest {
        let mut owned = OwnedRequest::new(self.method, self.target);
        for (name, value) in self.fields.iter() {
            owned = owned.field(name, value);
        }
        let offset =
            |part: &str| (part.as_ptr() as usize).checked_sub(self.target.as_ptr() as usize);
        // The path and the query are parts of the target, except a path that was left out.
        owned.path = offset(self.path)
            .filter(|at| at + self.path.len() <= self.target.len())
            .map(|at| (at, self.path.len()));
        owned.host = self.host().map(str::to_owned);
        owned.version = self.version;
        owned.body = self.body.clone();
        owned.peer = self.peer;
        owned.client = self.client;
        owned.received = self.received;
        owned.is_secure = self.is_secure;
        owned.wants_validity = self.wants_validity;
        owned
    }
}

/// The field lines of a request, in order. Names are compared without regard to case.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    spans: &'a [FieldSpan],
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(bytes: &'a [u8], spans: &'a [FieldSpan]) -> Self {
        Self { bytes, spans }
    }

    /// The value of the first field line with this name, without surrounding white space.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// The values of all field lines with this name.
    pub fn get_all<'n>(
        &self,
        name: &'n str,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'n> {
        let bytes = self.bytes;
        self.spans
            .iter()
            .filter(move |field| field.name.len as usize == name.len())
            .filter(move |field| field.name.of(bytes).eq_ignore_ascii_case(name.as_bytes()))
            .map(move |field| field.value.of(bytes))
    }

    /// All field lines: name as sent, value without surrounding white space.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        self.raw()
            .map(|(name, value)| (std::str::from_utf8(name).unwrap_or_default(), value))
    }

    /// Iterates over all field lines, with names as bytes: the length of a name tells most names
    /// apart.
    pub(crate) fn raw(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let bytes = self.bytes;
        self.spans
            .iter()
            .map(move |field| (field.name.of(bytes), field.value.of(bytes)))
    }

    /// How many field lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// A request that owns its parts: to keep one, or to make one without a connection.
///
/// ```
/// use millpond_http::OwnedRequest;
/// let owned = OwnedRequest::new("GET", "/read?id=1").field("accept-encoding", b"br");
/// let request = owned.as_request();
/// assert_eq!((request.path, request.query), ("/read", Some("id=1")));
/// ```
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    method: String,
    target: String,
    path: Option<(usize, usize)>,
    host: Option<String>,
    version: Version,
    bytes: Vec<u8>,
    spans: Vec<FieldSpan>,
    body: Bytes,
    peer: SocketAddr,
    client: Client,
    received: Boottime,
    is_secure: bool,
    wants_validity: bool,
}

impl OwnedRequest {
    /// An HTTP/1.1 request from the loopback address, received now, without fields or body.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            path: Some((0, target.find('?').unwrap_or(target.len()))),
            host: None,
            version: Version::Http11,
            bytes: Vec::new(),
            spans: Vec::new(),
            body: Bytes::new(),
            peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            client: Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            received: Boottime::now(),
            is_secure: false,
            wants_validity: false,
        }
    }

    /// Adds a field line.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        let mut push = |part: &[u8]| {
            let span = Span::new(self.bytes.len(), part.len());
            self.bytes.extend_from_slice(part);
            span
        };
        let field = FieldSpan {
            name: push(name.as_bytes()),
            value: push(value),
        };
        self.spans.push(field);
        if name.eq_ignore_ascii_case("host") {
            self.host = String::from_utf8(value.to_vec()).ok();
        }
        self
    }

    /// Removes the field lines of these names, such as `accept-encoding`, and
    /// [`Request::wants_validity`]: a service that stands before another one and changes its
    /// responses asks for them whole.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        let bytes = &self.bytes;
        self.spans.retain(|field| {
            let name = field.name.of(bytes);
            let is_named = |other: &&str| name.eq_ignore_ascii_case(other.as_bytes());
            !names.iter().any(is_named)
        });
        self.wants_validity = false;
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets where it came from and when.
    #[must_use]
    pub fn from_peer(mut self, peer: SocketAddr, received: Boottime) -> Self {
        self.peer = peer;
        self.client = Client::new(peer.ip());
        self.received = received;
        self
    }

    /// Returns the request as one that came through TLS: see [`Request::is_secure`].
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        self.is_secure = true;
        self
    }

    /// Returns the request as one that came before: see [`Request::wants_validity`].
    #[must_use]
    pub fn wanting_validity(mut self) -> Self {
        self.wants_validity = true;
        self
    }

    /// The request as a service sees it.
    #[must_use]
    pub fn as_request(&self) -> Request<'_> {
        let end = self.path.map_or(0, |(at, len)| at + len);
        let query = match self.path {
            Some(_) => self
                .target
                .get(end..)
                .and_then(|rest| rest.strip_prefix('?')),
            None => self.target.split_once('?').map(|(_, query)| query),
        };
        Request {
            method: &self.method,
            target: &self.target,
            path: self
                .path
                .and_then(|(at, len)| self.target.get(at..at + len))
                .filter(|p| !p.is_empty())
                .unwrap_or("/"),
            query,
            version: self.version,
            fields: Fields::new(&self.bytes, &self.spans),
            body: self.body.clone(),
            peer: self.peer,
            received: self.received,
            is_secure: self.is_secure,
            wants_validity: self.wants_validity,
            client: self.client,
            host: self.host.as_deref().map(str::as_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_out_by_name() {
        let owned = OwnedRequest::new("GET", "/")
            .field("Host", "x.example")
            .field("Range", "bytes=0-1")
            .field("accept-ENCODING", "br")
            .wanting_validity()
            .without(&["accept-encoding", "range"]);
        let request = owned.as_request();
        let names: Vec<_> = request.fields.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Host"]);
        assert_eq!(request.host(), Some("x.example"));
        assert!(!request.wants_validity);
    }

    #[test]
    fn an_owned_request_reads_like_the_borrowed_one() {
        let owned = OwnedRequest::new("POST", "/a/b?c=d?e")
            .field("Host", "x.example")
            .field("A", "1")
            .field("a", "2");
        for request in [
            owned.as_request(),
            owned.as_request().to_owned().as_request(),
        ] {
            assert_eq!(
                (request.path, request.query, request.host()),
                ("/a/b", Some("c=d?e"), Some("x.example"))
            );
            assert_eq!(request.fields.get("a"), Some(&b"1"[..]));
            assert_eq!(
                request.fields.get_all("A").collect::<Vec<_>>(),
                [b"1", b"2"]
            );
            assert_eq!(
                request
                    .fields
                    .iter()
                    .map(|(name, _)| name)
                    .collect::<Vec<_>>(),
                ["Host", "A", "a"]
            );
        }
    }
}
