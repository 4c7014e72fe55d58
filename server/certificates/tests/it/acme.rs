//! Certificates from an authority: the first, the next, and what happens when there is none.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lab_testkit::Pebble;
use millpond_certificates::{
    ACME_TLS_ALPN, AcmeOptions, AcmeRenewal, AcmeReport, AcmeTiming, CertificateName,
    CertificateStorage, Certificates, FileStorage,
};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::support::{PATIENCE, TestServer, client_config, config_of, get};

/// A server that asks for certificates.
struct AcmeNode {
    certificates: Arc<Certificates>,
    reports: Receiver<AcmeReport>,
    renewal: AcmeRenewal,
}

impl AcmeNode {
    fn start(
        certificates: &Arc<Certificates>,
        options: AcmeOptions,
        storage: impl CertificateStorage,
    ) -> Self {
        let (send, reports) = channel();
        let report = move |report: AcmeReport| {
            // After the test nothing listens.
            let _ = send.send(report);
        };
        let certificates = Arc::clone(certificates);
        let shown = Arc::clone(&certificates);
        let storage = Arc::new(storage);
        let mut renewal = AcmeRenewal::prepare(options, storage, shown, report).unwrap();
        renewal.show_stored();
        let renewal = renewal.begin().unwrap();
        Self {
            certificates,
            reports,
            renewal,
        }
    }

    fn report(&self) -> AcmeReport {
        self.reports.recv_timeout(PATIENCE).expect("a report")
    }

    fn wait_until_issued(&self, name: &str) {
        match self.report() {
            AcmeReport::Issued { name: issued, .. } => assert_eq!(issued.to_string(), name),
            other => panic!("{other}"),
        }
    }

    fn wait_until_failed(&self) -> String {
        match self.report() {
            failed @ AcmeReport::Failed { .. } => failed.to_string(),
            other => panic!("{other}"),
        }
    }

    fn serial(&self, name: &str) -> Vec<u8> {
        let shown = self.certificates.get(&format!("acme {name}")).unwrap();
        shown.chain()[0].to_vec()
    }
}

fn options(pebble: &Pebble, names: &[&str]) -> AcmeOptions {
    let mut options = AcmeOptions::new(names.iter().map(|name| (*name).to_owned()).collect());
    options.directory = pebble.directory();
    options.trust = Some(pebble.trust());
    options.email = Some("webmaster@one.test".to_owned());
    options.timing = AcmeTiming {
        first_retry: Duration::from_millis(300),
        longest_retry: Duration::from_secs(2),
        order_poll: Duration::from_millis(100),
        order_timeout: PATIENCE,
        lock_retry: Duration::from_millis(100),
        renewal_info: Duration::from_millis(200),
    };
    options
}

fn storage(folder: &Path) -> FileStorage {
    FileStorage::new(folder).unwrap()
}

fn tls_server(certificates: &Arc<Certificates>) -> TestServer {
    TestServer::tls(vec![config_of(certificates)])
}

/// Renewal information with a window that is over (RFC 9773 section 4.2).
const PAST: &str = r#"{"suggestedWindow":
    {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}}"#;

/// A port on which nothing listens: it is of a service that is long forgotten, and no system gives
/// it to a program that asks for any port.
const CLOSED_PORT: u16 = 1;

#[test]
fn a_certificate_is_issued_by_tls_alpn_and_kept_over_a_restart() {
    let certificates = Arc::new(Certificates::new());
    let server = tls_server(&certificates);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let node = AcmeNode::start(&certificates, wanted.clone(), storage(folder.path()));
    node.wait_until_issued("one.test");
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    get(server.address, "one.test", &client).unwrap();
    std::fs::copy(pebble.trust(), folder.path().join("trust.pem")).unwrap();
    let issued = node.serial("one.test");
    drop(node);

    // The authority is gone; the stored certificate is shown.
    drop(pebble);
    let mut wanted = wanted;
    wanted.trust = Some(folder.path().join("trust.pem"));
    let certificates = Arc::new(Certificates::new());
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
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
    let certificates = Arc::new(Certificates::new());
    let server = tls_server(&certificates);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
    node.wait_until_issued("one.test");
    let first = node.serial("one.test");
    pebble.set_renewal_info(&first.clone().into(), PAST);
    node.wait_until_issued("one.test");
    assert_ne!(node.serial("one.test"), first);
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    get(server.address, "one.test", &client).unwrap();
}

