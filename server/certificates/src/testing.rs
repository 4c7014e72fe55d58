//! What several tests of this crate use.

use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;

use crate::served::ServedCertificate;

/// A self-signed certificate for these names.
pub(crate) fn certificate(names: &[&str]) -> Arc<ServedCertificate> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    Arc::new(ServedCertificate::new(vec![made.cert.der().clone()], &key).unwrap())
}
