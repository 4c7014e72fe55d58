//! A certificate with its key, ready to be shown to clients.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::Error;
use crate::facts::{CertificateFacts, date};

/// A chain of certificates, the server's first, with the key of the first.
#[derive(Clone, Debug)]
pub struct ServedCertificate {
    key: Arc<CertifiedKey>,
    facts: CertificateFacts,
}

impl ServedCertificate {
    /// Joins a chain with its key.
    ///
    /// # Errors
    ///
    /// The chain is empty or no X.509, the key is of an unknown kind, or the key belongs to another
    /// certificate.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'_>,
    ) -> Result<Self, Error> {
        let first = chain
            .first()
            .ok_or_else(|| Error::new("there is no certificate"))?;
        let facts = CertificateFacts::read(first)
            .ok_or_else(|| Error::new("the certificate is no X.509 certificate"))?;
        let key = aws_lc_rs::sign::any_supported_type(key).map_err(|_| {
            Error::new("the private key is damaged, or neither RSA, ECDSA nor Ed25519")
        })?;
        let key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(Self {
                    key: Arc::new(key),
                    facts,
                })
            }
            Err(_) => Err(Error::new(
                "the private key does not belong to the certificate",
            )),
        }
    }

    /// The form in which `rustls` takes it.
    #[must_use]
    pub fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// The chain, the server's certificate first.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }

    /// Returns the facts that the server's certificate says of itself.
    #[must_use]
    pub fn facts(&self) -> &CertificateFacts {
        &self.facts
    }

    /// Refuses a certificate that is not valid at `now`.
    ///
    /// # Errors
    ///
    /// It has expired, or is valid only later.
    pub fn check_validity(&self, now: SystemTime) -> Result<(), Error> {
        if now > self.facts.not_after {
            let end = date(self.facts.not_after);
            return Err(Error::new(format!("the certificate expired on {end}")));
        }
        if now < self.facts.not_before {
            let (start, now) = (date(self.facts.not_before), date(now));
            return Err(Error::new(format!(
                "the certificate is not valid before {start}; this machine's clock says {now}"
            )));
        }
        Ok(())
    }
}
