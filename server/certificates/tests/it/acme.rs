//! Certificates from an authority: the first, the next, and what happens when there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_testkit::Pebble;
use millpond_certificates::{
    ACME_TLS_ALPN, AcmeOptions, AcmeReport, CertificateName, Certificates,
};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::acme_node::{AcmeNode, AcmeSetting, CLOSED_PORT, options, storage};
use crate::support::{PATIENCE, TestServer, client_config, config_of, get};

/// Renewal information with a window that is over (RFC 9773 section 4.2).
const PAST: &str = r#"{"suggestedWindow":
    {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}}"#;

#[test]
fn a_certificate_is_issued_by_tls_alpn_and_kept_over_a_restart() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let wanted = setting.options(&["one.test"]);
    let node = setting.node(wanted.clone());
    node.wait_until_issued("one.test");
    setting.serves("one.test");
    let issued = node.serial("one.test");
    drop(node);

    // The authority is gone; the stored certificate is shown.
    let AcmeSetting { pebble, folder, .. } = setting;
    let trust = folder.path().join("trust.pem");
    std::fs::copy(pebble.trust(), &trust).unwrap();
    drop(pebble);
    let mut wanted = wanted;
    wanted.trust = Some(trust);
    let node = AcmeNode::start(&Arc::default(), wanted, storage(folder.path()));
    assert_eq!(node.serial("one.test"), issued);
}

#[test]
fn a_certificate_is_issued_by_http_where_tls_is_not_reached() {
    let certificates = Arc::new(Certificates::new());
    let http = TestServer::http(Arc::clone(&certificates));
    let Some(pebble) = Pebble::start(CLOSED_PORT, http.address.port()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
    node.wait_until_issued("one.test");
    assert_eq!(certificates.http_challenge("anything"), None);
}

#[test]
fn a_certificate_is_renewed_when_the_authority_says_so() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let node = setting.node(setting.options(&["one.test"]));
    node.wait_until_issued("one.test");
    let first = node.serial("one.test");
    setting.pebble.set_renewal_info(&first.clone().into(), PAST);
    node.wait_until_issued("one.test");
    assert_ne!(node.serial("one.test"), first);
    setting.serves("one.test");
}

#[test]
fn an_address_gets_a_short_lived_certificate() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let node = setting.node(setting.options(&["127.0.0.1"]));
    node.wait_until_issued("127.0.0.1");
    let shown = setting.certificates.get("acme 127.0.0.1").unwrap();
    assert!(shown.facts().is_for(&CertificateName::parse("127.0.0.1")));
    assert!(shown.facts().lifetime() <= Duration::from_secs(518_400));
    setting.serves("127.0.0.1");
}

#[test]
fn a_profile_is_asked_for_and_a_wrong_one_is_named() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let mut wanted = setting.options(&["one.test"]);
    wanted.profile = Some("longlived".to_owned());
    let node = setting.node(wanted.clone());
    let failed = node.wait_until_failed();
    let sentence = "the authority has no profile longlived; it has default, shortlived";
    assert!(failed.contains(sentence), "{failed}");
    drop(node);

    wanted.profile = Some("shortlived".to_owned());
    let node = setting.node(wanted);
    node.wait_until_issued("one.test");
    let shown = setting.certificates.get("acme one.test").unwrap();
    assert!(shown.facts().lifetime() <= Duration::from_secs(518_400));
}

#[test]
fn a_refusal_is_reported_and_does_not_stop_the_other_names() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    setting.pebble.break_dns("lost.test");
    let mut wanted = setting.options(&["blocked.test", "lost.test", "one.test"]);
    wanted.timing.first_retry = 4 * PATIENCE;
    wanted.timing.longest_retry = 4 * PATIENCE;
    let node = setting.node(wanted);
    let mut reports = [(); 3].map(|()| node.report().to_string());
    reports.sort();
    let [blocked, lost, issued] = &reports;
    assert!(
        blocked.starts_with("blocked.test: no new certificate: the authority does not issue"),
        "{blocked}"
    );
    assert!(
        blocked.contains("there is none yet, so HTTPS fails"),
        "{blocked}"
    );
    assert!(
        lost.starts_with("lost.test: no new certificate: by TLS-ALPN-01"),
        "{lost}"
    );
    assert!(lost.contains("DNS"), "{lost}");
    assert!(
        issued.starts_with("one.test: a new certificate"),
        "{issued}"
    );
    setting.serves("one.test");
}

