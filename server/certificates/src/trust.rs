//! How a person makes browsers trust the local authority.

use std::fs;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};

use crate::facts::CertificateFacts;
use crate::{Error, pem, private_file};

/// The file of an authority's certificate in its folder.
pub(crate) const AUTHORITY: &str = "authority.pem";
/// The file that names the port on which the authority was last used, and the authority's key:
/// `8443 0123abcd`.
const SERVED: &str = "served";

/// Certificate of a local authority, which browsers must trust.
#[derive(Clone, Debug)]
pub struct TrustedAuthority {
    folder: PathBuf,
    fingerprint: String,
}

impl TrustedAuthority {
    /// The authority that is kept in `folder`; `None` if none was made there yet.
    ///
    /// # Errors
    ///
    /// Its certificate cannot be read.
    pub fn in_folder(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(AUTHORITY);
        if !path.exists() {
            return Ok(None);
        }
        let facts = root_facts(&path)?;
        Ok(Some(Self {
            folder: folder.to_owned(),
            fingerprint: fingerprint(&facts.public_key),
        }))
    }

    /// The port of the last server that used this authority; `None` if no server has used it yet.
    #[must_use]
    pub fn served_port(&self) -> Option<u16> {
        let text = fs::read_to_string(self.folder.join(SERVED)).ok()?;
        let (port, fingerprint) = text.trim().split_once(' ')?;
        let is_of_this = fingerprint == self.fingerprint;
        port.parse().ok().filter(|_| is_of_this)
    }

    /// Remembers that a server on `port` uses this authority.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub fn note_served(&self, port: u16) -> Result<(), Error> {
        if self.served_port() == Some(port) {
            return Ok(());
        }
        let path = self.folder.join(SERVED);
        let text = format!("{port} {}\n", self.fingerprint);
        private_file::replace(&path, text.as_bytes())
            .map_err(|error| Error::of_file(&path, format!("cannot be written: {error}")))
    }

    /// Lines for a terminal: how Chromium, Firefox and the system's own programs come to trust this
    /// authority, for a server on `port`, and how they no longer do.
    #[must_use]
    pub fn instructions(&self, port: u16) -> Vec<String> {
        let path = shell_word(&self.folder.join(AUTHORITY));
        // Each site has an authority of its own, and the stores have one entry for each name.
        let name = format!("'{}'", subject(&self.fingerprint));
        let file = format!("millpond-local-{}", self.fingerprint);
        let lines = [
            "Browsers do not know this authority yet. It can sign for localhost only.".to_owned(),
            format!(
                "Once this command has run, Chromium and Chrome show https://localhost:{port} without a warning"
            ),
            "(certutil is in the package libnss3-tools or nss-tools):".to_owned(),
            format!(
                "  mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n {name} -i {path}"
            ),
            "Firefox, with its profile's folder (about:profiles shows it):".to_owned(),
            format!("  certutil -d sql:PROFILE -A -t C,, -n {name} -i {path}"),
            "curl and other programs, on Debian and Ubuntu:".to_owned(),
            format!("  sudo install -m 644 {path} /usr/local/share/ca-certificates/{file}.crt"),
            "  sudo update-ca-certificates".to_owned(),
            "curl and other programs, on Fedora:".to_owned(),
            format!("  sudo install -m 644 {path} /etc/pki/ca-trust/source/anchors/{file}.pem"),
            "  sudo update-ca-trust".to_owned(),
            "curl, without any of this:".to_owned(),
            format!("  curl --cacert {path} https://localhost:{port}/"),
            "No longer to trust it, in Chromium and Chrome (Firefox: with the profile's folder):"
                .to_owned(),
            format!("  certutil -d sql:$HOME/.pki/nssdb -D -n {name}"),
            format!("In other programs: remove the file {file} and update again."),
        ];
        lines.into()
    }
}

/// Reads the facts of the certificate of an authority.
pub(crate) fn root_facts(path: &Path) -> Result<CertificateFacts, Error> {
    let certificates = pem::read_certificates(path)?;
    let facts = certificates.first().and_then(CertificateFacts::read);
    facts.ok_or_else(|| Error::of_file(path, "the certificate is damaged"))
}

/// Returns the text that tells local authorities apart: the beginning of the digest of the public
/// key.
pub(crate) fn fingerprint(public_key: &[u8]) -> String {
    let digest = digest(&SHA256, public_key);
    let octets = &digest.as_ref()[..4];
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The common name of the authority with this fingerprint, also its name in browsers.
pub(crate) fn subject(fingerprint: &str) -> String {
    format!("Millpond local authority {fingerprint}")
}

/// A path as one word of a shell's command.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use crate::{LocalAuthority, TrustedAuthority};

    #[test]
    fn each_command_names_the_file_as_one_word() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("my site's");
        LocalAuthority::open(&folder, base_clock::wall()).unwrap();
        let trusted = TrustedAuthority::in_folder(&folder).unwrap().unwrap();
        let lines = trusted.instructions(8443);
        let commands = lines.iter().filter(|line| line.contains(".pem'"));
        assert!(commands.clone().count() == 5, "{lines:#?}");
        for command in commands {
            assert!(command.contains(r"my site'\''s/authority.pem'"));
        }
    }

    #[test]
    fn each_authority_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|site| {
            let folder = folder.path().join(site);
            assert!(TrustedAuthority::in_folder(&folder).unwrap().is_none());
            LocalAuthority::open(&folder, base_clock::wall()).unwrap();
            TrustedAuthority::in_folder(&folder).unwrap().unwrap()
        });
        for part in ["-A", "-D", "/usr/local", "/etc/pki"] {
            let command = |trusted: &TrustedAuthority| {
                let lines = trusted.instructions(8443);
                let line = lines.iter().find(|line| line.contains(part)).unwrap();
                line.replace("/one/", "/other/")
            };
            assert_ne!(command(&one), command(&other));
        }
    }

    #[test]
    fn the_port_is_that_of_the_last_server_with_this_authority() {
        let folder = tempfile::tempdir().unwrap();
        LocalAuthority::open(folder.path(), base_clock::wall()).unwrap();
        let trusted = || TrustedAuthority::in_folder(folder.path()).unwrap().unwrap();
        assert_eq!(trusted().served_port(), None);
        trusted().note_served(9443).unwrap();
        assert_eq!(trusted().served_port(), Some(9443));
        for name in ["authority.pem", "authority.key"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        LocalAuthority::open(folder.path(), base_clock::wall()).unwrap();
        assert_eq!(trusted().served_port(), None, "browsers do not know it");
    }
}
