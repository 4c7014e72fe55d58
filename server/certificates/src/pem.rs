//! Certificates and keys in PEM files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Error;
use crate::facts::{CertificateFacts, date};
use crate::resolver::Certificates;
use crate::served::ServedCertificate;
use crate::trust::shell_word;

/// A certificate chain and its key, each in a PEM file. Both may be the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemFiles {
    /// The server's certificate, then the authorities between it and the root.
    pub chain: PathBuf,
    /// The private key: PKCS#8, SEC1 or PKCS#1, not encrypted.
    pub key: PathBuf,
}

impl PemFiles {
    /// Reads both files, and refuses a certificate that is not valid at `now`.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], or the certificate is not valid.
    pub fn load(&self, now: SystemTime) -> Result<ServedCertificate, Error> {
        let served = self.read()?;
        served
            .check_validity(now)
            .map_err(|error| Error::of_file(&self.chain, error))?;
        Ok(served)
    }

    /// Reads both files. The certificate may have expired.
    ///
    /// # Errors
    ///
    /// A sentence that names the file and what is wrong with it: it cannot be read, is empty, has
    /// no certificate or key, is encrypted; the chain is not in order; the key belongs to another
    /// certificate.
    pub fn read(&self) -> Result<ServedCertificate, Error> {
        let chain = read_certificates(&self.chain)?;
        let key = read_key(&self.key)?;
        let served = ServedCertificate::new(chain.clone(), &key);
        let served = served.map_err(|error| self.explain(&error, &chain, &key))?;
        if let Some(wrong) = wrong_order(&chain) {
            return Err(Error::of_file(&self.chain, wrong));
        }
        Ok(served)
    }

    /// Returns the problem of the certificate's validity that the operator must solve, if that is
    /// due at `now`.
    #[must_use]
    pub fn validity_problem(
        &self,
        served: &ServedCertificate,
        now: SystemTime,
    ) -> Option<ValidityProblem> {
        let facts = served.facts();
        let is_valid = served.check_validity(now);
        if is_valid.is_ok() && now < facts.two_thirds() {
            return None;
        }
        let sentence = match &is_valid {
            Err(error) => format!("{error}; visitors see a warning"),
            Ok(()) => {
                let left = facts.not_after.duration_since(now).unwrap_or_default();
                let days = left.as_secs() / (24 * 60 * 60);
                format!(
                    "the certificate ends on {}, in {days} days",
                    date(facts.not_after)
                )
            }
        };
        let chain = self.chain.display();
        Some(ValidityProblem {
            is_valid: is_valid.is_ok(),
            sentence: format!("{chain}: {sentence}; replace the file, then send SIGHUP"),
        })
    }

    /// Says which file is to blame.
    fn explain(
        &self,
        error: &Error,
        chain: &[CertificateDer<'static>],
        key: &PrivateKeyDer<'static>,
    ) -> Error {
        let belongs = |certificate: &CertificateDer<'static>| {
            ServedCertificate::new(vec![certificate.clone()], key).is_ok()
        };
        if let Some(at) = chain.iter().skip(1).position(belongs) {
            let place = at + 2;
            return Error::of_file(
                &self.chain,
                format!(
                    "the certificates are in the wrong order: the key in {} belongs to certificate \
                     {place}, which must be the first",
                    self.key.display()
                ),
            );
        }
        let both = format!("{error} in {}", self.chain.display());
        Error::of_file(&self.key, both)
    }
}

/// A certificate that has expired or soon will, or that is not valid yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidityProblem {
    /// True if clients still accept the certificate.
    pub is_valid: bool,
    /// Sentence that names the fault, the file and the remedy.
    pub sentence: String,
}

/// Certificates from files, which are read again when the caller says so.
#[derive(Debug)]
pub struct FileCertificates {
    files: Vec<PemFiles>,
    certificates: Arc<Certificates>,
}

impl FileCertificates {
    /// Reads all files and shows their certificates, also one that has expired: a visitor who sees
    /// a warning has more than one whose connection fails, and the other hosts are served.
    ///
    /// # Errors
    ///
    /// As [`PemFiles::read`], for the first file with a fault; then none is shown.
    pub fn open(files: Vec<PemFiles>, certificates: Arc<Certificates>) -> Result<Self, Error> {
        let loaded: Result<Vec<_>, _> = files.iter().map(PemFiles::read).collect();
        for (files, served) in files.iter().zip(loaded?) {
            certificates.set(&slot(files), Arc::new(served));
        }
        Ok(Self {
            files,
            certificates,
        })
    }

    /// Returns the problems that the operator must solve, at `now`, for the validity of the
    /// certificates that are shown.
    #[must_use]
    pub fn validity_problems(&self, now: SystemTime) -> Vec<ValidityProblem> {
        let problem = |files: &PemFiles| {
            let shown = self.certificates.get(&slot(files))?;
            files.validity_problem(&shown, now)
        };
        self.files.iter().filter_map(problem).collect()
    }

