//! A client that speaks TLS, for servers whose certificates are under test.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD as STANDARD, Engine as _};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::PATIENCE;

/// The settings of a client that trusts these roots.
///
/// # Panics
/// A root is damaged.
#[must_use]
pub fn client_config(roots: &[CertificateDer<'static>]) -> ClientConfig {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone()).unwrap();
    }
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(store)
        .with_no_client_auth()
}

/// The certificates in a PEM file.
///
/// # Panics
/// The file cannot be read, or a certificate is damaged.
#[must_use]
pub fn certificates_in(path: &Path) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_file_iter(path).unwrap();
    found.map(Result::unwrap).collect()
}

/// Sends a request by TLS; the connection after its handshake, and the response.
///
/// # Errors
/// There is no connection, or the server does not prove its name.
///
/// # Panics
/// `name` is no name of a server.
pub fn request(
    address: SocketAddr,
    name: &str,
    config: &Arc<ClientConfig>,
    request: &str,
) -> io::Result<(ClientConnection, String)> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    match stream.read_to_end(&mut response) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    Ok((tls, String::from_utf8_lossy(&response).into_owned()))
}

/// A self-signed certificate for a host and its key, in PEM; valid from the first day of one year
/// to that of another.
///
/// # Panics
/// `host` is no name.
#[must_use]
pub fn self_signed(host: &str, [first, last]: [i32; 2]) -> [String; 2] {
    let mut params = rcgen::CertificateParams::new([host.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(first, 1, 1);
    params.not_after = rcgen::date_time_ymd(last, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    [certificate.pem(), key.serialize_pem()]
}

/// DER as PEM (RFC 7468), in one long line.
#[must_use]
pub fn pem_text(heading: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {heading}-----\n{text}\n-----END {heading}-----\n")
}
