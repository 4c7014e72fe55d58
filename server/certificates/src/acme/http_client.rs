//! The little of an HTTP client that ACME needs: HTTPS, HTTP/1.1, one request on each connection.
//! [`WebClient`](super::web_client::WebClient) makes it one for other servers, also by http.
//!
//! An order takes about a dozen requests every two months, so a pool of connections and HTTP/2
//! would be of no use. All sizes and times are bounded.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use instant_acme::{BodyWrapper, BytesResponse, HttpClient};
use parking_lot::Mutex;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::retry_after;
use crate::{Error, pem};

/// Time for one address of the authority to accept the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a request with its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Octets of a response: a chain of certificates has some ten thousand.
const LARGEST_RESPONSE: usize = 1024 * 1024;
const MOST_FIELDS: usize = 96;

/// Speaks to the authority's servers.
#[derive(Clone)]
pub(super) struct AcmeHttpClient {
    tls: TlsConnector,
    /// The setting that has the URL, for messages.
    setting: &'static str,
    /// True if a URL may be one of http.
    allows_plain: bool,
    /// When the authority wants to be asked again: the latest moment that a refusal has named.
    asked_to_wait: Arc<Mutex<Option<SystemTime>>>,
}

impl AcmeHttpClient {
    /// A client that trusts the certificates in the PEM file `trust`, or else the system's roots.
    pub(super) fn new(trust: Option<&Path>) -> Result<Self, Error> {
        let roots = match trust {
            Some(path) => roots_of(path).map_err(|error| {
                Error::new(format!(
                    "acme_trust: {error}; it is the root of a private authority's directory, and \
                     a public authority needs no acme_trust"
                ))
            })?,
            None => system_roots()?,
        };
        Self::with_roots(roots, "acme_directory", false)
    }

    /// A client for the URL in this setting, which trusts the system's roots if it is one of https.
    pub(super) fn for_setting(setting: &'static str, is_secure: bool) -> Result<Self, Error> {
        let roots = match is_secure {
            true => system_roots()?,
            false => RootCertStore::empty(),
        };
        Self::with_roots(roots, setting, true)
    }

    fn with_roots(
        roots: RootCertStore,
        setting: &'static str,
        allows_plain: bool,
    ) -> Result<Self, Error> {
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| Error::new(format!("TLS cannot be set up: {error}")))?
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
            setting,
            allows_plain,
            asked_to_wait: Arc::default(),
        })
    }

    /// Takes the latest moment that refusals have named by `Retry-After` since the last call.
    pub(super) fn take_retry_after(&self) -> Option<SystemTime> {
        self.asked_to_wait.lock().take()
    }

    async fn exchange(
        self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Result<BytesResponse, TransportFailure> {
        let url = request.uri().clone();
        let host = url.host().unwrap_or_default().to_owned();
        let failed = |what: String| TransportFailure(format!("{host}: {what}"));
        let is_secure = url.scheme_str() == Some("https");
        if !is_secure && !self.allows_plain || host.is_empty() {
            return Err(failed(format!("{url} is no https:// URL")));
        }
        let (parts, body) = request.into_parts();
        // A request's body is read in the way of a response's, which needs no crate more.
        let mut body = BytesResponse::from(Response::new(body)).body;
        let body = body.into_bytes().await;
        let body = body.map_err(|error| failed(error.to_string()))?;
        let text = request_text(&parts, &body);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let socket = connect(bare, port, self.setting).await.map_err(&failed)?;
        // Of what is posted only the status counts.
        let is_head = self.allows_plain || parts.method == Method::HEAD;
        let response = if is_secure {
            let name = ServerName::try_from(bare.to_owned());
            let name = name.map_err(|_| failed("this is no name of a server".to_owned()))?;
            let connected = self.tls.connect(name, socket).await;
            let stream = connected.map_err(|error| failed(self.tls_sentence(&error)))?;
            talk(stream, &text, is_head).await
        } else {
            talk(socket, &text, is_head).await
        };
        let response = response.map_err(|error| failed(error.to_string()))?;
        self.note_refusal(&response);
        Ok(BytesResponse::from(response))
    }

    fn tls_sentence(&self, error: &io::Error) -> String {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(rustls::Error::InvalidCertificate(_)) if self.allows_plain => {
                format!("the server's own certificate is not trusted: {error}")
            }
            Some(rustls::Error::InvalidCertificate(_)) => format!(
                "the ACME server's own certificate is not trusted: {error}; for a private authority, \
                 name the file with its root in acme_trust"
            ),
            _ => format!("no TLS: {error}"),
        }
    }

    fn note_refusal(&self, response: &Response<BodyWrapper<Bytes>>) {
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            let field = response.headers().get(RETRY_AFTER);
            let text = field.and_then(|field| field.to_str().ok());
            let moment = text.and_then(|text| retry_after::parse(text, base_clock::wall()));
            let mut asked_to_wait = self.asked_to_wait.lock();
            *asked_to_wait = moment.max(*asked_to_wait);
        }
    }
}

