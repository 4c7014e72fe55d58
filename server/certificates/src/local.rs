//! A certificate authority of this machine alone, for `localhost`.
//!
//! The authority is made once and kept in a folder. It can sign for `localhost` and loopback
//! addresses only (name constraints, RFC 5280 section 4.2.1.10), so that a stolen key is of no use
//! against other sites. Its certificates are short-lived and are renewed by a thread.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints,
};
use rustls::pki_types::PrivateKeyDer;

use crate::facts::CertificateFacts;
use crate::pem::{self, PemFiles};
use crate::resolver::Certificates;
use crate::served::ServedCertificate;
use crate::trust::{AUTHORITY, fingerprint, root_facts, subject};
use crate::{Error, private_file};

/// Files in the authority's folder.
const AUTHORITY_KEY: &str = "authority.key";
const LEAF: &str = "localhost.pem";
const LEAF_KEY: &str = "localhost.key";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Browsers accept at most 397 days from authorities of the web; a short life costs nothing here.
const LEAF_LIFETIME: Duration = DAY.saturating_mul(90);
const AUTHORITY_LIFETIME: Duration = DAY.saturating_mul(3650);
/// A certificate is valid from a little before it is made: clocks differ.
const BACKDATED: Duration = Duration::from_secs(60 * 60);
/// How often the thread looks whether a certificate is due. The machine may have slept.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The slot of the certificate among those that are shown.
const SLOT: &str = "localhost";

/// The authority: its key, its certificate, and the folder with both.
pub struct LocalAuthority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    replaces_another: bool,
}

impl LocalAuthority {
    /// Reads the authority from `folder`, or makes one there. Folder and files are for this user
    /// only. A certificate without its key is of no use: then there is a new authority too.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written, or a file in it is damaged. A damaged authority is not
    /// replaced, as browsers may trust it.
    pub fn open(folder: &Path, now: SystemTime) -> Result<Self, Error> {
        private_file::create_folder(folder)
            .map_err(|error| Error::of_file(folder, format!("cannot be made: {error}")))?;
        let _alone = lock(folder);
        let (path, key_path) = (folder.join(AUTHORITY), folder.join(AUTHORITY_KEY));
        let key = stored_key(&key_path)?;
        let facts = path.exists().then(|| root_facts(&path)).transpose()?;
        let has_key = |facts: &CertificateFacts| {
            let key = key.as_ref();
            key.is_some_and(|key| facts.public_key == key.public_key_raw())
        };
        let kept = facts.as_ref().filter(|facts| has_key(facts));
        let replaces_another = facts.is_some() && kept.is_none();
        if let Some(facts) = kept {
            check_lifetime(&path, facts, now)?;
        }
        let is_kept = kept.is_some();
        let key = match key {
            Some(key) => key,
            None => {
                let key = KeyPair::generate().map_err(failed)?;
                write(&key_path, &key.serialize_pem())?;
                key
            }
        };
        let params = authority_params(&key, now)?;
        if !is_kept {
            let made = params.self_signed(&key).map_err(failed)?;
            write(&path, &made.pem())?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            issuer: Issuer::new(params, key),
            replaces_another,
        })
    }

    /// True if the authority was made just now in place of one whose key was missing or another
    /// one, so that browsers that trusted the old one show a warning.
    #[must_use]
    pub fn replaces_another(&self) -> bool {
        self.replaces_another
    }

    /// The authority's certificate, which browsers must trust.
    #[must_use]
    pub fn certificate_path(&self) -> PathBuf {
        self.folder.join(AUTHORITY)
    }

    /// The certificate for `localhost`, `127.0.0.1` and `::1`: the stored one, or a new one for 90
    /// days if two thirds of the stored one's lifetime are over at `now`.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub fn certificate(&self, now: SystemTime) -> Result<ServedCertificate, Error> {
        let _alone = lock(&self.folder);
        let files = PemFiles {
            chain: self.folder.join(LEAF),
            key: self.folder.join(LEAF_KEY),
        };
        let is_ours = |stored: &ServedCertificate| stored.chain().get(1) == self.root().as_ref();
        match files.load(now) {
            Ok(stored) if now < stored.facts().two_thirds() && is_ours(&stored) => Ok(stored),
            // What is missing, damaged or old is made again: no client has to trust it by itself.
            _ => self.make(&files, now),
        }
    }

    fn root(&self) -> Option<rustls::pki_types::CertificateDer<'static>> {
        pem::read_certificates(&self.certificate_path())
            .ok()?
            .into_iter()
            .next()
    }

    fn make(&self, files: &PemFiles, now: SystemTime) -> Result<ServedCertificate, Error> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = common_name("localhost");
        params.not_before = (now - BACKDATED).into();
        params.not_after = (now + LEAF_LIFETIME).into();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let leaf = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let root = read(&self.certificate_path())?;
        write(&files.key, &key.serialize_pem())?;
        write(&files.chain, &format!("{}{root}", leaf.pem()))?;
        let mut chain = vec![leaf.der().clone()];
        chain.extend(self.root());
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        ServedCertificate::new(chain, &key)
    }

    /// Shows the certificate, and starts a thread that renews it. `report` is called on that thread
    /// with each failure.
    ///
    /// # Errors
    ///
    /// As [`Self::certificate`], or there are no threads.
    pub fn serve(
        self,
        certificates: Arc<Certificates>,
        report: impl Fn(&Error) + Send + 'static,
    ) -> Result<LocalRenewal, Error> {
        let shown = self.certificate(base_clock::wall())?;
        certificates.set(SLOT, Arc::new(shown));
        let (stop, stopped) = mpsc::channel::<()>();
        let renew = move || {
            while stopped.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                self.renew(&certificates, base_clock::wall(), &report);
            }
        };
        let thread = thread::Builder::new().name("local-authority".to_owned());
        let thread = thread.spawn(renew).map_err(failed)?;
        Ok(LocalRenewal {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn renew(&self, certificates: &Certificates, now: SystemTime, report: &impl Fn(&Error)) {
        match self.certificate(now) {
            Ok(new) => {
                let shown = certificates.get(SLOT);
                if shown.is_none_or(|shown| shown.chain() != new.chain()) {
                    certificates.set(SLOT, Arc::new(new));
                }
            }
            Err(error) => report(&error),
        }
    }
}

/// The thread that renews the certificate for `localhost`; dropping it ends the thread.
#[derive(Debug)]
pub struct LocalRenewal {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LocalRenewal {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed already.
            let _ = thread.join();
        }
    }
}

