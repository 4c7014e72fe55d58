//! Header lists become request heads, or are refused (RFC 9113 section 8).

use super::head::Http2Head;
use super::hpack::{ENTRY_OVERHEAD, FieldSink};
use super::priority::Priority;
use crate::h1::{Refusal, is_authority, is_coded, is_target};
use crate::limits::{HTTP2_FIELDS, Limits, METHOD, TRAILERS};
use crate::syntax::{Span, is_field_value, is_token};

/// Why a head is not given to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadFault {
    /// It breaks a rule of the protocol: a stream error (section 8.1.1).
    Malformed(&'static str),
    /// It is answered with a status.
    Refused(Refusal),
}

/// Facts about the request in a head besides its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestFacts {
    /// The length that the body must have.
    pub(crate) content_length: Option<u64>,
    /// True if the client waits for 100 (Continue).
    pub(crate) expects_continue: bool,
    pub(crate) priority: Priority,
}

/// Takes the fields of one head. After a fault it takes nothing any more, so what is kept is
/// bounded while the list is decoded.
pub(crate) struct HeadReader<'a> {
    head: &'a mut Http2Head,
    limits: &'a Limits,
    is_secured: bool,
    size: ListSize,
    fault: Option<HeadFault>,
    facts: RequestFacts,
    has_method: bool,
    path: Option<Span>,
    scheme: Option<Scheme>,
    has_authority: bool,
    has_host: bool,
    /// A field that is no pseudo-field was seen.
    has_regular: bool,
    expects_other: bool,
    is_coded: bool,
    crumbs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    Other,
}

impl Scheme {
    fn of(value: &[u8]) -> Self {
        if value.eq_ignore_ascii_case(b"https") {
            Self::Https
        } else if value.eq_ignore_ascii_case(b"http") {
            Self::Http
        } else {
            Self::Other
        }
    }

    const fn default_port(self) -> &'static [u8] {
        match self {
            Self::Http => b":80",
            Self::Https => b":443",
            Self::Other => b":",
        }
    }
}

impl FieldSink for HeadReader<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_none() {
            self.fault = self.take(name, value).err();
        }
    }
}

impl<'a> HeadReader<'a> {
    /// Reads into `head`, which is empty.
    pub(crate) fn new(head: &'a mut Http2Head, limits: &'a Limits, is_secured: bool) -> Self {
        head.is_secured = is_secured;
        Self {
            head,
            limits,
            is_secured,
            size: ListSize::default(),
            fault: None,
            facts: RequestFacts::default(),
            has_method: false,
            path: None,
            scheme: None,
            has_authority: false,
            has_host: false,
            has_regular: false,
            expects_other: false,
            is_coded: false,
            crumbs: 0,
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        self.size.add(name, value, HTTP2_FIELDS, self.limits.head)?;
        if let [b':', pseudo @ ..] = name {
            check_value(value)?;
            return self.take_pseudo(pseudo, value);
        }
        self.has_regular = true;
        check_field(name, value)?;
        match name {
            b"host" => return self.take_host(value),
            b"cookie" => self.crumbs += 1,
            b"content-length" => {
                let length = parse_length(value)?;
                if self.facts.content_length.replace(length).is_some() {
                    return Err(HeadFault::Malformed("content-length is repeated"));
                }
            }
            b"expect" => {
                let is_continue = value.eq_ignore_ascii_case(b"100-continue");
                self.facts.expects_continue |= is_continue;
                self.expects_other |= !is_continue;
            }
            b"content-encoding" => self.is_coded |= is_coded(value),
            b"priority" => self.facts.priority.update(value),
            _ => {}
        }
        let field = self.head.push_line(name, value);
        self.head.push_field(field);
        Ok(())
    }

    /// Section 8.3: pseudo-fields come first, once each, and are those of requests.
    fn take_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        if self.has_regular {
            return Err(HeadFault::Malformed("a pseudo-field behind a field"));
        }
        let is_repeated = match name {
            b"method" => {
                let line = self.head.push_line(b":method", value);
                // At once: also a HEAD that is refused has no content.
                self.head.method = line.value;
                std::mem::replace(&mut self.has_method, true)
            }
            b"path" => {
                let line = self.head.push_line(b":path", value);
                self.path.replace(line.value).is_some()
            }
            b"scheme" => {
                self.head.push_line(b":scheme", value);
                self.scheme.replace(Scheme::of(value)).is_some()
            }
            b"authority" => {
                check_authority(value)?;
                let line = self.head.push_line(b"host", value);
                self.head.push_field(line);
                self.head.host = Some(line.value);
                std::mem::replace(&mut self.has_authority, true)
            }
            _ => return Err(HeadFault::Malformed("a pseudo-field of no request")),
        };
        if is_repeated {
            return Err(HeadFault::Malformed("a pseudo-field is repeated"));
        }
        Ok(())
    }