    /// Reads all files again and shows what is new; the number of certificates that changed. A file
    /// with a fault keeps its old certificate in use, and does not hold up the others.
    ///
    /// # Errors
    ///
    /// One for each pair of files with a fault, as [`PemFiles::load`].
    pub fn reload(&self, now: SystemTime) -> Result<usize, Vec<Error>> {
        let mut changed = 0;
        let mut errors = Vec::new();
        for files in &self.files {
            match files.load(now) {
                Ok(served) => {
                    let old = self.certificates.get(&slot(files));
                    if old.is_none_or(|old| old.chain() != served.chain()) {
                        self.certificates.set(&slot(files), Arc::new(served));
                        changed += 1;
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(changed)
        } else {
            Err(errors)
        }
    }
}

fn slot(files: &PemFiles) -> String {
    format!("file {}", files.chain.display())
}

/// All certificates of a file, at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| damaged(path, &error))?;
    if !found.is_empty() {
        return Ok(found);
    }
    let what = if PrivateKeyDer::from_pem_slice(&text).is_ok() {
        "the file has a private key but no certificate; are certificate and key swapped?".to_owned()
    } else if is_der(&text) {
        not_pem(path, "x509", "crt.pem")
    } else {
        "the file has no certificate (no line BEGIN CERTIFICATE)".to_owned()
    };
    Err(Error::of_file(path, what))
}

/// A private key and the chain of its certificate in one text.
pub(crate) fn parse_bundle(text: &[u8]) -> Result<ServedCertificate, Error> {
    let damaged = |error: pem::Error| Error::new(format!("the PEM text is damaged: {error}"));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let key = PrivateKeyDer::from_pem_slice(text).map_err(damaged)?;
    ServedCertificate::new(chain.map_err(damaged)?, &key)
}

/// The first private key of a file.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let text = read(path)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(_) if has(&text, b"Proc-Type: 4,ENCRYPTED") => Err(encrypted(path)),
        Ok(key) => Ok(key),
        Err(_) if has(&text, b"BEGIN ENCRYPTED PRIVATE KEY") => Err(encrypted(path)),
        Err(pem::Error::NoItemsFound) if has(&text, b"BEGIN CERTIFICATE") => Err(Error::of_file(
            path,
            "the file has a certificate but no private key; are certificate and key swapped?",
        )),
        Err(pem::Error::NoItemsFound) if is_der(&text) => {
            Err(Error::of_file(path, not_pem(path, "pkey", "key.pem")))
        }
        Err(pem::Error::NoItemsFound) => Err(Error::of_file(
            path,
            "the file has no private key (no line BEGIN PRIVATE KEY)",
        )),
        Err(error) => Err(damaged(path, &error)),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let text = fs::read(path).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::PermissionDenied => {
                "; the user that runs the server must be able to read it"
            }
            _ => "",
        };
        Error::of_file(path, format!("the file cannot be read: {error}{advice}"))
    })?;
    if text.trim_ascii().is_empty() {
        return Err(Error::of_file(path, "the file is empty"));
    }
    Ok(text)
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// True if the text begins as a sequence in DER does.
fn is_der(text: &[u8]) -> bool {
    text.first() == Some(&0x30)
}

/// Returns the message for a file in DER, with the command that makes one beside it in PEM.
fn not_pem(path: &Path, command: &str, extension: &str) -> String {
    let (from, to) = (
        shell_word(path),
        shell_word(&path.with_extension(extension)),
    );
    format!(
        "the file is DER, not PEM; `openssl {command} -inform der -in {from} -out {to}` converts it"
    )
}

fn encrypted(path: &Path) -> Error {
    let what = "the private key is encrypted with a passphrase; `openssl pkey` writes it without";
    Error::of_file(path, what)
}

fn damaged(path: &Path, error: &pem::Error) -> Error {
    Error::of_file(path, format!("the PEM text is damaged: {error}"))
}

/// Returns the fault in the order of a chain: each certificate must be issued by the next one.
fn wrong_order(chain: &[CertificateDer<'static>]) -> Option<String> {
    let facts: Vec<_> = chain.iter().map(CertificateFacts::read).collect();
    if let Some(at) = facts.iter().position(Option::is_none) {
        return Some(format!("certificate {} is damaged", at + 1));
    }
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    let at = facts
        .windows(2)
        .position(|pair| pair[0].issuer != pair[1].subject)?;
    let (this, next) = (at + 1, at + 2);
    Some(format!(
        "the certificates are in the wrong order: certificate {next} did not issue certificate \
         {this}; the server's own comes first, then the one that issued it"
    ))
}
