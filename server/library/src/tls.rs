//! The configuration of https from files.

use std::path::Path;
use std::sync::Arc;

use millpond_http::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A chain of certificates and its key, from PEM files, for HTTP/2 and HTTP/1.1. The error is a
/// sentence with the file.
pub(crate) fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let fault = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| fault(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| fault(key, &error))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, private)
        })
        .map_err(|error| fault(certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