/// The authority's certificate, always made from its key in the same way, so that the issuer's name
/// and key identifier are known without reading the certificate.
fn authority_params(key: &KeyPair, now: SystemTime) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
    params.distinguished_name = common_name(&subject(&fingerprint(key.public_key_raw())));
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + AUTHORITY_LIFETIME).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let v4 = CidrSubnet::from_addr_prefix(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8);
    let v6 = CidrSubnet::from_addr_prefix(IpAddr::V6(Ipv6Addr::LOCALHOST), 128);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![
            GeneralSubtree::DnsName("localhost".to_owned()),
            GeneralSubtree::IpAddress(v4),
            GeneralSubtree::IpAddress(v6),
        ],
        excluded_subtrees: Vec::new(),
    });
    Ok(params)
}

/// Keeps other processes with the same folder from making an authority or a certificate at the
/// same time, until the result is dropped. Where the file system has no locks, a key that does not
/// fit is found by the next start.
fn lock(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// The key in a file; `None` if there is no such file.
fn stored_key(path: &Path) -> Result<Option<KeyPair>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => KeyPair::from_pem(&text)
            .map(Some)
            .map_err(|error| Error::of_file(path, format!("is damaged: {error}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::of_file(path, error)),
    }
}

fn check_lifetime(path: &Path, facts: &CertificateFacts, now: SystemTime) -> Result<(), Error> {
    if facts.not_after < now + LEAF_LIFETIME {
        return Err(Error::of_file(
            path,
            "the authority ends soon; remove its folder, then let browsers trust the new one",
        ));
    }
    Ok(())
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::of_file(path, error))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    private_file::replace(path, text.as_bytes())
        .map_err(|error| Error::of_file(path, format!("cannot be written: {error}")))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(format!("a certificate cannot be made: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use rcgen::{CertificateParams, KeyPair};
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{CertificateDer, UnixTime};

    use super::{DAY, LocalAuthority};
    use crate::CertificateName;

    #[test]
    fn the_authority_is_made_once_and_its_certificate_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("local");
        let now = base_clock::wall();
        let authority = LocalAuthority::open(&folder, now).unwrap();
        let root = std::fs::read(authority.certificate_path()).unwrap();
        let first = authority.certificate(now).unwrap();
        for name in ["localhost", "127.0.0.1", "::1"] {
            assert!(first.facts().is_for(&CertificateName::parse(name)));
        }
        assert!(first.facts().lifetime() < DAY * 397);

        let again = LocalAuthority::open(&folder, now).unwrap();
        assert_eq!(std::fs::read(again.certificate_path()).unwrap(), root);
        let stored = again.certificate(now + DAY * 59).unwrap();
        assert_eq!(stored.chain(), first.chain());
        let renewed = again.certificate(now + DAY * 61).unwrap();
        assert_ne!(renewed.chain()[0], first.chain()[0]);
        assert_eq!(renewed.chain()[1], first.chain()[1]);
        assert_eq!(renewed.facts().authority_key, first.facts().authority_key);

        let modes = std::fs::read_dir(&folder).unwrap();
        for entry in modes {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    /// Acts as a client that trusts the authority.
    fn verify(
        authority: &LocalAuthority,
        leaf: &CertificateDer<'_>,
        name: &str,
    ) -> Result<(), rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.root().unwrap()).unwrap();
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.into());
        let verifier = verifier.build().unwrap();
        let name = name.to_owned().try_into().unwrap();
        let now = base_clock::wall().duration_since(SystemTime::UNIX_EPOCH);
        let now = UnixTime::since_unix_epoch(now.unwrap());
        let checked = verifier.verify_server_cert(leaf, &[], &name, &[], now);
        checked.map(drop)
    }

    /// Signs with the authority's key for another site, which no client accepts.
    #[test]
    fn the_local_authority_cannot_sign_for_other_sites() {
        let folder = tempfile::tempdir().unwrap();
        let now = base_clock::wall();
        let authority = LocalAuthority::open(folder.path(), now).unwrap();
        for (name, is_accepted) in [
            ("localhost", true),
            ("a.localhost", true),
            ("127.0.0.2", true),
            ("example.org", false),
            ("192.0.2.1", false),
        ] {
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            let key = KeyPair::generate().unwrap();
            let leaf = params.signed_by(&key, &authority.issuer).unwrap();
            let checked = verify(&authority, leaf.der(), name);
            assert_eq!(checked.is_ok(), is_accepted, "{name}");
        }
    }

    #[test]
    fn a_damaged_authority_is_reported_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let now = base_clock::wall();
        LocalAuthority::open(folder.path(), now).unwrap();
        let key = folder.path().join("authority.key");
        std::fs::write(&key, "damaged").unwrap();
        let error = LocalAuthority::open(folder.path(), now).err().unwrap();
        assert!(error.to_string().contains("authority.key"), "{error}");
        assert_eq!(std::fs::read(&key).unwrap(), b"damaged");
    }

    #[test]
    fn a_lost_key_makes_a_new_authority() {
        let folder = tempfile::tempdir().unwrap();
        let now = base_clock::wall();
        let open = || LocalAuthority::open(folder.path(), now).unwrap();
        let first = open();
        assert!(!first.replaces_another());
        let old = first.certificate(now).unwrap();
        assert!(!open().replaces_another());
        // The second is what two starts at once could leave behind.
        let key = folder.path().join("authority.key");
        let other_key = KeyPair::generate().unwrap().serialize_pem();
        for other in [None, Some(other_key)] {
            match other {
                None => std::fs::remove_file(&key).unwrap(),
                Some(text) => std::fs::write(&key, text).unwrap(),
            }
            let authority = open();
            assert!(authority.replaces_another());
            let made = authority.certificate(now).unwrap();
            assert_ne!(made.chain(), old.chain());
            verify(&authority, &made.chain()[0], "localhost").unwrap();
            assert!(!open().replaces_another());
        }
    }

    #[test]
    fn starts_at_the_same_time_have_one_authority() {
        let folder = tempfile::tempdir().unwrap();
        let now = base_clock::wall();
        let roots = std::thread::scope(|scope| {
            let start = || {
                let authority = LocalAuthority::open(folder.path(), now).unwrap();
                let leaf = authority.certificate(now).unwrap();
                verify(&authority, &leaf.chain()[0], "localhost").unwrap();
                authority.root().unwrap()
            };
            let threads = [(); 8].map(|()| scope.spawn(start));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(roots.iter().all(|root| *root == roots[0]));
    }

    #[test]
    fn an_authority_that_ends_soon_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let now = base_clock::wall();
        LocalAuthority::open(folder.path(), now).unwrap();
        let later = now + DAY * 3600 + Duration::from_secs(1);
        let error = LocalAuthority::open(folder.path(), later).err().unwrap();
        assert!(error.to_string().contains("ends soon"), "{error}");
    }
}
