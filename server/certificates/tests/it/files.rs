//! PEM files: every mistake has its sentence, and a broken file does not stop what is served.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_certificates::{Certificates, FileCertificates, PemFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256};

use crate::support::pem_text;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the message for these two texts.
    fn error(&self, chain: &str, key: &str) -> String {
        let files = PemFiles {
            chain: self.write("chain.pem", chain),
            key: self.write("key.pem", key),
        };
        files.load(base_clock::wall()).unwrap_err().to_string()
    }
}

/// An authority, a certificate of it in PEM, and the key.
struct Issued {
    authority: String,
    leaf: String,
    key: String,
}

fn issue(change: impl FnOnce(&mut CertificateParams)) -> Issued {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(vec!["one.test".to_owned()]).unwrap();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, "one.test");
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, &authority).unwrap();
    Issued {
        authority: authority.pem(),
        leaf: leaf.pem(),
        key: key.serialize_pem(),
    }
}

#[test]
fn each_mistake_has_its_sentence() {
    let folder = Folder::new();
    let good = issue(|_| ());
    let other = issue(|_| ());
    let (leaf, key) = (good.leaf.as_str(), good.key.as_str());
    let reversed = format!("{}{leaf}", good.authority);
    let stranger = format!("{leaf}{}", other.leaf);
    let cut = &leaf[..leaf.len() / 2];
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let cases = [
        ("", key, "chain.pem: the file is empty"),
        (leaf, " \n", "key.pem: the file is empty"),
        ("hello", key, "chain.pem: the file has no certificate"),
        (leaf, "hello", "key.pem: the file has no private key"),
        (key, leaf, "are certificate and key swapped?"),
        (
            leaf,
            leaf,
            "key.pem: the file has a certificate but no private key",
        ),
        (cut, key, "chain.pem: the PEM text is damaged"),
        (leaf, encrypted, "key.pem: the private key is encrypted"),
        (
            leaf,
            &other.key,
            "key.pem: the private key does not belong to the certificate in",
        ),
        (
            &reversed,
            key,
            "belongs to certificate 2, which must be the first",
        ),
        (&stranger, key, "certificate 2 did not issue certificate 1"),
    ];
    for (chain, key, part) in cases {
        let error = folder.error(chain, key);
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    let der = PemFiles {
        chain: folder.0.path().join("it's.der"),
        key: folder.write("key.pem", key),
    };
    std::fs::write(&der.chain, [0x30, 0x82, 1, 0]).unwrap();
    let error = der.read().unwrap_err().to_string();
    let folder_name = folder.0.path().display();
    let command = format!(
        r"`openssl x509 -inform der -in '{folder_name}/it'\''s.der' -out '{folder_name}/it'\''s.crt.pem'`"
    );
    assert!(error.contains(&command), "{error}");
    let missing = PemFiles {
        chain: folder.0.path().join("missing.pem"),
        key: folder.0.path().join("missing.key"),
    };
    let error = missing.load(base_clock::wall()).unwrap_err().to_string();
    assert!(
        error.contains("missing.pem: the file cannot be read"),
        "{error}"
    );
}

#[test]
fn a_certificate_out_of_its_time_is_refused() {
    let folder = Folder::new();
    let old = issue(|params| params.not_after = rcgen::date_time_ymd(2001, 2, 3));
    let error = folder.error(&old.leaf, &old.key);
    assert!(error.contains("expired on 2001-02-03 00:00 UTC"), "{error}");
    let early = issue(|params| {
        params.not_before = rcgen::date_time_ymd(4000, 1, 1);
        params.not_after = rcgen::date_time_ymd(4001, 1, 1);
    });
    let error = folder.error(&early.leaf, &early.key);
    assert!(error.contains("not valid before 4000-01-01"), "{error}");
}

/// PKCS#8 is what the other tests use.
#[test]
fn keys_in_all_forms_are_read() {
    use rustls::pki_types::pem::PemObject as _;
    let folder = Folder::new();
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    let ec = KeyPair::generate().unwrap();
    for (key, heading) in [(&rsa, "RSA PRIVATE KEY"), (&ec, "EC PRIVATE KEY")] {
        let params = CertificateParams::new(vec!["one.test".to_owned()]).unwrap();
        let leaf = params.self_signed(key).unwrap();
        // The older forms are what PKCS#8 has in its octet string.
        let der = key.serialize_der();
        let inner = inner_key(&der);
        let pem = pem_text(heading, inner);
        assert!(rustls::pki_types::PrivateKeyDer::from_pem_slice(pem.as_bytes()).is_ok());
        let files = PemFiles {
            chain: folder.write("chain.pem", &leaf.pem()),
            key: folder.write("key.pem", &pem),
        };
        let loaded = files.load(base_clock::wall());
        loaded.unwrap_or_else(|error| panic!("{heading}: {error}"));
    }
}

/// The content of the last octet string before the end of a PKCS#8 key: version, algorithm, key.
fn inner_key(pkcs8: &[u8]) -> &[u8] {
    fn element(bytes: &[u8]) -> (u8, &[u8], &[u8]) {
        let (start, length) = match bytes[1] {
            short @ ..=0x7f => (2, usize::from(short)),
            0x81 => (3, usize::from(bytes[2])),
            _ => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
        };
        (
            bytes[0],
            &bytes[start..start + length],
            &bytes[start + length..],
        )
    }
    let (_, content, _) = element(pkcs8);
    let (_, _, rest) = element(content);
    let (_, _, rest) = element(rest);
    let (tag, key, _) = element(rest);
    assert_eq!(tag, 4);
    key
}

#[test]
fn a_reload_shows_what_is_new_and_keeps_what_is_broken() {
    let folder = Folder::new();
    let now = base_clock::wall();
    let pairs = ["a", "b"].map(|name| PemFiles {
        chain: folder.0.path().join(format!("{name}.pem")),
        key: folder.0.path().join(format!("{name}.key")),
    });
    let put = |files: &PemFiles, issued: &Issued| {
        std::fs::write(&files.chain, &issued.leaf).unwrap();
        std::fs::write(&files.key, &issued.key).unwrap();
    };
    let [a, b] = &pairs;
    put(a, &issue(|_| ()));
    put(b, &issue(|_| ()));
    let certificates = Arc::new(Certificates::new());
    let files = FileCertificates::open(pairs.to_vec(), Arc::clone(&certificates)).unwrap();
    assert_eq!(files.reload(now), Ok(0));
    let shown = |path: &Path| {
        let slot = format!("file {}", path.display());
        certificates.get(&slot).unwrap().chain()[0].clone()
    };
    let (old_a, old_b) = (shown(&a.chain), shown(&b.chain));

    // A new certificate whose key is not there yet.
    let new = issue(|_| ());
    std::fs::write(&a.chain, &new.leaf).unwrap();
    put(b, &issue(|_| ()));
    let errors = files.reload(now).unwrap_err();
    assert!(
        errors.len() == 1 && errors[0].to_string().contains("a.key"),
        "{errors:?}"
    );
    assert_eq!(shown(&a.chain), old_a);
    assert_ne!(shown(&b.chain), old_b);

    std::fs::write(&a.key, &new.key).unwrap();
    assert_eq!(files.reload(now), Ok(1));
    assert_ne!(shown(&a.chain), old_a);
}

#[test]
fn an_expired_certificate_is_shown_and_reported() {
    let folder = Folder::new();
    let good = issue(|params| {
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
    });
    let files = PemFiles {
        chain: folder.write("a.pem", &good.leaf),
        key: folder.write("a.key", &good.key),
    };
    let certificates = Arc::new(Certificates::new());
    let opened = FileCertificates::open(vec![files], Arc::clone(&certificates)).unwrap();
    let problem = |year, month, day| {
        let now = rcgen::date_time_ymd(year, month, day).into();
        let mut problems = opened.validity_problems(now).into_iter();
        problems
            .next()
            .map(|found| (found.is_valid, found.sentence))
    };
    assert_eq!(problem(2026, 3, 1), None, "two thirds are not over");
    let (is_valid, soon) = problem(2026, 3, 3).unwrap();
    assert!(is_valid, "{soon}");
    assert!(
        soon.contains("a.pem: the certificate ends on 2026-04-01 00:00 UTC, in 29 days"),
        "{soon}"
    );
    for (year, part) in [(2025, "not valid before"), (2027, "expired on 2026-04-01")] {
        let (is_valid, sentence) = problem(year, 1, 1).unwrap();
        assert!(!is_valid && sentence.contains(part), "{sentence}");
    }
    // A file that is read again must be better than that.
    let later = rcgen::date_time_ymd(2027, 1, 1).into();
    assert!(opened.reload(later).is_err());
    assert!(
        certificates
            .get(&format!("file {}", folder.0.path().join("a.pem").display()))
            .is_some()
    );
}

#[test]
fn nothing_is_shown_if_one_file_is_wrong_at_the_start() {
    let folder = Folder::new();
    let good = issue(|_| ());
    let pairs = ["a", "b"].map(|name| PemFiles {
        chain: folder.write(&format!("{name}.pem"), &good.leaf),
        key: folder.write(&format!("{name}.key"), &good.key),
    });
    std::fs::write(&pairs[1].key, &issue(|_| ()).key).unwrap();
    let certificates = Arc::new(Certificates::new());
    let opened = FileCertificates::open(pairs.to_vec(), Arc::clone(&certificates));
    assert!(opened.is_err());
    assert_eq!(format!("{certificates:?}"), "[]");
}
