//! A server and a client that speak TLS by `rustls`' buffered interface, on threads.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use lab_testkit::tls::{client_config, pem_text, request};
use millpond_certificates::{
    ACME_TLS_ALPN, Certificates, ServedCertificate, TicketSecret, TlsOptions, server_config,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

/// How long a test waits for an event before it fails. No event takes a hundredth of it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A self-signed certificate for these names.
pub(crate) fn self_signed(names: &[&str]) -> Arc<ServedCertificate> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    Arc::new(ServedCertificate::new(vec![made.cert.der().clone()], &key).unwrap())
}

/// The settings of a server with these certificates and a secret of its own.
pub(crate) fn config_of(certificates: &Arc<Certificates>) -> Arc<ServerConfig> {
    let secret = TicketSecret::random().unwrap();
    let options = TlsOptions::new(vec![b"http/1.1".to_vec()], secret);
    server_config(Arc::clone(certificates), &options).unwrap()
}

/// A listener whose connections are served one after another by a thread, until it is dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    fn start(serve: impl Fn(TcpStream) -> io::Result<()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for socket in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let socket = socket.unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                // A client may leave at any time.
                let _ = serve(socket);
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }

    /// TLS with these settings in turn: each connection takes the next. A connection for a
    /// challenge ends after its handshake; any other gets one response.
    pub(crate) fn tls(configs: Vec<Arc<ServerConfig>>) -> Self {
        let next = AtomicUsize::new(0);
        Self::start(move |mut socket| {
            let at = next.fetch_add(1, Ordering::SeqCst) % configs.len();
            let mut tls = ServerConnection::new(Arc::clone(&configs[at])).unwrap();
            while tls.is_handshaking() {
                let done = tls.complete_io(&mut socket);
                if done.is_err() {
                    // The client is told what is wrong.
                    let _ = tls.write_tls(&mut socket);
                    return Ok(());
                }
            }
            if tls.alpn_protocol() == Some(ACME_TLS_ALPN) {
                tls.send_close_notify();
                tls.write_tls(&mut socket)?;
                return Ok(());
            }
            let mut stream = rustls::Stream::new(&mut tls, &mut socket);
            read_head(&mut stream)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nserved")?;
            stream.conn.send_close_notify();
            stream.flush()
        })
    }

    /// Starts a server on port 80 that answers challenges only.
    pub(crate) fn http(certificates: Arc<Certificates>) -> Self {
        Self::start(move |mut socket| {
            let head = read_head(&mut socket)?;
            let path = head.split(' ').nth(1).unwrap_or_default();
            let token = path.strip_prefix("/.well-known/acme-challenge/");
            let response = match token.and_then(|token| certificates.http_challenge(token)) {
                Some(body) => format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                ),
                None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            socket.write_all(response.as_bytes())
        })
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A request for `/` to a server that must prove to be `name`.
pub(crate) fn get(
    address: SocketAddr,
    name: &str,
    config: &Arc<ClientConfig>,
) -> io::Result<ClientConnection> {
    let (tls, response) = request(address, name, config, "GET / HTTP/1.1\r\nhost: x\r\n\r\n")?;
    assert!(response.ends_with("served"), "{response:?}");
    Ok(tls)
}
