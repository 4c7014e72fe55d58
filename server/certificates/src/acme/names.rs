//! Names in the settings, checked, and names in the storage.

use crate::Error;
use crate::facts::CertificateName;

/// The part of a storage's names that stands for a directory, such as
/// `acme-v02.api.letsencrypt.org-directory`. Certificates of a test authority are never taken for
/// others.
pub(super) fn folder_of(directory: &str) -> Result<String, Error> {
    let bare = directory
        .strip_prefix("https://")
        .filter(|bare| !bare.is_empty());
    let bare = bare.ok_or_else(|| {
        Error::new(format!(
            "acme_directory is {directory:?}; it must be an https:// URL"
        ))
    })?;
    let part = bare.chars().map(|c| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '.') => c,
        _ => '-',
    });
    let part: String = part.collect();
    Ok(part.trim_matches(['-', '.']).to_owned())
}

/// A name that an authority can prove by the challenges of this server.
pub(super) fn checked_name(text: &str) -> Result<CertificateName, Error> {
    let name = CertificateName::parse(text);
    let problem = match &name {
        CertificateName::Address(_) => return Ok(name),
        CertificateName::Host(host) if host.starts_with("*.") => {
            "a certificate for a wildcard needs a challenge in DNS, which this server cannot \
             answer; give the certificate as files, or name each host"
        }
        CertificateName::Host(host) => match rustls::pki_types::DnsName::try_from(host.as_str()) {
            Ok(_) if host.contains('.') => return Ok(name),
            Ok(_) => "no authority issues certificates for a name without a dot",
            Err(_) => "this is no name of a host",
        },
    };
    Err(Error::new(format!("{text:?}: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::{checked_name, folder_of};

    #[test]
    fn a_directory_has_a_folder_of_its_own() {
        let folder = folder_of(crate::LETS_ENCRYPT).unwrap();
        assert_eq!(folder, "acme-v02.api.letsencrypt.org-directory");
        assert_eq!(
            folder_of("https://127.0.0.1:14000/Dir/").unwrap(),
            "127.0.0.1-14000-dir"
        );
        assert!(folder_of("http://example.org/").is_err());
    }

    #[test]
    fn names_that_cannot_be_proven_are_refused_at_the_start() {
        for name in ["example.org", "EXAMPLE.org", "192.0.2.1", "[2001:db8::1]"] {
            checked_name(name).unwrap();
        }
        for name in ["*.example.org", "localhost", "", "a b.org", "../x.org"] {
            assert!(checked_name(name).is_err(), "{name:?}");
        }
    }
}
