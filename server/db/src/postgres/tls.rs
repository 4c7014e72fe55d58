//! TLS to the server, as far as `sslmode` asks for it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::options::{Proof, Trust};
use crate::Error;

/// Makes TLS connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the certificates to trust, where any are needed.
    pub(crate) fn new(trust: &Trust) -> Result<Self, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let inner = match trust.proof {
            Proof::None => None,
            Proof::Signed | Proof::Host => Some(
                WebPkiServerVerifier::builder_with_provider(roots(trust)?.into(), provider.clone())
                    .build()
                    .map_err(|error| Error::usage(format!("sslrootcert: {error}")))?,
            ),
        };
        let verifier = Arc::new(Verifier {
            inner,
            host: trust.proof == Proof::Host,
            provider: provider.clone(),
        });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::unavailable(format!("no TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// For connections that are not made by the driver.
    pub(crate) fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }
}

fn roots(trust: &Trust) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    match &trust.roots {
        Some(path) => {
            let wrong = |error: &dyn std::fmt::Display| {
                Error::usage(format!("sslrootcert {}: {error}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
                let certificate = certificate.map_err(|e| wrong(&e))?;
                store.add(certificate).map_err(|e| wrong(&e))?;
            }
            if store.is_empty() {
                return Err(wrong(&"there is no certificate in it"));
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err(Error::usage(
                    "the system has no certificates to trust; name a file with sslrootcert=",
                ));
            }
        }
    }
    Ok(store)
}

/// Asks of a certificate what `sslmode` says. Possession of the certificate's key is always
/// verified.
#[derive(Debug)]
struct Verifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        match inner.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The chain is looked at before the name, so a wrong name is all that is wrong.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.host => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = SecureStream;
    type TlsConnect = Connector;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connector> {
        Ok(Connector {
            config: self.config.clone(),
            host: host.to_owned(),
        })
    }
}

/// Makes one TLS connection.
pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    host: String,
}

impl TlsConnect<Socket> for Connector {
    type Stream = SecureStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<SecureStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            // Not earlier: over a Unix socket there is neither TLS nor a name.
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            let stream = TlsConnector::from(self.config)
                .connect(name, socket)
                .await?;
            Ok(SecureStream(stream))
        })
    }
}

pub(crate) struct SecureStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for SecureStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for SecureStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for SecureStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