#[test]
fn an_address_gets_a_short_lived_certificate() {
    let certificates = Arc::new(Certificates::new());
    let server = tls_server(&certificates);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["127.0.0.1"]);
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
    node.wait_until_issued("127.0.0.1");
    let shown = certificates.get("acme 127.0.0.1").unwrap();
    assert!(shown.facts().is_for(&CertificateName::parse("127.0.0.1")));
    assert!(shown.facts().lifetime() <= Duration::from_secs(518_400));
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    get(server.address, "127.0.0.1", &client).unwrap();
}

#[test]
fn a_profile_is_asked_for_and_a_wrong_one_is_named() {
    let certificates = Arc::new(Certificates::new());
    let server = tls_server(&certificates);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = options(&pebble, &["one.test"]);
    wanted.profile = Some("longlived".to_owned());
    let node = AcmeNode::start(&certificates, wanted.clone(), storage(folder.path()));
    let failed = node.wait_until_failed();
    let sentence = "the authority has no profile longlived; it has default, shortlived";
    assert!(failed.contains(sentence), "{failed}");
    drop(node);

    wanted.profile = Some("shortlived".to_owned());
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
    node.wait_until_issued("one.test");
    let shown = certificates.get("acme one.test").unwrap();
    assert!(shown.facts().lifetime() <= Duration::from_secs(518_400));
}

#[test]
fn a_refusal_is_reported_and_does_not_stop_the_other_names() {
    let certificates = Arc::new(Certificates::new());
    let server = tls_server(&certificates);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    pebble.break_dns("lost.test");
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = options(&pebble, &["blocked.test", "lost.test", "one.test"]);
    wanted.timing.first_retry = 4 * PATIENCE;
    wanted.timing.longest_retry = 4 * PATIENCE;
    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
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
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    get(server.address, "one.test", &client).unwrap();
}

/// What a firewall does: the authority's questions are not answered, browsers are.
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
            other @ AcmeReport::StorageFailed { .. } => panic!("{other}"),
        }
    }
    assert_ne!(node.serial("one.test"), first);
}

#[test]
fn an_account_that_the_authority_has_lost_is_made_again() {
    let certificates = Arc::new(Certificates::new());
    let server = tls_server(&certificates);
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let node = AcmeNode::start(&certificates, wanted.clone(), storage(folder.path()));
    node.wait_until_issued("one.test");
    drop(node);
    let mut stored = std::fs::read_dir(folder.path()).unwrap();
    let stored = stored.next().unwrap().unwrap().path();
    std::fs::remove_file(stored.join("one.test.pem")).unwrap();
    let account = stored.join("account.json");
    let text = std::fs::read_to_string(&account).unwrap();
    let strange = text.replace("/my-account/", "/my-account/lost");
    assert_ne!(strange, text);
    std::fs::write(&account, strange).unwrap();

    let node = AcmeNode::start(&certificates, wanted, storage(folder.path()));
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

#[test]
fn of_two_nodes_one_asks_and_both_answer() {
    let nodes = [(); 2].map(|()| Arc::new(Certificates::new()));
    // The authority looks several times, so that each node has to answer.
    let server = TestServer::tls(nodes.iter().map(config_of).collect());
    let Some(pebble) = Pebble::start(server.address.port(), CLOSED_PORT) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let wanted = options(&pebble, &["one.test"]);
    let shared = || storage(folder.path()).shared(Duration::from_millis(200));
    let [one, other] = nodes.map(|node| AcmeNode::start(&node, wanted.clone(), shared()));
    let deadline = base_clock::Deadline::after(PATIENCE);
    while [&one, &other]
        .iter()
        .any(|node| node.certificates.get("acme one.test").is_none())
    {
        assert!(!deadline.is_past(), "both nodes get the certificate");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(one.serial("one.test"), other.serial("one.test"));
    let reports: Vec<_> = one
        .reports
        .try_iter()
        .chain(other.reports.try_iter())
        .collect();
    let is_issued = |report: &&AcmeReport| matches!(report, AcmeReport::Issued { .. });
    assert_eq!(reports.iter().filter(is_issued).count(), 1, "{reports:?}");
    let client = Arc::new(client_config(&[pebble.issuing_root()]));
    for _ in 0..2 {
        get(server.address, "one.test", &client).unwrap();
    }
}
