//! The server through TLS: the same answers, and what TLS adds.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lab_testkit::PATIENCE;
use millpond_http::{Limits, Listener, listen};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, StreamOwned,
    SupportedProtocolVersion, version,
};
use socket2::{Domain, Socket, Type};

use crate::support::{Server, ServiceCall};

/// A server with TLS, and a configuration for its clients.
pub(crate) struct SecureServer {
    pub(crate) server: Server,
    client: Arc<ClientConfig>,
    names: Arc<NamedCertificate>,
}

/// Shows one certificate, and notes the names in the order of the handshakes.
#[derive(Debug)]
struct NamedCertificate {
    certificate: Arc<CertifiedKey>,
    asked: Mutex<Vec<String>>,
}

impl ResolvesServerCert for NamedCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or_default();
        self.asked.lock().unwrap().push(name.to_owned());
        Some(self.certificate.clone())
    }
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

impl SecureServer {
    pub(crate) fn start(limits: Limits) -> Self {
        Self::with(limits, None, None)
    }

    pub(crate) fn with(
        limits: Limits,
        file: Option<std::fs::File>,
        send_buffer: Option<usize>,
    ) -> Self {
        let names = ["localhost".to_owned(), "flood.test".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let key = any_supported_type(&key).unwrap();
        let resolver = Arc::new(NamedCertificate {
            certificate: CertifiedKey::new(vec![certificate], key).into(),
            asked: Mutex::default(),
        });
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(resolver.clone());
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let client = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = listen(([127, 0, 0, 1], 0).into()).unwrap();
        if let Some(size) = send_buffer {
            socket2::SockRef::from(&socket)
                .set_send_buffer_size(size)
                .unwrap();
        }
        let tls = Some(Arc::new(tls));
        let listener = Listener {
            socket,
            tls,
            fields: "Strict-Transport-Security: max-age=60\r\n".to_owned(),
        };
        let server = Server::on(listener, limits, file, true);
        Self {
            server,
            client: Arc::new(client),
            names: resolver,
        }
    }

    pub(crate) fn connect(&self) -> SecureClient {
        self.connect_as(&self.client)
    }

    fn connect_as(&self, config: &Arc<ClientConfig>) -> SecureClient {
        Self::secured(self.socket(), config)
    }

    /// A connection that begins with `header` before the handshake.
    pub(crate) fn connect_behind(&self, header: &str) -> SecureClient {
        let mut socket = self.socket();
        socket.write_all(header.as_bytes()).unwrap();
        Self::secured(socket, &self.client)
    }

    fn secured(socket: TcpStream, config: &Arc<ClientConfig>) -> SecureClient {
        let name = ServerName::try_from("localhost").unwrap();
        let tls = ClientConnection::new(Arc::clone(config), name).unwrap();
        SecureClient(StreamOwned::new(tls, socket))
    }

    fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(self.server.addr).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    }
}

pub(crate) struct SecureClient(pub(crate) StreamOwned<ClientConnection, TcpStream>);

impl SecureClient {
    pub(crate) fn get(&mut self, target: &str) -> String {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.0.write_all(request.as_bytes()).unwrap();
        self.response()
    }

    /// The body of the next response, which is a 200.
    pub(crate) fn response(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains("\r\nStrict-Transport-Security: max-age=60\r\n"),
            "{head}"
        );
        let (_, length) = head.split_once("Content-Length: ").unwrap();
        let length = length.lines().next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// Returns the bytes that are left until the server ends its side.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        rest
    }
}

#[test]
fn requests_are_answered_as_without_tls() {
    for version in VERSIONS {
        let server = SecureServer::start(Limits::default());
        let mut config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots_of(&server))
            .with_no_client_auth();
        config.enable_sni = true;
        let mut client = server.connect_as(&Arc::new(config));
        assert_eq!(client.get("/hello"), "/hello");
        assert_eq!(client.get("/medium").len(), 200 << 10);
        let body = "b".repeat(100_000);
        let len = body.len();
        let post = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{body}");
        client.0.write_all(post.as_bytes()).unwrap();
        assert!(client.response() == body);
        let stats = server.server.shared.stats();
        // One more was for the certificate.
        assert_eq!((stats.full_handshakes, stats.tls_failures), (2, 0));
        assert_eq!(client.0.conn.protocol_version(), Some(version.version));
    }
}

