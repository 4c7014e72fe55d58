//! The request line: method, target in its four forms, version (RFC 9112 section 3).

use std::net::Ipv6Addr;

use memchr::memchr;

use super::Refusal;
use crate::request::Version;
use crate::syntax::{Span, is_token};

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

/// Parses a request line without its CRLF. `absolute` judges a target that is neither a path nor
/// the asterisk of OPTIONS: see [`absolute_form`].
pub(super) fn parse(
    line: &[u8],
    absolute: impl FnOnce(&[u8]) -> Result<(Option<Span>, usize), Refusal>,
) -> Result<RequestLine, Refusal> {
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
    if !is_target(target) {
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
        _ => absolute(target)?,
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

/// True if `target` has only bytes that may be in a request target: no control byte, no space and
/// no fragment (section 3.2); bytes beyond ASCII must be encoded.
pub(crate) fn is_target(target: &[u8]) -> bool {
    !target.is_empty() && target.iter().all(|&b| IN_TARGET[b as usize])
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

/// Characters that may be in a host name or an IPv4 address beside percent-escapes (RFC 3986
/// section 3.2.2). The comma is left out: it is what remains of two Host fields that an
/// intermediary has joined.
const IN_NAME: [bool; 256] = {
    let mut table = IN_TARGET;
    let others = br#"/?@,\"<>^`{|}[]:%"#;
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

/// The authority of `http://authority/path?query` and where the path begins; of an `https` URL if
/// the connection is secured, that is, by TLS.
#[cold]
pub(super) fn absolute_form(
    target: &[u8],
    is_secured: bool,
) -> Result<(Option<Span>, usize), Refusal> {
    const BAD: Refusal = Refusal::Malformed("the request target is neither a path nor an http URL");
    let scheme_end = memchr(b':', target).ok_or(BAD)?;
    let scheme = &target[..scheme_end];
    let is_https = scheme.eq_ignore_ascii_case(b"https");
    if !is_https && !scheme.eq_ignore_ascii_case(b"http") {
        return Err(BAD);
    }
    let rest = target[scheme_end..].strip_prefix(b"://").ok_or(BAD)?;
    let start = scheme_end + 3;
    let len = rest
        .iter()
        .position(|&b| b == b'/' || b == b'?')
        .unwrap_or(rest.len());
    let authority = &rest[..len];
    // RFC 9110 section 4.2.1: an http URL without a host is invalid; 4.2.4: so is one with user
    // information.
    if matches!(authority, [] | [b':', ..]) || !is_authority(authority) {
        return Err(BAD);
    }
    // RFC 9110 section 7.4: an https resource is given only over a secured connection, and this
    // server gives no http resource over one; 15.5.20: 421.
    if is_https != is_secured {
        return Err(Refusal::Misdirected);
    }
    Ok((Some(Span::new(start, len)), start + len))
}

/// Splits at the first question mark. An absolute form without a path has an empty span here, which
/// reads as "/".
pub(crate) fn split_query(target: &[u8], start: usize) -> (Span, Option<Span>) {
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

/// True if `value` is `uri-host [ ":" port ]` (RFC 3986 section 3.2): no separator of another URL
/// part, no space, no user information. An empty host is one; only a URL must not have it.
pub(crate) fn is_authority(value: &[u8]) -> bool {
    // The usual one is a name, or a name and a port.
    let Some(at) = value.iter().position(|&b| !IN_NAME[b as usize]) else {
        return true;
    };
    match value[at] {
        b':' => is_port(&value[at + 1..]),
        b'%' => is_escaped_name(&value[at..]),
        b'[' if at == 0 => is_literal(&value[1..]),
        _ => false,
    }
}

fn is_port(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_digit)
}

/// The rest of a name from its first percent-escape on, and a port.
fn is_escaped_name(mut rest: &[u8]) -> bool {
    loop {
        rest = match rest {
            [] => return true,
            [b':', port @ ..] => return is_port(port),
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest
            }
            [byte, rest @ ..] if IN_NAME[*byte as usize] => rest,
            _ => return false,
        }
    }
}

/// True if this follows the opening bracket: an IPv6 address, or one of a version to come, the
/// closing bracket, a port.
fn is_literal(value: &[u8]) -> bool {
    let Some(end) = memchr(b']', value) else {
        return false;
    };
    let (address, after) = (&value[..end], &value[end + 1..]);
    let is_address = match address {
        [b'v' | b'V', future @ ..] => is_future(future),
        _ => std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    };
    is_address && (after.is_empty() || after.strip_prefix(b":").is_some_and(is_port))
}

/// `1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`.
fn is_future(address: &[u8]) -> bool {
    memchr(b'.', address).is_some_and(|dot| {
        let (version, address) = (&address[..dot], &address[dot + 1..]);
        !version.is_empty()
            && version.iter().all(u8::is_ascii_hexdigit)
            && !address.is_empty()
            && address.iter().all(|&b| IN_NAME[b as usize] || b == b':')
    })
}
