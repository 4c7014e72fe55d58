//! One certificate of an authority: what is shown, when it is due, what went wrong.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::AcmeTiming;
use super::schedule::{FailureRecord, RenewalWindow, due_at, random};
use super::storage::CertificateStorage;
use crate::facts::CertificateName;
use crate::resolver::Certificates;
use crate::served::ServedCertificate;
use crate::{Error, pem};

/// A certificate that is kept fresh.
pub(super) struct ManagedCertificate {
    pub(super) name: CertificateName,
    /// Names of the values in the storage.
    certificate_key: String,
    failure_key: String,
    /// The values as they were last read, to see what another node has changed.
    stored: Vec<u8>,
    stored_failure: Vec<u8>,
    pub(super) served: Option<Arc<ServedCertificate>>,
    pub(super) failure: FailureRecord,
    pub(super) window: Option<RenewalWindow>,
    /// When the authority is asked for the window again.
    pub(super) ask_window_at: SystemTime,
    /// A certificate that is due as soon as it is issued, because this machine's clock is wrong,
    /// must not make a loop.
    not_again_before: SystemTime,
}

impl ManagedCertificate {
    pub(super) fn new(name: CertificateName, folder: &str) -> Self {
        Self {
            certificate_key: format!("{folder}/{name}.pem"),
            failure_key: format!("{folder}/{name}.failure.json"),
            name,
            stored: Vec::new(),
            stored_failure: Vec::new(),
            served: None,
            failure: FailureRecord::default(),
            window: None,
            ask_window_at: SystemTime::UNIX_EPOCH,
            not_again_before: SystemTime::UNIX_EPOCH,
        }
    }

    /// Takes over what this node or another has stored, and shows a new certificate. A stored
    /// certificate that cannot be shown is an error of the kind [`io::ErrorKind::InvalidData`].
    pub(super) fn read(
        &mut self,
        storage: &dyn CertificateStorage,
        certificates: &Certificates,
    ) -> io::Result<()> {
        let failure = storage.load(&self.failure_key)?.unwrap_or_default();
        if failure != self.stored_failure {
            // A damaged record is as good as none.
            self.failure = serde_json::from_slice(&failure).unwrap_or_default();
            self.stored_failure = failure;
        }
        let value = storage.load(&self.certificate_key)?.unwrap_or_default();
        if value == self.stored || value.is_empty() {
            return Ok(());
        }
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let served = self.check(&value).map_err(damaged)?;
        self.show(served, certificates);
        self.stored = value;
        Ok(())
    }

    /// Shows a certificate that was just issued, and stores it. It is shown also if it cannot be
    /// stored.
    pub(super) fn accept(
        &mut self,
        text: String,
        not_again_before: SystemTime,
        storage: &dyn CertificateStorage,
        certificates: &Certificates,
    ) -> Result<io::Result<()>, Error> {
        let served = self.check(text.as_bytes())?;
        self.not_again_before = not_again_before;
        self.show(served, certificates);
        self.stored = text.into_bytes();
        let stored = storage.store(&self.certificate_key, &self.stored);
        Ok(stored.and_then(|()| self.clear_failure(storage)))
    }

    fn clear_failure(&mut self, storage: &dyn CertificateStorage) -> io::Result<()> {
        self.failure = FailureRecord::default();
        if !self.stored_failure.is_empty() {
            self.stored_failure.clear();
            storage.store(&self.failure_key, b"")?;
        }
        Ok(())
    }

    /// Remembers a failed try.
    pub(super) fn fail(
        &mut self,
        now: SystemTime,
        retry_after: Option<SystemTime>,
        timing: &AcmeTiming,
        storage: &dyn CertificateStorage,
    ) -> io::Result<()> {
        self.failure = self
            .failure
            .after_failure(now, retry_after, timing, random());
        self.stored_failure = serde_json::to_vec(&self.failure)?;
        storage.store(&self.failure_key, &self.stored_failure)
    }

    /// When a certificate is asked for: when the old one is due, but not before a failure may be
    /// tried again.
    pub(super) fn ask_at(&self) -> SystemTime {
        let due = self
            .served
            .as_ref()
            .map_or(SystemTime::UNIX_EPOCH, |served| {
                due_at(served.facts(), self.window)
            });
        due.max(self.failure.retry_at()).max(self.not_again_before)
    }

    /// The place of the certificate among those that are shown.
    pub(super) fn slot(&self) -> String {
        format!("acme {}", self.name)
    }

    fn check(&self, text: &[u8]) -> Result<ServedCertificate, Error> {
        let served = pem::parse_bundle(text)
            .map_err(|error| Error::new(format!("the certificate of {}: {error}", self.name)))?;
        if served.facts().is_for(&self.name) {
            return Ok(served);
        }
        let message = format!("the certificate of {} is for other names", self.name);
        Err(Error::new(message))
    }

    fn show(&mut self, served: ServedCertificate, certificates: &Certificates) {
        let served = Arc::new(served);
        certificates.set(&self.slot(), Arc::clone(&served));
        self.served = Some(served);
        self.window = None;
        self.ask_window_at = SystemTime::UNIX_EPOCH;
    }
}
