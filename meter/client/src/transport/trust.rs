//! Which certificates a server may show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme, client,
};

use crate::Error;

/// Certificates of an `https://` server that are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Certificates that lead to a root of the system.
    #[default]
    System,
    /// Certificates that lead to a root in this file (PEM), and no others.
    File(PathBuf),
    /// All certificates, for any name.
    Anyone,
}

impl Trust {
    /// Completes a configuration that needs a verifier.
    pub(super) fn apply(
        &self,
        builder: ConfigBuilder<ClientConfig, rustls::WantsVerifier>,
        provider: &CryptoProvider,
    ) -> Result<ConfigBuilder<ClientConfig, client::WantsClientCert>, Error> {
        Ok(match self {
            Self::System => builder.with_root_certificates(system()?),
            Self::File(path) => builder.with_root_certificates(from_file(path)?),
            Self::Anyone => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAll {
                    algorithms: provider.signature_verification_algorithms,
                })),
        })
    }
}

fn system() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Unreadable certificates belong to old authorities; a handshake that needs one fails with a
    // message.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found
            .errors
            .first()
            .map_or_else(String::new, |error| format!(" ({error})"));
        return Err(Error::Plan(format!(
            "the system has no root certificates{why}: name a file of them, or accept every certificate"
        )));
    }
    Ok(roots)
}

fn from_file(path: &Path) -> Result<RootCertStore, Error> {
    let wrong = |why: &dyn std::fmt::Display| {
        Error::Plan(format!("certificates of {}: {why}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"there is none in PEM form"));
    }
    Ok(roots)
}

/// Accepts every certificate. The server still proves that it holds its key, so the cost of a
/// handshake is unchanged.
#[derive(Debug)]
struct AcceptAll {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
