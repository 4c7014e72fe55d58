//! The request line: method, target in its four forms, version (RFC 9112 section 3).

use memchr::memchr;

use super::{Refusal, Span, is_token};
use crate::request::Version;

/// A request line taken apart; the spans are relative to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestLine {
    pub(super) method: Span,
    pub(super) target: Span,
    pub(super) path: Span,
    pub(super) query: Option<Span>,
    /// The authority of a target in absolute form, which overrides Host (section 3.2.2).
    pub(super) authority: Option<Span>,
    pub(super) version: Version,
}

/// Parses a request line without its CRLF.
pub(super) fn parse(line: &[u8]) -> Result<RequestLine, Refusal> {
    let method_end =
        memchr(b' ', line).ok_or(Refusal::Malformed("the request line has no target"))?;
    let method = &line[..method_end];
    let is_usual = matches!(method, b"GET" | b"HEAD" | b"POST");
    if !is_usual && (method.is_empty() || !method.iter().copied().all(is_token)) {
        return Err(Refusal::Malformed("the method is not a token"));
    }
    let start = method_end + 1;
    let len = memchr(b' ', &line[start..])
        .ok_or(Refusal::Malformed("the request line has no version"))?;
    let version = parse_version(&line[start + len + 1..])?;
    let target = &line[start..start + len];
    // Section 3.2 has no control byte, no space and no fragment in a target; bytes beyond ASCII must be encoded.
    if target.is_empty() || !target.iter().all(|&b| IN_TARGET[b as usize]) {
        return Err(Refusal::Malformed(
            "the request target has a byte that must be percent-encoded",
        ));
    }
    if method == b"CONNECT" {
        return Err(Refusal::NotImplemented("this server is not a tunnel"));
    }
    let (authority, path_start) = match target[0] {
        b'/' => (None, 0),
        b'*' if len == 1 && method == b"OPTIONS" => (None, 0),
        _ => absolute_form(target)?,
    };
    let (path, query) = split_query(target, path_start);
    let shift = |span: Span| Span {
        start: span.start + Span::new(start, 0).start,
        len: span.len,
    };
    Ok(RequestLine {
        method: Span::new(0, method_end),
        target: Span::new(start, len),
        path: shift(path),
        query: query.map(shift),
        authority: authority.map(shift),
        version,
    })
}

const IN_TARGET: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_graphic() && b != b'#';
        byte += 1;
    }
    table
};

/// What may be in a host name or an IPv4 address; an IPv6 address adds a colon, inside brackets.
const IN_HOST: [bool; 256] = {
    let mut table = IN_TARGET;
    let others = br#"/?@,\"<>^`{|}[]:"#;
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = false;
        at += 1;
    }
    table
};

/// `HTTP/1.1`. A higher minor version is read as the highest we know (RFC 9110 section 2.5).
fn parse_version(version: &[u8]) -> Result<Version, Refusal> {
    match version {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            if *major == b'1' {
                Ok(Version::Http11)
            } else {
                Err(Refusal::Version)
            }
        }
        _ => Err(Refusal::Malformed(
            "the request line does not end with a version",
        )),
    }
}

/// The authority of `http://authority/path?query` and where the path begins.
fn absolute_form(target: &[u8]) -> Result<(Option<Span>, usize), Refusal> {
    const BAD: Refusal = Refusal::Malformed("the request target is neither a path nor an http URL");
    let scheme_end = memchr(b':', target).ok_or(BAD)?;
    let scheme = &target[..scheme_end];
    if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
        return Err(BAD);
    }
    let rest = target[scheme_end..].strip_prefix(b"://").ok_or(BAD)?;
    let start = scheme_end + 3;
    let len = rest
        .iter()
        .position(|&b| b == b'/' || b == b'?')
        .unwrap_or(rest.len());
    // RFC 9110 section 4.2.1: an http URL without a host is invalid; 4.2.4: so is one with user information.
    if len == 0 || !is_authority(&rest[..len]) {
        return Err(BAD);
    }
    Ok((Some(Span::new(start, len)), start + len))
}

/// Splits at the first question mark. An absolute form without a path has an empty span here, which reads as "/".
fn split_query(target: &[u8], start: usize) -> (Span, Option<Span>) {
    match memchr(b'?', &target[start..]) {
        Some(at) => {
            let query = start + at + 1;
            (
                Span::new(start, at),
                Some(Span::new(query, target.len() - query)),
            )
        }
        None => (Span::new(start, target.len() - start), None),
    }
}

/// Whether `value` can be `uri-host [ ":" port ]`: no separator of another URL part, no space, no user information.
pub(super) fn is_authority(value: &[u8]) -> bool {
    // The usual one is a name, or a name and a port.
    let name = value.iter().position(|&b| !IN_HOST[b as usize]);
    match name {
        None => return true,
        Some(at) if value[at] == b':' => return value[at + 1..].iter().all(u8::is_ascii_digit),
        Some(_) => {}
    }
    let (host, port) = match memchr::memrchr(b':', value) {
        // A colon inside brackets belongs to an IPv6 address.
        Some(at) if memchr(b']', &value[at..]).is_none() => (&value[..at], &value[at + 1..]),
        _ => (value, &b""[..]),
    };
    let bracketed = host.first() == Some(&b'[');
    port.iter().all(u8::is_ascii_digit)
        && host.ends_with(b"]") == bracketed
        && host
            .iter()
            .all(|&b| IN_HOST[b as usize] || (bracketed && matches!(b, b'[' | b']' | b':')))
}