/// RFC 9112 section 3.2.2, RFC 9110 section 7.4.
#[test]
fn an_https_url_is_a_request_target_and_an_http_url_is_not() {
    let server = SecureServer::start(Limits::default());
    let mut client = server.connect();
    // The second time the bytes are known.
    for _ in 0..2 {
        assert_eq!(client.get("https://localhost/a/b?c"), "/a/b");
    }
    let request = "GET http://localhost/a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.0.write_all(request.as_bytes()).unwrap();
    let rest = client.rest();
    assert!(
        rest.starts_with(b"HTTP/1.1 421 "),
        "{}",
        rest.escape_ascii()
    );
}

/// The client's configuration keeps its roots to itself, so the certificate is asked for.
fn roots_of(server: &SecureServer) -> RootCertStore {
    let mut client = server.connect();
    client.get("/");
    let certificates = client.0.conn.peer_certificates().unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificates[0].clone().into_owned()).unwrap();
    roots
}

#[test]
fn a_pipeline_and_repeated_requests_keep_their_order() {
    let server = SecureServer::start(Limits::default());
    let mut client = server.connect();
    for _ in 0..4 {
        assert_eq!(client.get("/kept"), "");
    }
    let requests: String = (0..100)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        .collect();
    client.0.write_all(requests.as_bytes()).unwrap();
    for n in 0..100 {
        assert_eq!(client.response(), format!("/{n}"));
    }
}

#[test]
fn a_second_connection_resumes_the_first() {
    for version in VERSIONS {
        let server = SecureServer::start(Limits::default());
        let config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots_of(&server))
            .with_no_client_auth();
        let config = Arc::new(config);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut client = server.connect_as(&config);
            client.get("/");
            assert_eq!(client.0.conn.handshake_kind(), Some(kind), "{version:?}");
        }
        let stats = server.server.shared.stats();
        assert_eq!(stats.resumed_handshakes, 1);
    }
}

#[test]
fn a_file_and_a_large_body_arrive_whole_at_a_slow_reader() {
    let mut file = tempfile::tempfile().unwrap();
    let content = "0123456789abcdef".repeat(40_000);
    file.write_all(content.as_bytes()).unwrap();
    let server = SecureServer::with(Limits::default(), Some(file), Some(8 << 10));
    let mut client = server.connect();
    assert!(client.get("/file") == content);
    assert_eq!(client.get("/big").len(), 32 << 20);
    assert_eq!(client.get("/hello"), "/hello");
    let sizes: Vec<u64> = (0..3)
        .map(|_| match server.server.next_seen() {
            ServiceCall::Done { body_bytes, .. } => body_bytes,
            seen => panic!("{seen:?}"),
        })
        .collect();
    assert_eq!(sizes, [content.len() as u64, 32 << 20, 6]);
}

