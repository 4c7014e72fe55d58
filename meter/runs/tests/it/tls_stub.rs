//! TLS servers of a few lines, and an authority that signs for them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

use crate::stub::StubServer;

pub(crate) type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// An authority with its root in a file, for as long as it lives.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("root.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Its root certificate.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Configuration of a server for `name`; `change` modifies a good certificate.
    pub(crate) fn sign(
        &self,
        name: &str,
        versions: &[&'static SupportedProtocolVersion],
        change: impl FnOnce(&mut CertificateParams),
    ) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }

    /// Configuration of a server at 127.0.0.1.
    pub(crate) fn usual(&self) -> ServerConfig {
        self.sign("127.0.0.1", rustls::ALL_VERSIONS, |_| ())
    }
}

/// Connections as the server saw them.
#[derive(Clone, Default)]
pub(crate) struct SeenConnections {
    /// True if each handshake resumed a session.
    pub(crate) resumed: Arc<Mutex<Vec<bool>>>,
    /// The name that each client asked for.
    pub(crate) names: Arc<Mutex<Vec<Option<String>>>>,
    /// True if each connection that was read to its end ended with `close_notify`.
    pub(crate) goodbyes: Arc<Mutex<Vec<bool>>>,
}

/// Answers every request with the same bytes.
pub(crate) fn fixed(config: ServerConfig, answer: &'static [u8]) -> (StubServer, SeenConnections) {
    let seen = SeenConnections::default();
    let note = seen.clone();
    let server = start(config, move |mut stream| {
        let mut last = [0; 4];
        let mut bytes = [0; 4096];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return note.goodbyes.lock().unwrap().push(true),
                Ok(count) => {
                    for byte in &bytes[..count] {
                        last.rotate_left(1);
                        last[3] = *byte;
                        if last == *b"\r\n\r\n" && stream.write_all(answer).is_err() {
                            return;
                        }
                    }
                    let session = &stream.conn;
                    let resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
                    note.resumed.lock().unwrap().push(resumed);
                    let name = session.server_name().map(str::to_owned);
                    note.names.lock().unwrap().push(name);
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return note.goodbyes.lock().unwrap().push(false);
                }
                Err(_) => return,
            }
        }
    });
    (server, seen)
}

/// Calls `handle` with every connection.
pub(crate) fn start(
    config: ServerConfig,
    handle: impl Fn(TlsStream) + Send + Sync + 'static,
) -> StubServer {
    let config = Arc::new(config);
    StubServer::start(move |socket| {
        let _ = socket.set_nodelay(true);
        let session = ServerConnection::new(Arc::clone(&config)).unwrap();
        handle(StreamOwned::new(session, socket));
    })
}
