//! What a certificate says of itself (RFC 5280 section 4).

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

use crate::der::{DerElement, DerReader};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version, and the extensions: constructed context tags 0 and 3.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Kinds of name in a subjectAltName (RFC 5280 section 4.2.1.6).
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// `keyIdentifier` in an authorityKeyIdentifier (section 4.2.1.1).
const KEY_IDENTIFIER: u8 = 0x80;

/// 2.5.29.17 and 2.5.29.35, the content octets of their object identifiers.
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];
const AUTHORITY_KEY_IDENTIFIER: [u8; 3] = [0x55, 0x1d, 0x23];

/// A name that a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CertificateName {
    /// A host, in lower case; `*.` at the beginning stands for any one label.
    Host(String),
    /// An address.
    Address(IpAddr),
}

impl CertificateName {
    /// A host or an address, as it is written in settings.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        match bare.unwrap_or(text).parse() {
            Ok(address) => Self::Address(address),
            Err(_) => Self::Host(text.trim_end_matches('.').to_ascii_lowercase()),
        }
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => formatter.write_str(host),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

/// Facts that a certificate says of itself. The signature is not checked: the certificate is the
/// server's own.
#[derive(Clone, Debug)]
pub struct CertificateFacts {
    /// The names of the subjectAltName extension. Common names are not looked at (RFC 9110
    /// section 4.3.4).
    pub names: Vec<CertificateName>,
    /// The first moment at which the certificate is valid.
    pub not_before: SystemTime,
    /// The last moment at which the certificate is valid.
    pub not_after: SystemTime,
    /// The content octets of the serial number.
    pub(crate) serial: Vec<u8>,
    /// The key identifier of the authority, which ARI asks for (RFC 9773 section 4.1).
    pub(crate) authority_key: Option<Vec<u8>>,
    /// Issuer and subject as they are encoded, to compare.
    pub(crate) issuer: Vec<u8>,
    pub(crate) subject: Vec<u8>,
    /// The octets of the public key, without its algorithm.
    pub(crate) public_key: Vec<u8>,
}

impl CertificateFacts {
    /// Reads a certificate; `None` if the bytes are no X.509 certificate.
    #[must_use]
    pub fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let mut outer = DerReader::new(certificate).expect(SEQUENCE)?.reader();
        let mut fields = outer.expect(SEQUENCE)?.reader();
        fields.optional(VERSION);
        let serial = fields.expect(INTEGER)?.content.to_vec();
        let _algorithm = fields.expect(SEQUENCE)?;
        let issuer = fields.expect(SEQUENCE)?.whole.to_vec();
        let mut validity = fields.expect(SEQUENCE)?.reader();
        let subject = fields.expect(SEQUENCE)?.whole.to_vec();
        let mut public_key = fields.expect(SEQUENCE)?.reader();
        let _algorithm = public_key.expect(SEQUENCE)?;
        // The first octet counts the bits that the last one lacks: none.
        let (_, public_key) = public_key.expect(BIT_STRING)?.content.split_first()?;
        let mut facts = Self {
            names: Vec::new(),
            not_before: moment(&validity.next()?)?,
            not_after: moment(&validity.next()?)?,
            serial,
            authority_key: None,
            issuer,
            subject,
            public_key: public_key.to_vec(),
        };
        while let Some(field) = fields.next() {
            if field.tag == EXTENSIONS {
                facts.read_extensions(&field)?;
            }
        }
        Some(facts)
    }

    fn read_extensions(&mut self, field: &DerElement<'_>) -> Option<()> {
        let mut extensions = field.reader().expect(SEQUENCE)?.reader();
        while let Some(extension) = extensions.next() {
            let mut parts = extension.reader();
            let identifier = parts.expect(OBJECT_IDENTIFIER)?.content;
            // Between the two there may be a boolean: whether the extension is critical.
            let value =
                std::iter::from_fn(|| parts.next()).find(|part| part.tag == OCTET_STRING)?;
            let within = || value.reader().expect(SEQUENCE);
            if identifier == SUBJECT_ALT_NAME {
                let mut names = within()?.reader();
                self.names = std::iter::from_fn(|| names.next())
                    .filter_map(|name| name_of(&name))
                    .collect();
            } else if identifier == AUTHORITY_KEY_IDENTIFIER {
                let key = within()?.reader().optional(KEY_IDENTIFIER);
                self.authority_key = key.map(|key| key.content.to_vec());
            }
        }
        Some(())
    }

    /// True if the certificate is for this name, by itself or by a wildcard.
    #[must_use]
    pub fn is_for(&self, name: &CertificateName) -> bool {
        self.names.iter().any(|own| match (own, name) {
            (CertificateName::Host(own), CertificateName::Host(host)) => {
                own == host || own.starts_with("*.") && wildcard_of(host).as_ref() == Some(own)
            }
            (own, name) => own == name,
        })
    }

    /// The time from the first to the last moment of validity.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.not_after
            .duration_since(self.not_before)
            .unwrap_or_default()
    }

    /// The moment at which two thirds of the lifetime are over.
    #[must_use]
    pub fn two_thirds(&self) -> SystemTime {
        self.not_before + self.lifetime() * 2 / 3
    }
}