impl HttpClient for AcmeHttpClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let client = self.clone();
        let host = request.uri().host().unwrap_or_default().to_owned();
        Box::pin(async move {
            let failure = match timeout(REQUEST_TIMEOUT, client.exchange(request)).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(failure)) => failure,
                Err(_) => TransportFailure(format!(
                    "{host}: no response within {} seconds",
                    REQUEST_TIMEOUT.as_secs()
                )),
            };
            Err(instant_acme::Error::Other(Box::new(failure)))
        })
    }
}

/// The authority's server cannot be reached, or says what is no HTTP.
#[derive(Debug)]
pub(super) struct TransportFailure(String);

impl fmt::Display for TransportFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for TransportFailure {}

fn roots_of(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in pem::read_certificates(path)? {
        let added = roots.add(certificate);
        added
            .map_err(|error| Error::of_file(path, format!("a certificate is damaged: {error}")))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(Error::new(
            "the system has no root certificates, so the ACME authority cannot be trusted; install \
             the package ca-certificates",
        ));
    }
    Ok(roots)
}

/// Connects to the first address that accepts.
async fn connect(host: &str, port: u16, setting: &str) -> Result<TcpStream, String> {
    const NO_ADDRESS: &str = "the name leads to no address (DNS)";
    let check = format!("check {setting}, and the DNS of this machine");
    let addresses = lookup_host((host, port)).await;
    let addresses = addresses.map_err(|error| format!("{NO_ADDRESS}: {error}; {check}"))?;
    let mut last = format!("{NO_ADDRESS}; {check}");
    for address in addresses {
        let problem = match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => format!("no connection to {address}: {error}"),
            Err(_) => format!(
                "no connection to {address} within {} seconds",
                CONNECT_TIMEOUT.as_secs()
            ),
        };
        last = format!("{problem}; check {setting}, and that this machine may connect there");
    }
    Err(last)
}

/// Sends a request, and reads the response.
async fn talk(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
    is_head: bool,
) -> io::Result<Response<BodyWrapper<Bytes>>> {
    stream.write_all(request).await?;
    stream.flush().await?;
    read_response(&mut stream, is_head).await
}

fn request_text(parts: &http::request::Parts, body: &[u8]) -> Vec<u8> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = parts.uri.authority().map_or("", |name| name.as_str());
    let mut text = format!(
        "{} {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\ncontent-length: {}\r\n",
        parts.method,
        body.len()
    )
    .into_bytes();
    for (name, value) in &parts.headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(body);
    text
}

/// Reads until the response is whole.
async fn read_response(
    stream: &mut (impl AsyncRead + Unpin),
    is_head: bool,
) -> io::Result<Response<BodyWrapper<Bytes>>> {
    let mut received = Vec::new();
    loop {
        let mut part = [0; 16 * 1024];
        let count = match stream.read(&mut part).await {
            Ok(count) => count,
            // Many servers close the connection without TLS's own end; the framing of the response
            // says whether something is missing.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(error),
        };
        received.extend_from_slice(&part[..count]);
        if let Some(response) = parse_response(&received, is_head)? {
            return Ok(response);
        }
        if count == 0 {
            return Err(invalid("the connection ended within the response"));
        }
        if received.len() > LARGEST_RESPONSE {
            return Err(invalid("the response is larger than 1 MiB"));
        }
    }
}

/// The response in `received`; `None` while a part is missing. A body without a stated length is
/// refused: a cut one could not be told from a whole one.
fn parse_response(
    received: &[u8],
    is_head: bool,
) -> io::Result<Option<Response<BodyWrapper<Bytes>>>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head.parse(received);
    let parsed = parsed.map_err(|_| invalid("the response is no HTTP/1.1"))?;
    let httparse::Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(head.code.unwrap_or_default());
    let status = status.map_err(|_| invalid("the response has no status"))?;
    let rest = &received[length..];
    if status.is_informational() {
        return parse_response(rest, is_head);
    }
    let body = if is_head || status == StatusCode::NO_CONTENT {
        Some(Vec::new())
    } else {
        body_of(head.headers, rest)?
    };
    let Some(body) = body else {
        return Ok(None);
    };
    let mut response = Response::builder().status(status);
    for field in &*head.headers {
        response = response.header(field.name, field.value);
    }
    let response = response.body(BodyWrapper::from(body));
    response
        .map(Some)
        .map_err(|_| invalid("the response has a bad field"))
}