    /// Section 8.3.1: beside `:authority` it must name the same host. It is left out then, because
    /// the line of `:authority` is there.
    fn take_host(&mut self, value: &[u8]) -> Result<(), HeadFault> {
        if std::mem::replace(&mut self.has_host, true) {
            return Err(HeadFault::Malformed("host is repeated"));
        }
        check_authority(value)?;
        let Some(authority) = self.head.host else {
            let line = self.head.push_line(b"host", value);
            self.head.push_field(line);
            self.head.host = Some(line.value);
            return Ok(());
        };
        let port = self.scheme.unwrap_or(Scheme::Other).default_port();
        let without_port =
            |host: &[u8]| host.len() - if host.ends_with(port) { port.len() } else { 0 };
        let authority = authority.of(self.head.text());
        let (a, b) = (
            &authority[..without_port(authority)],
            &value[..without_port(value)],
        );
        if !a.eq_ignore_ascii_case(b) {
            return Err(HeadFault::Malformed("host and :authority differ"));
        }
        Ok(())
    }

    /// Judges the head as a whole. `has_body` says whether DATA follows.
    pub(crate) fn finish(self, has_body: bool) -> Result<RequestFacts, HeadFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !self.has_method {
            return Err(HeadFault::Malformed(":method is missing"));
        }
        let bytes = self.head.method();
        if bytes.is_empty() || !bytes.iter().copied().all(is_token) {
            return Err(HeadFault::Malformed(":method is not a token"));
        }
        let is_too_long = bytes.len() > METHOD;
        if bytes == b"CONNECT" {
            return Err(self.connect());
        }
        let is_options = bytes == b"OPTIONS";
        let (Some(scheme), Some(path)) = (self.scheme, self.path) else {
            return Err(HeadFault::Malformed(":scheme or :path is missing"));
        };
        // Section 8.3.1: an absolute path, or the asterisk of OPTIONS.
        let bytes = path.of(self.head.text());
        let is_path = bytes.starts_with(b"/") || (is_options && bytes == b"*");
        if !is_path || !is_target(bytes) {
            return Err(HeadFault::Malformed(":path is not a path"));
        }
        let is_long_path = bytes.len() > self.limits.target;
        self.head.target = path;
        if self.head.host.is_none() {
            return Err(HeadFault::Malformed("neither :authority nor host"));
        }
        if !has_body && self.facts.content_length.is_some_and(|length| length > 0) {
            return Err(HeadFault::Malformed("a content-length without content"));
        }
        self.head.join_cookies(self.crumbs);
        let refusal = match scheme {
            Scheme::Other => Refusal::Malformed("the scheme is neither http nor https"),
            Scheme::Https if !self.is_secured => Refusal::Misdirected,
            Scheme::Http if self.is_secured => Refusal::Misdirected,
            _ if is_too_long => {
                Refusal::NotImplemented("the method is longer than any that this server knows")
            }
            _ if is_long_path => Refusal::TargetTooLong,
            _ if self.expects_other => Refusal::Expectation,
            _ if self.is_coded && has_body && self.facts.content_length != Some(0) => {
                Refusal::ContentCoding
            }
            _ => return Ok(self.facts),
        };
        Err(HeadFault::Refused(refusal))
    }

    /// Section 8.5.
    fn connect(&self) -> HeadFault {
        if self.scheme.is_some() || self.path.is_some() || !self.has_authority {
            return HeadFault::Malformed("CONNECT has :authority, and no :scheme and no :path");
        }
        HeadFault::Refused(Refusal::NotImplemented("this server is not a tunnel"))
    }
}

