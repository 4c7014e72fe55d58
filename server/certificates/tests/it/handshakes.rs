//! The settings of TLS, by handshakes.

use std::sync::Arc;

use millpond_certificates::{
    Certificates, ClientCertificates, LocalAuthority, TicketSecret, TlsOptions, server_config,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, NamedGroup, ProtocolVersion, ServerConfig};

use crate::support::{TestServer, client_config, config_of, get, pem_text, self_signed};

fn with_secret(certificates: &Arc<Certificates>, secret: &[u8]) -> Arc<ServerConfig> {
    let secret = TicketSecret::shared(secret).unwrap();
    let options = TlsOptions::new(vec![b"http/1.1".to_vec()], secret);
    server_config(Arc::clone(certificates), &options).unwrap()
}

fn certificates(names: &[&str]) -> Arc<Certificates> {
    let certificates = Arc::new(Certificates::new());
    certificates.set("test", self_signed(names));
    certificates
}

fn root(certificates: &Certificates) -> rustls::pki_types::CertificateDer<'static> {
    certificates.get("test").unwrap().chain()[0].clone()
}

#[test]
fn the_certificate_is_chosen_by_name_and_swapped_without_a_restart() {
    let certificates = certificates(&["one.test"]);
    let other = self_signed(&["*.two.test"]);
    certificates.set("other", Arc::clone(&other));
    let server = TestServer::tls(vec![config_of(&certificates)]);
    let client = Arc::new(client_config(&[
        root(&certificates),
        other.chain()[0].clone(),
    ]));
    get(server.address, "one.test", &client).unwrap();
    get(server.address, "a.two.test", &client).unwrap();
    assert!(get(server.address, "three.test", &client).is_err());

    let new = self_signed(&["one.test"]);
    certificates.set("test", Arc::clone(&new));
    let tls = get(
        server.address,
        "one.test",
        &Arc::new(client_config(&[new.chain()[0].clone()])),
    );
    assert_eq!(tls.unwrap().peer_certificates(), Some(new.chain()));
}

#[test]
fn both_versions_are_spoken_and_the_hybrid_key_exchange_is_used() {
    let certificates = certificates(&["one.test"]);
    let server = TestServer::tls(vec![config_of(&certificates)]);
    let client = Arc::new(client_config(&[root(&certificates)]));
    let tls = get(server.address, "one.test", &client).unwrap();
    assert_eq!(tls.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let group = tls.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, NamedGroup::X25519MLKEM768);

    let mut roots = rustls::RootCertStore::empty();
    roots.add(root(&certificates)).unwrap();
    let old = rustls::ClientConfig::builder_with_provider(client.crypto_provider().clone())
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tls = get(server.address, "one.test", &Arc::new(old)).unwrap();
    assert_eq!(tls.protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

#[test]
fn nodes_with_one_secret_resume_each_others_sessions() {
    let certificates = certificates(&["one.test"]);
    let same = || with_secret(&certificates, &[1; 32]);
    let shared = TestServer::tls(vec![same(), same()]);
    let strange = TestServer::tls(vec![same(), with_secret(&certificates, &[2; 32])]);
    for version in [&TLS13, &TLS12] {
        let kinds = |server: &TestServer| {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(root(&certificates)).unwrap();
            let provider = client_config(&[]).crypto_provider().clone();
            let client = rustls::ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let client = Arc::new(client);
            [(); 2].map(|()| {
                get(server.address, "one.test", &client)
                    .unwrap()
                    .handshake_kind()
            })
        };
        assert_eq!(kinds(&shared)[1], Some(HandshakeKind::Resumed));
        assert_eq!(kinds(&strange)[1], Some(HandshakeKind::Full));
    }
}

/// A session of a server that asks for no certificate must not open one that does, though both
/// have one secret.
#[test]
fn a_ticket_does_not_stand_for_a_clients_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.pem");
    let authority = self_signed(&["authority.test"]);
    std::fs::write(&path, pem_text("CERTIFICATE", &authority.chain()[0])).unwrap();
    let certificates = certificates(&["one.test"]);
    let mut options = TlsOptions::new(Vec::new(), TicketSecret::shared(&[1; 32]).unwrap());
    options.client_certificates = Some(ClientCertificates {
        authorities: path,
        required: true,
    });
    let strict = server_config(Arc::clone(&certificates), &options).unwrap();
    let server = TestServer::tls(vec![with_secret(&certificates, &[1; 32]), strict]);
    let client = Arc::new(client_config(&[root(&certificates)]));
    get(server.address, "one.test", &client).unwrap();
    assert!(get(server.address, "one.test", &client).is_err());
}

#[test]
fn early_data_is_off() {
    assert_eq!(
        config_of(&certificates(&["one.test"])).max_early_data_size,
        0
    );
}

#[test]
fn a_clients_certificate_is_asked_for_and_checked() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.pem");
    std::fs::write(&path, authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let known = CertificateParams::new(vec!["client.test".to_owned()]).unwrap();
    let known = known.signed_by(&key, &authority).unwrap();

    let certificates = certificates(&["one.test"]);
    let server = |required| {
        let mut options = TlsOptions::new(Vec::new(), TicketSecret::random().unwrap());
        options.client_certificates = Some(ClientCertificates {
            authorities: path.clone(),
            required,
        });
        TestServer::tls(vec![
            server_config(Arc::clone(&certificates), &options).unwrap(),
        ])
    };
    let without = Arc::new(client_config(&[root(&certificates)]));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root(&certificates)).unwrap();
    let with = rustls::ClientConfig::builder_with_provider(without.crypto_provider().clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![known.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let with = Arc::new(with);
    let required = server(true);
    get(required.address, "one.test", &with).unwrap();
    assert!(get(required.address, "one.test", &without).is_err());
    let optional = server(false);
    get(optional.address, "one.test", &with).unwrap();
    get(optional.address, "one.test", &without).unwrap();
}

#[test]
fn a_client_that_trusts_the_local_authority_accepts_localhost() {
    let folder = tempfile::tempdir().unwrap();
    let authority = LocalAuthority::open(folder.path(), base_clock::wall()).unwrap();
    let path = authority.certificate_path();
    let certificates = Arc::new(Certificates::new());
    let renewal = authority.serve(Arc::clone(&certificates), |error| panic!("{error}"));
    let shown = certificates.get("localhost").unwrap();
    // The root in the file, not the one that the server sends.
    let text = std::fs::read(&path).unwrap();
    let root =
        <rustls::pki_types::CertificateDer as rustls::pki_types::pem::PemObject>::from_pem_slice(
            &text,
        )
        .unwrap();
    assert_eq!(shown.chain()[1], root);
    let server = TestServer::tls(vec![config_of(&certificates)]);
    let client = Arc::new(client_config(&[root]));
    for name in ["localhost", "127.0.0.1", "::1"] {
        get(server.address, name, &client).unwrap();
    }
    drop(renewal);
}
