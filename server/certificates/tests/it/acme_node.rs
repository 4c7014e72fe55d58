//! A node that asks for certificates, and what it asks.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lab_testkit::Pebble;
use millpond_certificates::{
    AcmeOptions, AcmeRenewal, AcmeReport, AcmeTiming, CertificateStorage, Certificates, FileStorage,
};
use tempfile::TempDir;

use crate::support::{PATIENCE, TestServer, client_config, config_of, get};

/// A port on which nothing listens: it is of a service that is long forgotten, and no system gives
/// it to a program that asks for any port.
pub(crate) const CLOSED_PORT: u16 = 1;

/// A server that asks for certificates.
pub(crate) struct AcmeNode {
    pub(crate) certificates: Arc<Certificates>,
    pub(crate) reports: Receiver<AcmeReport>,
    pub(crate) renewal: AcmeRenewal,
}

impl AcmeNode {
    pub(crate) fn start(
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

    pub(crate) fn report(&self) -> AcmeReport {
        self.reports.recv_timeout(PATIENCE).expect("a report")
    }

    pub(crate) fn wait_until_issued(&self, name: &str) {
        match self.report() {
            AcmeReport::Issued { name: issued, .. } => assert_eq!(issued.to_string(), name),
            other => panic!("{other}"),
        }
    }

    pub(crate) fn wait_until_failed(&self) -> String {
        match self.report() {
            failed @ AcmeReport::Failed { .. } => failed.to_string(),
            other => panic!("{other}"),
        }
    }

    pub(crate) fn serial(&self, name: &str) -> Vec<u8> {
        let shown = self.certificates.get(&format!("acme {name}")).unwrap();
        shown.chain()[0].to_vec()
    }
}

/// An authority, the server at which it looks, and the folder for what is stored.
pub(crate) struct AcmeSetting {
    pub(crate) certificates: Arc<Certificates>,
    pub(crate) server: TestServer,
    pub(crate) pebble: Pebble,
    pub(crate) folder: TempDir,
}

impl AcmeSetting {
    /// A server that answers challenges by TLS; `None` if Pebble is not installed.
    pub(crate) fn start() -> Option<Self> {
        let certificates = Arc::new(Certificates::new());
        let server = TestServer::tls(vec![config_of(&certificates)]);
        Some(Self {
            pebble: Pebble::start(server.address.port(), CLOSED_PORT)?,
            folder: tempfile::tempdir().unwrap(),
            certificates,
            server,
        })
    }

    pub(crate) fn options(&self, names: &[&str]) -> AcmeOptions {
        options(&self.pebble, names)
    }

    /// A node with its values in the folder.
    pub(crate) fn node(&self, options: AcmeOptions) -> AcmeNode {
        AcmeNode::start(&self.certificates, options, storage(self.folder.path()))
    }

    /// The server answers a client that trusts the authority.
    pub(crate) fn serves(&self, name: &str) {
        let client = Arc::new(client_config(&[self.pebble.issuing_root()]));
        get(self.server.address, name, &client).unwrap();
    }
}

/// Certificates for `names`, with short waits.
pub(crate) fn options(pebble: &Pebble, names: &[&str]) -> AcmeOptions {
    let mut options = AcmeOptions::new(names.iter().map(|name| (*name).to_owned()).collect());
    options.directory = pebble.directory();
    options.trust = Some(pebble.trust());
    options.email = Some("webmaster@one.test".to_owned());
    options.timing = AcmeTiming {
        first_retry: Duration::from_millis(300),
        longest_retry: Duration::from_secs(2),
        order_poll: Duration::from_millis(100),
        order_timeout: PATIENCE,
        lease: PATIENCE,
        lock_retry: Duration::from_millis(100),
        renewal_info: Duration::from_millis(200),
    };
    options
}

pub(crate) fn storage(folder: &Path) -> FileStorage {
    FileStorage::new(folder).unwrap()
}
