//! One certificate of an authority: what is shown, when it is due, what went wrong.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::AcmeTiming;
use super::schedule::{FailureRecord, RenewalWindow, due_at, random};
use super::storage::CertificateStorage;
use super::stored_value::StoredValue;
use crate::facts::CertificateName;
use crate::resolver::Certificates;
use crate::served::ServedCertificate;
use crate::{Error, pem};

/// A certificate that is kept fresh.
pub(super) struct ManagedCertificate {
    pub(super) name: CertificateName,
    stored_certificate: StoredValue,
    stored_failure: StoredValue,
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
            stored_certificate: StoredValue::new(format!("{folder}/{name}.pem")),
            stored_failure: StoredValue::new(format!("{folder}/{name}.failure.json")),
            name,
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
        if let Some(value) = self.stored_failure.read_change(storage)? {
            self.take_over_failure(value);
        }
        let Some(value) = self.stored_certificate.read_change(storage)? else {
            return Ok(());
        };
        if value.is_empty() {
            return Ok(());
        }
        let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let served = self.check(&value).map_err(damaged)?;
        self.stored_certificate.accept(value);
        if self.stored_certificate.is_unsaved() && !self.is_older_than(&served) {
            return Ok(());
        }
        self.stored_certificate.forget_unsaved();
        if self.stored_failure.is_unsaved() {
            // Another node has succeeded since.
            self.stored_failure.forget_unsaved();
            self.failure = FailureRecord::default();
        }
        self.show(served, certificates);
        Ok(())
    }

    /// Takes over a record of another node. If this node has one that is not saved, the later of
    /// the two counts.
    fn take_over_failure(&mut self, value: Vec<u8>) {
        // A damaged record is as good as none.
        let theirs: FailureRecord = serde_json::from_slice(&value).unwrap_or_default();
        self.stored_failure.accept(value);
        if self.stored_failure.is_unsaved() && !self.failure.is_before(theirs) {
            return;
        }
        self.failure = match self.stored_failure.is_unsaved() {
            true => theirs.with_pause_of(self.failure),
            false => theirs,
        };
        self.stored_failure.forget_unsaved();
    }

    fn is_older_than(&self, other: &ServedCertificate) -> bool {
        let own = self.served.as_ref();
        own.is_none_or(|own| own.facts().not_before < other.facts().not_before)
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
        let stored = self.stored_certificate.write(text.into_bytes(), storage);
        Ok(stored.and(self.clear_failure(storage)))
    }

    fn clear_failure(&mut self, storage: &dyn CertificateStorage) -> io::Result<()> {
        self.failure = FailureRecord::default();
        if self.stored_failure.is_set() {
            return self.stored_failure.write(Vec::new(), storage);
        }
        Ok(())
    }

    /// True if the storage has not taken all that this node has.
    pub(super) fn is_unsaved(&self) -> bool {
        self.stored_certificate.is_unsaved() || self.stored_failure.is_unsaved()
    }

    /// Writes again what the storage did not take.
    pub(super) fn write_unsaved(&mut self, storage: &dyn CertificateStorage) -> io::Result<()> {
        let certificate = self.stored_certificate.write_unsaved(storage);
        certificate.and(self.stored_failure.write_unsaved(storage))
    }

    /// Shortens what was to be waited for while the clock was wrong.
    pub(super) fn limit_waits(&mut self, now: SystemTime, timing: &AcmeTiming) {
        self.failure = self.failure.limited(now, timing);
        self.not_again_before = self.not_again_before.min(now + timing.first_retry);
        self.ask_window_at = self.ask_window_at.min(now + timing.renewal_info);
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
        let value = serde_json::to_vec(&self.failure)?;
        self.stored_failure.write(value, storage)
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

    /// True if the authority's last word on the renewal is old, or there is none.
    pub(super) fn wants_window(&self, now: SystemTime) -> bool {
        self.served.is_some() && self.ask_window_at <= now
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, SystemTime};

    use parking_lot::Mutex;

    use super::ManagedCertificate;
    use crate::acme::schedule::FailureRecord;
    use crate::acme::{AcmeTiming, CertificateStorage};
    use crate::{CertificateName, Certificates};

    #[derive(Default)]
    struct FlakyStorage {
        values: Mutex<HashMap<String, Vec<u8>>>,
        is_full: AtomicBool,
    }

    impl FlakyStorage {
        fn set_full(&self, is_full: bool) {
            self.is_full.store(is_full, Ordering::SeqCst);
        }

        fn put(&self, name: &str, value: &[u8]) {
            let mut values = self.values.lock();
            values.insert(name.to_owned(), value.to_owned());
        }

        fn get(&self, name: &str) -> Vec<u8> {
            self.values.lock().get(name).cloned().unwrap_or_default()
        }
    }

    impl CertificateStorage for FlakyStorage {
        fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            Ok(self.values.lock().get(name).cloned())
        }

        fn store(&self, name: &str, value: &[u8]) -> io::Result<()> {
            if self.is_full.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.put(name, value);
            Ok(())
        }

        fn lock(&self, _name: &str, _lease: Duration) -> io::Result<bool> {
            Ok(true)
        }

        fn unlock(&self, _name: &str) -> io::Result<()> {
            Ok(())
        }

        fn poll_interval(&self) -> Option<Duration> {
            None
        }
    }

    const CERTIFICATE: &str = "folder/one.test.pem";
    const FAILURE: &str = "folder/one.test.failure.json";

    /// A key and its certificate, valid from this year on.
    fn bundle(year: i32) -> String {
        let mut params = rcgen::CertificateParams::new(["one.test".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        key.serialize_pem() + &params.self_signed(&key).unwrap().pem()
    }

    struct Setting {
        storage: FlakyStorage,
        certificates: Certificates,
        managed: ManagedCertificate,
    }

    impl Setting {
        fn new() -> Self {
            let name = CertificateName::parse("one.test");
            Self {
                storage: FlakyStorage::default(),
                certificates: Certificates::new(),
                managed: ManagedCertificate::new(name, "folder"),
            }
        }

        fn read(&mut self) {
            let read = self.managed.read(&self.storage, &self.certificates);
            read.unwrap();
        }

        fn accept(&mut self, text: &str) -> bool {
            let now = SystemTime::UNIX_EPOCH;
            let (storage, shown) = (&self.storage, &self.certificates);
            let accepted = self.managed.accept(text.to_owned(), now, storage, shown);
            accepted.unwrap().is_ok()
        }

        fn shown_year(&self) -> i32 {
            let facts = self.managed.served.as_ref().unwrap().facts();
            time::OffsetDateTime::from(facts.not_before).year()
        }
    }

    #[test]
    fn an_unsaved_certificate_gives_way_to_a_newer_one_only() {
        let mut setting = Setting::new();
        setting.storage.put(CERTIFICATE, bundle(2021).as_bytes());
        setting.read();
        assert_eq!(setting.shown_year(), 2021);
        setting.storage.set_full(true);
        assert!(!setting.accept(&bundle(2023)));
        setting.read();
        assert_eq!(setting.shown_year(), 2023, "the store is as it was");
        setting.storage.put(CERTIFICATE, bundle(2022).as_bytes());
        setting.read();
        assert_eq!(setting.shown_year(), 2023, "another node's older one");
        assert!(setting.managed.is_unsaved());
        let newer = bundle(2024);
        setting.storage.put(CERTIFICATE, newer.as_bytes());
        setting.read();
        assert_eq!(setting.shown_year(), 2024);
        assert!(!setting.managed.is_unsaved());
        setting.storage.set_full(false);
        setting.managed.write_unsaved(&setting.storage).unwrap();
        assert_eq!(setting.storage.get(CERTIFICATE), newer.as_bytes());
    }

    #[test]
    fn an_unsaved_failure_and_its_end_are_written_later() {
        let mut setting = Setting::new();
        let timing = AcmeTiming::default();
        let now = base_clock::wall();
        setting.storage.set_full(true);
        let pause = now + Duration::from_secs(24 * 60 * 60);
        let failed = setting
            .managed
            .fail(now, Some(pause), &timing, &setting.storage);
        assert!(failed.is_err());
        let own = setting.managed.failure;
        setting.read();
        assert_eq!(setting.managed.failure, own);
        let record = |at| {
            let record = FailureRecord::default().after_failure(at, None, &timing, 0.5);
            serde_json::to_vec(&record).unwrap()
        };
        let minute = Duration::from_secs(60);
        setting.storage.put(FAILURE, &record(now - minute));
        setting.read();
        assert_eq!(setting.managed.failure, own, "the later failure counts");
        setting.storage.put(FAILURE, &record(now + minute));
        setting.read();
        assert_ne!(setting.managed.failure, own);
        let retry_at = setting.managed.failure.retry_at();
        assert_eq!(retry_at, own.retry_at(), "the authority's pause");

        assert!(!setting.accept(&bundle(2023)));
        setting.read();
        assert_eq!(setting.managed.failure, FailureRecord::default());
        setting.storage.set_full(false);
        setting.managed.write_unsaved(&setting.storage).unwrap();
        assert_eq!(setting.storage.get(FAILURE), b"");
        assert!(!setting.managed.is_unsaved());
    }
}