fn body_of(fields: &[httparse::Header<'_>], rest: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let field = |name: &str| {
        let found = fields.iter().find(|f| f.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value.trim_ascii())
    };
    if let Some(coding) = field("transfer-encoding") {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            return Err(invalid("the response has an unknown coding"));
        }
        return chunks(rest);
    }
    let length = field("content-length").and_then(|value| str::from_utf8(value).ok());
    let length = length.and_then(|value| value.parse::<usize>().ok());
    let length = length.ok_or_else(|| invalid("the response states no length"))?;
    if length > LARGEST_RESPONSE {
        return Err(invalid("the response is larger than 1 MiB"));
    }
    Ok(rest.get(..length).map(<[u8]>::to_vec))
}

/// The content of chunks (RFC 9112 section 7.1); `None` while the last one is missing.
fn chunks(mut rest: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let damaged = || invalid("the response has a damaged chunk");
    let mut body = Vec::new();
    loop {
        let size = httparse::parse_chunk_size(rest).map_err(|_| damaged())?;
        let httparse::Status::Complete((start, size)) = size else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(Some(body));
        }
        let size = usize::try_from(size).map_err(|_| damaged())?;
        let Some((chunk, after)) = rest[start..].split_at_checked(size) else {
            return Ok(None);
        };
        body.extend_from_slice(chunk);
        rest = match after {
            [b'\r', b'\n', after @ ..] => after,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(damaged()),
        };
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::Response;
    use instant_acme::{BodyWrapper, BytesResponse};

    use super::{AcmeHttpClient, parse_response, read_response};

    fn read(text: &[u8], is_head: bool) -> Result<(u16, Vec<u8>), String> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        runtime.block_on(async {
            let mut text = text;
            let response = read_response(&mut text, is_head).await;
            let response = response.map_err(|error| error.to_string())?;
            let status = response.status().as_u16();
            let body = BytesResponse::from(response).body.into_bytes().await;
            let body = body.unwrap();
            Ok((status, body.to_vec()))
        })
    }

    #[test]
    fn bodies_by_length_and_by_chunks_are_read() {
        let fixed = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(read(fixed, false), Ok((201, b"hello".to_vec())));
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
            3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        assert_eq!(read(chunked, false), Ok((200, b"hello".to_vec())));
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(read(head, true), Ok((200, Vec::new())));
        let early = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(read(early, false), Ok((204, Vec::new())));
    }

    #[test]
    fn a_refusal_says_when_to_come_again() {
        let folder = tempfile::tempdir().unwrap();
        let trust = folder.path().join("root.pem");
        let made = rcgen::generate_simple_self_signed(["one.test".to_owned()]).unwrap();
        std::fs::write(&trust, made.cert.pem()).unwrap();
        let client = AcmeHttpClient::new(Some(&trust)).unwrap();
        let date = "Fri, 01 Jan 2027 00:00:00 GMT";
        let note = |status: u16, field: &str| {
            let response = Response::builder().status(status).header(field, date);
            client.note_refusal(&response.body(BodyWrapper::default()).unwrap());
        };
        let respond = |status: u16| {
            note(status, "retry-after");
            client.take_retry_after()
        };
        // An order that is worked on says so too, and is no refusal.
        assert_eq!(respond(200), None);
        let week = base_clock::wall() + Duration::from_secs(7 * 24 * 60 * 60);
        let moment = UNIX_EPOCH + Duration::from_secs(1_798_761_600);
        assert!(respond(429).unwrap() <= moment.min(week) + Duration::from_secs(60));
        assert!(respond(503).is_some());
        assert_eq!(client.take_retry_after(), None);
        note(429, "retry-after");
        note(400, "date");
        let kept = client.take_retry_after();
        assert!(
            kept.is_some(),
            "a later refusal does not take back the pause"
        );
    }

    #[test]
    fn what_is_cut_or_states_no_length_is_refused() {
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n";
        for end in 0..chunked.len() - 2 {
            assert!(read(&chunked[..end], false).is_err());
            assert!(parse_response(&chunked[..end], false).unwrap().is_none());
        }
        assert!(read(b"HTTP/1.1 200 OK\r\n\r\nhello", false).is_err());
        assert!(read(b"SSH-2.0-OpenSSH\r\n", false).is_err());
        let large = b"HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n";
        assert!(read(large, false).unwrap_err().contains("larger"));
    }
}
