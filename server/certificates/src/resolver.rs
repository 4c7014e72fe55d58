//! Which certificate a client is shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::acme::challenges::ChallengeTable;
use crate::facts::{CertificateName, wildcard_of};
use crate::served::ServedCertificate;

/// The protocol name of the challenge TLS-ALPN-01 (RFC 8737 section 6.2). A connection that has
/// negotiated it carries nothing else: the server closes it after the handshake.
pub const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// The certificates of the server. They are replaced while connections are accepted; an accepted
/// connection keeps the one that it was shown.
///
/// A client is shown the certificate of the name that it asks for (SNI, RFC 6066 section 3): the
/// name itself, then a wildcard for its first label. A client that asks for no name is shown the
/// first certificate for an address, as a client does not send an address in SNI. In all other
/// cases a client is shown the default, which is the first certificate.
///
/// Choosing takes no lock and reads no file.
#[derive(Default)]
pub struct Certificates {
    /// Certificates with the slots that were set, in the order of first mention.
    slots: Mutex<Vec<(String, Option<Arc<ServedCertificate>>)>>,
    shown: ArcSwap<ShownCertificates>,
    challenges: ArcSwap<ChallengeTable>,
}

#[derive(Default)]
struct ShownCertificates {
    by_host: HashMap<String, Arc<CertifiedKey>>,
    without_name: Option<Arc<CertifiedKey>>,
    default: Option<Arc<CertifiedKey>>,
}

impl Certificates {
    /// No certificates yet: handshakes fail until one is set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows `certificate` from now on, in place of the one that was set for `slot` before. If two
    /// slots have certificates for one name, the slot that was mentioned first wins.
    pub fn set(&self, slot: &str, certificate: Arc<ServedCertificate>) {
        self.replace(slot, Some(certificate));
    }

    /// Gives `slot` its place in the order before it has a certificate, so that the default does
    /// not depend on which certificate is issued first.
    pub fn reserve(&self, slot: &str) {
        if self.get(slot).is_none() {
            self.replace(slot, None);
        }
    }

    fn replace(&self, slot: &str, certificate: Option<Arc<ServedCertificate>>) {
        let mut slots = self.slots.lock();
        match slots.iter_mut().find(|(name, _)| name == slot) {
            Some((_, old)) => *old = certificate,
            None => slots.push((slot.to_owned(), certificate)),
        }
        self.shown.store(Arc::new(ShownCertificates::of(&slots)));
    }

    /// No longer shows the certificate of `slot`.
    pub fn remove(&self, slot: &str) {
        let mut slots = self.slots.lock();
        slots.retain(|(name, _)| name != slot);
        self.shown.store(Arc::new(ShownCertificates::of(&slots)));
    }

    /// Returns the certificate that was set for `slot`.
    #[must_use]
    pub fn get(&self, slot: &str) -> Option<Arc<ServedCertificate>> {
        let slots = self.slots.lock();
        let found = slots.iter().find(|(name, _)| name == slot);
        found.and_then(|(_, certificate)| certificate.clone())
    }

    /// Returns all slots with the certificates that were set for them.
    #[must_use]
    pub fn slots(&self) -> Vec<(String, Option<Arc<ServedCertificate>>)> {
        self.slots.lock().clone()
    }

    /// Returns the answer of the server on port 80 at `/.well-known/acme-challenge/TOKEN` (RFC 8555
    /// section 8.3), as `application/octet-stream`; `None` is a 404. Takes no lock.
    #[must_use]
    pub fn http_challenge(&self, token: &str) -> Option<String> {
        let challenges = self.challenges.load();
        challenges.http(token).map(str::to_owned)
    }

    /// Answers these challenges from now on, and no others.
    pub(crate) fn set_challenges(&self, challenges: ChallengeTable) {
        self.challenges.store(Arc::new(challenges));
    }

    fn choose(&self, host: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let shown = self.shown.load();
        let Some(host) = host else {
            return shown.without_name.clone();
        };
        let host = lower_case(host);
        let exact = shown.by_host.get(host.as_ref());
        let found = exact.or_else(|| shown.by_host.get(&wildcard_of(&host)?));
        found.or(shown.default.as_ref()).cloned()
    }
}

impl ShownCertificates {
    fn of(slots: &[(String, Option<Arc<ServedCertificate>>)]) -> Self {
        let mut shown = Self::default();
        let mut for_address = None;
        for certificate in slots
            .iter()
            .filter_map(|(_, certificate)| certificate.as_ref())
        {
            let key = certificate.certified_key();
            shown.default.get_or_insert_with(|| Arc::clone(key));
            for name in &certificate.facts().names {
                match name {
                    CertificateName::Host(host) => {
                        let entry = shown.by_host.entry(host.clone());
                        entry.or_insert_with(|| Arc::clone(key));
                    }
                    CertificateName::Address(_) => {
                        for_address.get_or_insert_with(|| Arc::clone(key));
                    }
                }
            }
        }
        shown.without_name = for_address.or_else(|| shown.default.clone());
        shown
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // The challenge's client offers no other protocol (RFC 8737 section 3). A browser never
        // offers this one.
        let is_challenge = hello
            .alpn()
            .is_some_and(|protocols| protocols.eq([ACME_TLS_ALPN]));
        if is_challenge {
            let challenges = self.challenges.load();
            return challenges.tls(&lower_case(hello.server_name()?));
        }
        self.choose(hello.server_name())
    }
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slots = self.slots.lock();
        let names = slots.iter().map(|(slot, _)| slot);
        formatter.debug_list().entries(names).finish()
    }
}

fn lower_case(host: &str) -> Cow<'_, str> {
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        host.to_ascii_lowercase().into()
    } else {
        host.into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Certificates;
    use crate::testing::certificate;

    #[test]
    fn a_name_wins_over_a_wildcard_and_a_wildcard_over_the_default() {
        let certificates = Certificates::new();
        assert!(certificates.choose(Some("example.org")).is_none());
        let first = certificate(&["example.org"]);
        let wildcard = certificate(&["*.example.org"]);
        let exact = certificate(&["www.example.org"]);
        for (slot, certificate) in [("a", &first), ("b", &wildcard), ("c", &exact)] {
            certificates.set(slot, Arc::clone(certificate));
        }
        let chosen = |host| certificates.choose(host).unwrap();
        assert_eq!(chosen(Some("WWW.example.org")).cert, exact.chain());
        assert_eq!(chosen(Some("blog.example.org")).cert, wildcard.chain());
        assert_eq!(chosen(Some("a.blog.example.org")).cert, first.chain());
        assert_eq!(chosen(None).cert, first.chain());
        let address = certificate(&["192.0.2.1"]);
        certificates.set("d", Arc::clone(&address));
        assert_eq!(chosen(None).cert, address.chain());
        assert_eq!(chosen(Some("other.test")).cert, first.chain());
    }

    #[test]
    fn a_replaced_certificate_is_shown_at_once() {
        let certificates = Certificates::new();
        certificates.reserve("first");
        certificates.set("a", certificate(&["example.org"]));
        let new = certificate(&["example.org"]);
        certificates.set("a", Arc::clone(&new));
        let chosen = certificates.choose(Some("example.org")).unwrap();
        assert_eq!(chosen.cert, new.chain());
        let first = certificate(&["first.test"]);
        certificates.set("first", Arc::clone(&first));
        let chosen = certificates.choose(Some("other.test")).unwrap();
        assert_eq!(chosen.cert, first.chain());
        certificates.remove("a");
        certificates.remove("first");
        assert!(certificates.choose(Some("example.org")).is_none());
    }
}
