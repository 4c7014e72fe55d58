//! Connections with TLS to a server whose certificate is not looked at.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme,
    StreamOwned, SupportedProtocolVersion, version,
};

/// Limit for an answer, or for the end of a connection. Each takes seconds at most.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that speaks TLS.
#[derive(Clone, Debug)]
pub struct SecureTarget {
    /// Address at which the server listens.
    pub address: SocketAddr,
    /// The name that is asked for.
    pub name: ServerName<'static>,
}

impl SecureTarget {
    /// The server at `address`, whose certificate is for `localhost`.
    ///
    /// # Panics
    /// Never: `localhost` is a name.
    #[must_use]
    pub fn localhost(address: SocketAddr) -> Self {
        let name = ServerName::try_from("localhost").expect("a name");
        Self { address, name }
    }

    pub(super) fn socket(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// A client that has sent nothing yet.
    pub(super) fn client(
        &self,
        version: &'static SupportedProtocolVersion,
        protocol: &[u8],
    ) -> io::Result<ClientConnection> {
        let mut provider = aws_lc_rs::default_provider();
        // Records of these suites can be made without the rest of a connection.
        provider.cipher_suites.retain(|suite| {
            matches!(
                suite.suite(),
                CipherSuite::TLS13_AES_128_GCM_SHA256
                    | CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
                    | CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
            )
        });
        let provider = Arc::new(provider);
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        config.enable_secret_extraction = true;
        ClientConnection::new(Arc::new(config), self.name.clone()).map_err(io::Error::other)
    }

    /// A connection of TLS 1.3 whose handshake is complete.
    ///
    /// # Errors
    /// The server does not accept, or does not speak `protocol` (ALPN, RFC 7301).
    pub fn connect(&self, protocol: &[u8]) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        self.connect_as(&version::TLS13, protocol)
    }

    pub(super) fn connect_as(
        &self,
        version: &'static SupportedProtocolVersion,
        protocol: &[u8],
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut stream = StreamOwned::new(self.client(version, protocol)?, self.socket()?);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        match stream.conn.alpn_protocol() == Some(protocol) {
            true => Ok(stream),
            false => Err(io::Error::other("the server speaks another protocol")),
        }
    }
}

/// Takes every certificate: the server is the one under test.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
