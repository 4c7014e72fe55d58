//! The settings of TLS, as `rustls` takes them.

use std::path::PathBuf;
use std::sync::Arc;

use ::aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite};

use crate::Error;
use crate::pem;
use crate::resolver::{ACME_TLS_ALPN, Certificates};
use crate::tickets::{SharedTickets, TicketSecret};

/// Suites with authenticated encryption and a fresh key exchange only. The client's order counts: a
/// phone without AES instructions wants ChaCha20.
const SUITES: [SupportedCipherSuite; 9] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// The hybrid with ML-KEM first: what is recorded today stays secret from a quantum computer.
const KEY_EXCHANGES: [&dyn SupportedKxGroup; 4] = [
    kx_group::X25519MLKEM768,
    kx_group::X25519,
    kx_group::SECP256R1,
    kx_group::SECP384R1,
];

/// Certificates of clients that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// A PEM file with the authorities that sign clients' certificates.
    pub authorities: PathBuf,
    /// True if a client without a certificate is refused.
    pub required: bool,
}

/// How TLS is spoken.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The protocols above TLS (RFC 7301), the preferred one first: `h2`, `http/1.1`. A client that
    /// offers protocols, but none of these, is refused; a client that offers none is accepted.
    pub alpn: Vec<Vec<u8>>,
    /// The secret behind session tickets.
    pub ticket_secret: TicketSecret,
    /// Certificates that clients may or must show; `None`: clients are asked for none.
    pub client_certificates: Option<ClientCertificates>,
}

impl TlsOptions {
    /// Options without client certificates.
    #[must_use]
    pub fn new(alpn: Vec<Vec<u8>>, ticket_secret: TicketSecret) -> Self {
        Self {
            alpn,
            ticket_secret,
            client_certificates: None,
        }
    }
}

/// TLS 1.3 and 1.2 with the certificates of `certificates`. Tickets resume sessions on every node
/// with the same secret; no session is kept in memory. Early data (0-RTT) is off, because an
/// attacker can repeat it (RFC 8446 section 8).
///
/// `acme-tls/1` is added to the protocols of `options`: a connection that has negotiated
/// [`ACME_TLS_ALPN`] is closed after its handshake.
///
/// # Errors
///
/// The authorities for clients' certificates cannot be read.
pub fn server_config(
    certificates: Arc<Certificates>,
    options: &TlsOptions,
) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(crypto_provider());
    let (clients, context) = client_verifier(options.client_certificates.as_ref(), &provider)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| Error::new(format!("TLS cannot be set up: {error}")))?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(certificates);
    config.alpn_protocols.clone_from(&options.alpn);
    config.alpn_protocols.push(ACME_TLS_ALPN.to_vec());
    config.ticketer = Arc::new(SharedTickets::new(options.ticket_secret.clone(), context));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// AWS-LC with the suites and key exchanges of this server.
fn crypto_provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: SUITES.to_vec(),
        kx_groups: KEY_EXCHANGES.to_vec(),
        ..aws_lc_rs::default_provider()
    }
}

/// Makes the verifier of clients, and the context of tickets: a session is resumed only where
/// clients have to prove the same.
fn client_verifier(
    clients: Option<&ClientCertificates>,
    provider: &Arc<CryptoProvider>,
) -> Result<(Arc<dyn ClientCertVerifier>, Vec<u8>), Error> {
    let Some(clients) = clients else {
        return Ok((Arc::new(NoClientAuth), Vec::new()));
    };
    let path = &clients.authorities;
    let mut roots = RootCertStore::empty();
    let mut digest = digest::Context::new(&digest::SHA256);
    digest.update(&[u8::from(clients.required)]);
    for certificate in pem::read_certificates(path)? {
        digest.update(&certificate);
        let added = roots.add(certificate);
        added
            .map_err(|error| Error::of_file(path, format!("a certificate is damaged: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let builder = if clients.required {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    let verifier = builder.build();
    let verifier = verifier.map_err(|error| Error::of_file(path, error))?;
    Ok((verifier, digest.finish().as_ref().to_vec()))
}