#[test]
fn the_end_of_a_connection_is_said() {
    let server = SecureServer::start(Limits::default());
    let mut client = server.connect();
    assert_eq!(client.get("/close"), "bye");
    // An end without `close_notify` would be an error.
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_that_speaks_plain_http_is_told_so() {
    let server = SecureServer::start(Limits::default());
    let mut socket = server.socket();
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
        "{answer}"
    );
    assert!(
        answer.ends_with("\n") && answer.contains("https"),
        "{answer}"
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    // The counter is written after the answer.
    server.connect().get("/");
    assert_eq!(server.server.shared.stats().tls_failures, 1);
}

#[test]
fn a_handshake_that_stands_still_is_closed() {
    let limits = Limits {
        head_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = SecureServer::start(limits);
    for said in [&b""[..], &[22, 3, 1, 0, 200, 1]] {
        let mut socket = server.socket();
        socket.write_all(said).unwrap();
        let mut rest = Vec::new();
        match socket.read_to_end(&mut rest) {
            Ok(_) => assert_eq!(rest, b""),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    server.connect().get("/");
}

/// *Counterexample*: on a slow network each upgrade lost those that had 100 ms for the rest.
#[test]
fn a_handshake_that_has_begun_is_served_in_a_drain() {
    for version in VERSIONS {
        let server = SecureServer::start(Limits {
            head_timeout: PATIENCE * 10,
            drain_timeout: PATIENCE * 10,
            ..Limits::default()
        });
        let config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots_of(&server))
            .with_no_client_auth();
        let config = Arc::new(config);
        let [mut half, mut whole, mut opened, mut idle] =
            [(); 4].map(|()| server.connect_as(&config));
        let mut silent = server.socket();
        let mut begin = Vec::new();
        half.0.conn.write_tls(&mut begin).unwrap();
        half.0.sock.write_all(&begin[..20]).unwrap();
        whole.0.conn.write_tls(&mut whole.0.sock).unwrap();
        // The beginning of a record after the handshake.
        assert_eq!(opened.get("/a"), "/a");
        let get = b"GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n";
        opened.0.conn.writer().write_all(get).unwrap();
        let mut record = Vec::new();
        opened.0.conn.write_tls(&mut record).unwrap();
        opened.0.sock.write_all(&record[..10]).unwrap();
        idle.get("/a");
        server.server.shared.shutdown();
        assert_eq!(idle.rest(), b"");
        assert_eq!(silent.read(&mut [0]).unwrap(), 0);
        half.0.sock.write_all(&begin[20..]).unwrap();
        assert_eq!(half.get("/late"), "/late");
        // Nor is it closed between the handshake and the request.
        whole.0.conn.complete_io(&mut whole.0.sock).unwrap();
        let socket = whole.0.sock.try_clone().unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let error = whole.0.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(whole.get("/late"), "/late");
        opened.0.sock.write_all(&record[10..]).unwrap();
        assert_eq!(opened.response(), "/late");
        for mut client in [half, whole, opened] {
            assert_eq!(client.rest(), b"");
        }
    }
}

/// A client's first message, sent from an address.
fn hello(server: &SecureServer, from: [u8; 4], name: &'static str) -> SecureClient {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&server.server.addr.into()).unwrap();
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from(name).unwrap();
    let tls = ClientConnection::new(Arc::clone(&server.client), name).unwrap();
    let mut client = SecureClient(StreamOwned::new(tls, socket));
    client.0.conn.write_tls(&mut client.0.sock).unwrap();
    client
}

/// *Counterexample*: handshakes had their turns in the order of their arrival, so a newcomer waited
/// for ten thousand others, which was 6 s.
#[test]
fn a_newcomer_is_answered_after_few_of_a_thousand_handshakes_that_wait() {
    const FLOOD: usize = 1_000;
    for newcomer in [[127, 0, 0, 2], [127, 0, 0, 1]] {
        let server = SecureServer::start(Limits::default());
        let mut held = server.connect();
        held.get("/");
        server.names.asked.lock().unwrap().clear();
        let block = b"GET /block HTTP/1.1\r\nHost: localhost\r\n\r\n";
        held.0.write_all(block).unwrap();
        while server.server.next_seen() != ServiceCall::Waiting {}
        // All of it arrives before the worker goes on.
        let flood: Vec<_> = (0..FLOOD)
            .map(|_| hello(&server, [127, 0, 0, 1], "flood.test"))
            .collect();
        let mut client = hello(&server, newcomer, "localhost");
        server.server.gate.add_permits(1);
        assert_eq!(client.get("/new"), "/new");
        let asked = server.names.asked.lock().unwrap();
        let before = asked.iter().position(|name| name == "localhost").unwrap();
        // While connections are accepted, the worker makes a few in each turn.
        assert!(before < FLOOD / 10, "{before} of {}", flood.len());
    }
}

#[test]
fn a_connection_is_idle_after_its_handshake() {
    let limits = Limits {
        head_timeout: PATIENCE * 10,
        idle_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = SecureServer::start(limits);
    let mut client = server.connect();
    while client.0.conn.is_handshaking() {
        client.0.conn.complete_io(&mut client.0.sock).unwrap();
    }
    // The server closes it long before the time for a head is over.
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
    assert_eq!(server.server.shared.stats().idle_timeouts, 1);
}