/// The size of a header list as both sides count it (section 6.5.2).
#[derive(Debug, Default)]
struct ListSize {
    fields: usize,
    bytes: usize,
}

impl ListSize {
    fn add(
        &mut self,
        name: &[u8],
        value: &[u8],
        max_fields: usize,
        max_bytes: usize,
    ) -> Result<(), HeadFault> {
        self.fields += 1;
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD;
        if self.fields > max_fields || self.bytes > max_bytes.min(MAX_LIST) {
            return Err(HeadFault::Refused(Refusal::HeadTooLarge));
        }
        Ok(())
    }
}

/// However large the limit is, places in the text of a head have 32 bits, and cookies are there
/// twice.
const MAX_LIST: usize = 1 << 30;

/// Takes the fields of a trailer section: they are checked and dropped.
#[derive(Debug, Default)]
pub(crate) struct TrailerReader {
    size: ListSize,
    fault: Option<HeadFault>,
}

impl FieldSink for TrailerReader {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_none() {
            let size = self.size.add(name, value, HTTP2_FIELDS, TRAILERS);
            // Section 8.1: a pseudo-field is malformed here.
            self.fault = size.and_then(|()| check_field(name, value)).err();
        }
    }
}

impl TrailerReader {
    pub(crate) fn finish(self) -> Result<(), HeadFault> {
        self.fault.map_or(Ok(()), Err)
    }
}

/// Takes the fields of a head that belongs to no open stream, for the sake of the dynamic table.
pub(crate) struct NoFields;

impl FieldSink for NoFields {
    fn field(&mut self, _: &[u8], _: &[u8]) {}
}

/// Sections 8.2.1 and 8.2.2: the name is a token in lower case, the value is one, and the field is
/// none of a connection.
fn check_field(name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
    let is_other = name
        .iter()
        .fold(false, |other, &byte| other | !IN_NAME[byte as usize]);
    if name.is_empty() || is_other {
        return Err(HeadFault::Malformed(
            "a field name is not one in lower case",
        ));
    }
    check_value(value)?;
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err(HeadFault::Malformed("a field of the connection"))
        }
        b"te" if value != b"trailers" => Err(HeadFault::Malformed("te is not trailers")),
        _ => Ok(()),
    }
}

/// Characters that may be in the name of a field: a token without capital letters.
static IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = is_token(b) && !b.is_ascii_uppercase();
        byte += 1;
    }
    table
};

/// Section 8.2.1, and RFC 9110 section 5.5: no control byte, no white space around it.
fn check_value(value: &[u8]) -> Result<(), HeadFault> {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_padded = is_blank(value.first()) || is_blank(value.last());
    // Without an early end, so that several bytes are looked at in one step.
    let is_other = value
        .iter()
        .fold(false, |other, &byte| other | !is_field_value(byte));
    if is_padded || is_other {
        return Err(HeadFault::Malformed(
            "a field value has a byte that it must not have",
        ));
    }
    Ok(())
}

/// Section 8.3.1: one host, without user information, not empty.
fn check_authority(value: &[u8]) -> Result<(), HeadFault> {
    if matches!(value, [] | [b':', ..]) || !is_authority(value) {
        return Err(HeadFault::Malformed("the authority is not a host"));
    }
    Ok(())
}

/// RFC 9110 section 8.6.
fn parse_length(value: &[u8]) -> Result<u64, HeadFault> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).unwrap_or_default();
    match text.parse() {
        Ok(length) if is_number => Ok(length),
        _ => Err(HeadFault::Malformed("content-length is not a number")),
    }
}