/// Firewall: the authority's questions are not answered, browsers are.
#[derive(Debug)]
struct Firewall {
    certificates: Arc<Certificates>,
    is_closed: AtomicBool,
}

impl ResolvesServerCert for Firewall {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_challenge = hello
            .alpn()
            .is_some_and(|mut alpn| alpn.any(|p| p == ACME_TLS_ALPN));
        if is_challenge && self.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        self.certificates.resolve(hello)
    }
}

#[test]
fn a_failed_renewal_keeps_the_old_certificate_and_is_tried_again() {
    let certificates = Arc::new(Certificates::new());
    let firewall = Arc::new(Firewall {
        certificates: Arc::clone(&certificates),
        is_closed: AtomicBool::new(false),
    });
    let mut config = (*config_of(&certificates)).clone();
    config.cert_resolver = Arc::clone(&firewall) as Arc<dyn ResolvesServerCert>;
    let server = TestServer::tls(vec![config.into()]);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
    node.wait_until_issued("one.test");
    firewall.is_closed.store(true, Ordering::SeqCst);
    let (first, failed) = loop {
        let shown = node.serial("one.test");
        pebble.set_renewal_info(&shown.clone().into(), PAST);
        match node.report() {
            // Pebble asks for no proof in one order of a hundred.
            AcmeReport::Issued { .. } => {}
            report => break (shown, report.to_string()),
        }
    };
    assert!(failed.contains("by TLS-ALPN-01 (port 443): "), "{failed}");
    assert!(failed.contains("by HTTP-01 (port 80): "), "{failed}");
    assert!(failed.contains("; the old one ends on "), "{failed}");
    assert_eq!(node.serial("one.test"), first);
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    get(server.address, "one.test", &client).unwrap();

    firewall.is_closed.store(false, Ordering::SeqCst);
    node.renewal.check_now();
    loop {
        match node.report() {
            AcmeReport::Issued { .. } => break,
            // Tries from before the firewall opened.
            AcmeReport::Failed { .. } => {}
            other => panic!("{other}"),
        }
    }
    assert_ne!(node.serial("one.test"), first);
}

#[test]
fn an_account_that_the_authority_has_lost_is_made_again() {
    let Some(setting) = AcmeSetting::start() else {
        return;
    };
    let wanted = setting.options(&["one.test"]);
    let node = setting.node(wanted.clone());
    node.wait_until_issued("one.test");
    drop(node);
    let mut stored = std::fs::read_dir(setting.folder.path()).unwrap();
    let stored = stored.next().unwrap().unwrap().path();
    std::fs::remove_file(stored.join("one.test.pem")).unwrap();
    let account = stored.join("account.json");
    let text = std::fs::read_to_string(&account).unwrap();
    let strange = text.replace("/my-account/", "/my-account/lost");
    assert_ne!(strange, text);
    std::fs::write(&account, strange).unwrap();

    let node = setting.node(wanted);
    node.wait_until_issued("one.test");
    assert!(!std::fs::read_to_string(&account).unwrap().contains("lost"));
}

#[test]
fn an_authority_that_cannot_be_reached_is_named() {
    let certificates = Arc::new(Certificates::new());
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = AcmeOptions::new(vec!["one.test".to_owned()]);
    wanted.directory = format!("https://127.0.0.1:{CLOSED_PORT}/dir");
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
    let failed = node.wait_until_failed();
    let sentence = format!(
        "the authority cannot be reached: 127.0.0.1: no connection to 127.0.0.1:{CLOSED_PORT}"
    );
    assert!(failed.contains(&sentence), "{failed}");
}