/// The wildcard that covers a host: `*.example.org` for `www.example.org`.
pub(crate) fn wildcard_of(host: &str) -> Option<String> {
    let (_, parent) = host.split_once('.')?;
    Some(format!("*.{parent}"))
}

/// A date for a person: `2027-02-28 13:05 UTC`.
pub(crate) fn date(moment: SystemTime) -> String {
    let moment = OffsetDateTime::from(moment);
    let (date, time) = (moment.date(), moment.time());
    format!("{date} {:02}:{:02} UTC", time.hour(), time.minute())
}

fn name_of(name: &DerElement<'_>) -> Option<CertificateName> {
    match name.tag {
        DNS_NAME => {
            let host = str::from_utf8(name.content).ok()?;
            Some(CertificateName::Host(host.to_ascii_lowercase()))
        }
        IP_ADDRESS => {
            let v4 = <[u8; 4]>::try_from(name.content).map(IpAddr::from);
            let v6 = <[u8; 16]>::try_from(name.content).map(IpAddr::from);
            v4.or(v6).ok().map(CertificateName::Address)
        }
        _ => None,
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 section 4.1.2.5).
fn moment(element: &DerElement<'_>) -> Option<SystemTime> {
    let text = str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match element.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i32 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| rest.get(at..at + 2)?.parse::<u8>().ok();
    let month = Month::try_from(part(0)?).ok()?;
    let date = Date::from_calendar_date(year, month, part(2)?).ok()?;
    let time = Time::from_hms(part(4)?, part(6)?, part(8)?).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc().into())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, SerialNumber, date_time_ymd};

    use super::{CertificateFacts, CertificateName, date};

    #[test]
    fn names_times_and_identifiers_are_read() {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, authority_key).unwrap();
        let names = ["example.org", "*.Example.org", "127.0.0.1", "::1"];
        let mut params = CertificateParams::new(names.map(str::to_owned)).unwrap();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2051, 3, 1);
        params.serial_number = Some(SerialNumber::from_slice(&[0xca, 0xfe]));
        params.use_authority_key_identifier_extension = true;
        let leaf = params
            .signed_by(&KeyPair::generate().unwrap(), &authority)
            .unwrap();
        let facts = CertificateFacts::read(leaf.der()).unwrap();
        assert_eq!(facts.names, names.map(CertificateName::parse));
        assert_eq!(date(facts.not_before), "2026-01-01 00:00 UTC");
        // From 2050 on a date is a GeneralizedTime.
        assert_eq!(date(facts.not_after), "2051-03-01 00:00 UTC");
        // The encoding has a zero before a high bit.
        assert_eq!(facts.serial, [0, 0xca, 0xfe]);
        assert!(facts.authority_key.is_some());
        let root = CertificateFacts::read(authority.der()).unwrap();
        assert_eq!(facts.issuer, root.subject);
        assert!(facts.two_thirds() > SystemTime::from(date_time_ymd(2042, 1, 1)));
    }

    #[test]
    fn a_wildcard_covers_one_label() {
        let made = rcgen::generate_simple_self_signed(["*.example.org".to_owned()]).unwrap();
        let facts = CertificateFacts::read(made.cert.der()).unwrap();
        let covers = |name| facts.is_for(&CertificateName::parse(name));
        assert!(covers("www.example.org") && covers("WWW.example.org."));
        assert!(!covers("example.org") && !covers("a.b.example.org") && !covers("127.0.0.1"));
    }

    #[test]
    fn a_cut_certificate_is_none() {
        let made = rcgen::generate_simple_self_signed(["example.org".to_owned()]).unwrap();
        let der = made.cert.der();
        for end in 0..der.len() {
            let cut = rustls::pki_types::CertificateDer::from(&der[..end]);
            assert!(CertificateFacts::read(&cut).is_none());
        }
    }
}
