//! Answers to the questions by which an authority proves that a name leads to this server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::facts::CertificateName;

/// A challenge as nodes share it. Who knows it can answer it, and no more: the account's key is
/// needed to ask for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedChallenge {
    /// The host or the address that is proven.
    pub(crate) name: String,
    /// The token, which HTTP-01 has in its path.
    pub(crate) token: String,
    /// Token and thumbprint of the account's key (RFC 8555 section 8.1).
    pub(crate) key_authorization: String,
}

/// Challenges by what an authority asks for.
#[derive(Default)]
pub(crate) struct ChallengeTable {
    tls: HashMap<String, Arc<CertifiedKey>>,
    http: HashMap<String, String>,
}

impl ChallengeTable {
    /// Makes the answers to these challenges, by TLS-ALPN-01 and by HTTP-01.
    pub(crate) fn of(challenges: &[PublishedChallenge]) -> Result<Self, Error> {
        let mut table = Self::default();
        for challenge in challenges {
            let name = CertificateName::parse(&challenge.name);
            let answer = tls_answer(&challenge.name, &challenge.key_authorization)?;
            table.tls.insert(server_name(&name), answer);
            let answer = challenge.key_authorization.clone();
            table.http.insert(challenge.token.clone(), answer);
        }
        Ok(table)
    }

    /// The certificate that proves a name by TLS-ALPN-01; `None` if no challenge is under way.
    pub(crate) fn tls(&self, server_name: &str) -> Option<Arc<CertifiedKey>> {
        self.tls.get(server_name).cloned()
    }

    /// The body that proves a name by HTTP-01.
    pub(crate) fn http(&self, token: &str) -> Option<&str> {
        self.http.get(token).map(String::as_str)
    }
}

/// A self-signed certificate for the name with the digest of the key authorization in the extension
/// `acmeIdentifier` (RFC 8737 section 3).
fn tls_answer(name: &str, key_authorization: &str) -> Result<Arc<CertifiedKey>, Error> {
    let failed = |error: rcgen::Error| {
        Error::new(format!("a challenge's certificate cannot be made: {error}"))
    };
    let mut params = CertificateParams::new([name.to_owned()]).map_err(failed)?;
    let digest = digest(&SHA256, key_authorization.as_bytes());
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let key = any_supported_type(&key)
        .map_err(|error| Error::new(format!("a challenge's key cannot be used: {error}")))?;
    // The library that compares certificate and key refuses the critical extension.
    Ok(Arc::new(CertifiedKey::new(
        vec![certificate.der().clone()],
        key,
    )))
}

/// The SNI that an authority sends: an address by its name for reverse look-ups (RFC 8738 section
/// 6).
fn server_name(name: &CertificateName) -> String {
    match name {
        CertificateName::Host(host) => host.clone(),
        CertificateName::Address(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        CertificateName::Address(IpAddr::V6(address)) => {
            let octets = address.octets();
            let digits = octets
                .iter()
                .rev()
                .flat_map(|octet| [octet & 15, octet >> 4]);
            let labels: Vec<String> = digits.map(|digit| format!("{digit:x}")).collect();
            format!("{}.ip6.arpa", labels.join("."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ChallengeTable, PublishedChallenge, server_name};
    use crate::{CertificateFacts, CertificateName};

    #[test]
    fn a_challenge_is_answered_by_tls_and_by_http() {
        let challenge = PublishedChallenge {
            name: "example.org".to_owned(),
            token: "token".to_owned(),
            key_authorization: "token.thumb".to_owned(),
        };
        let table = ChallengeTable::of(&[challenge]).unwrap();
        assert_eq!(table.http("token"), Some("token.thumb"));
        assert_eq!(table.http("other"), None);
        let answer = table.tls("example.org").unwrap();
        let facts = CertificateFacts::read(&answer.cert[0]).unwrap();
        assert_eq!(facts.names, [CertificateName::parse("example.org")]);
        // 1.3.6.1.5.5.7.1.31, critical.
        let identifier = [6, 8, 0x2b, 6, 1, 5, 5, 7, 1, 31, 1, 1, 0xff];
        let der = &answer.cert[0];
        assert!(der.windows(identifier.len()).any(|part| part == identifier));
        assert!(table.tls("other.org").is_none());
    }

    #[test]
    fn an_address_is_asked_for_by_its_reverse_name() {
        let reverse = |text| server_name(&CertificateName::parse(text));
        assert_eq!(reverse("192.0.2.7"), "7.2.0.192.in-addr.arpa");
        assert_eq!(
            reverse("[2001:db8::1]"),
            "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
    }
}
