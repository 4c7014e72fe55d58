//! A second reading of what was accepted: line by line, without any of the decoder's code, and with
//! no mercy for bytes that another server could read in another way.

use super::events::{DecodedRequest, DecodedStream};
use crate::request::Version;

/// Holds what the decoder saw in `input`, with the place of each head in it, against this reading.
pub(super) fn hold_against(input: &[u8], seen: &DecodedRequest, heads: &[(usize, usize)]) {
    let shown = || input.escape_ascii().to_string();
    assert_eq!(seen.requests.len(), heads.len(), "{}", shown());
    let mut at = 0;
    for (got, &(start, len)) in seen.requests.iter().zip(heads) {
        at = skip_empty_lines(input, at, start);
        assert_eq!(at, start, "bytes between two requests: {}", shown());
        let head = Head::read(&input[start..start + len]);
        head.hold_against(got);
        let (body, used) = head.body(&input[start + len..]);
        assert_eq!(body, got.body, "another body in {}", shown());
        at = start + len + used;
    }
    assert!(at <= input.len(), "more was read than sent: {}", shown());
}

/// RFC 9112 section 2.2: empty lines before a request line may be ignored.
fn skip_empty_lines(input: &[u8], mut at: usize, until: usize) -> usize {
    while at < until && input[at..].starts_with(b"\r\n") {
        at += 2;
    }
    at
}

/// A head, taken apart.
struct Head<'a> {
    method: &'a [u8],
    target: &'a [u8],
    version: &'a [u8],
    fields: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Head<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let shown = bytes.escape_ascii();
        let lines = bytes.strip_suffix(b"\r\n\r\n");
        let lines = lines.unwrap_or_else(|| panic!("a head without an end: {shown}"));
        let mut lines = split(lines, b"\r\n").into_iter();
        let words = split(lines.next().unwrap_or_default(), b" ");
        let [method, target, version] = words[..] else {
            panic!("a request line of {} words: {shown}", words.len());
        };
        assert!(is_token(method), "{shown}");
        assert!(
            !target.is_empty() && target.iter().all(u8::is_ascii_graphic),
            "{shown}"
        );
        let fields = lines.map(field).collect();
        Self {
            method,
            target,
            version,
            fields,
        }
    }

    fn values(&self, name: &str) -> Vec<&'a [u8]> {
        let named = |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.fields
            .iter()
            .filter(named)
            .map(|(_, value)| *value)
            .collect()
    }

    fn hold_against(&self, got: &DecodedStream) {
        assert_eq!(self.method, got.method.as_bytes());
        assert_eq!(self.target, got.target.as_bytes());
        let version = match self.version {
            b"HTTP/1.0" => Version::Http10,
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'..=b'9'] => Version::Http11,
            other => panic!("accepted the version {}", other.escape_ascii()),
        };
        assert_eq!(version, got.version);
        let fields = self.fields.iter();
        let own: Vec<_> = fields
            .map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.to_vec()))
            .collect();
        assert_eq!(own, got.fields);
        let hosts = self.values("host");
        assert!(hosts.len() <= 1, "two hosts: {hosts:?}");
        assert!(!hosts.is_empty() || version == Version::Http10, "no host");
        // The target's own parts: nothing of it is lost, nothing comes from elsewhere.
        let target = &got.target;
        let rest = match &got.query {
            Some(query) => target.strip_suffix(&format!("?{query}")),
            None => Some(target.as_str()),
        };
        let rest = rest.unwrap_or_else(|| panic!("a query that is none: {got:?}"));
        assert!(rest.ends_with(&got.path) || got.path == "/", "{got:?}");
        assert!(!got.path.contains('?'), "{got:?}");
    }

    /// The body at the beginning of `rest`, and how many bytes of `rest` it takes (RFC 9112 section
    /// 6.3).
    fn body(&self, rest: &[u8]) -> (Vec<u8>, usize) {
        let lengths = self.values("content-length");
        let codings = self.values("transfer-encoding");
        match (&lengths[..], &codings[..]) {
            ([], []) => (Vec::new(), 0),
            ([], [coding]) => {
                assert!(
                    coding.eq_ignore_ascii_case(b"chunked"),
                    "a coding that is not known"
                );
                assert_ne!(self.version, b"HTTP/1.0");
                dechunk(rest)
            }
            ([length], []) => {
                assert!(!length.is_empty() && length.iter().all(u8::is_ascii_digit));
                let length = String::from_utf8_lossy(length).parse().expect("a length");
                (rest[..length].to_vec(), length)
            }
            _ => panic!("a body with two lengths: {lengths:?} {codings:?}"),
        }
    }
}

/// Name and value of a field line (RFC 9112 section 5).
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let shown = line.escape_ascii();
    let colon = line.iter().position(|&b| b == b':');
    let colon = colon.unwrap_or_else(|| panic!("a field line without a colon: {shown}"));
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    assert!(is_token(name), "a field name with other bytes: {shown}");
    let is_control = |b: &u8| (*b < b' ' && *b != b'\t') || *b == 0x7f;
    assert!(!value.iter().any(is_control), "a control byte in {shown}");
    (name, trim(value))
}

/// RFC 9112 section 7.1, of something that is whole.
fn dechunk(input: &[u8]) -> (Vec<u8>, usize) {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = line_at(input, at);
        at += line.len() + 2;
        let digits = line
            .iter()
            .take_while(|b| !matches!(b, b';' | b' ' | b'\t'))
            .count();
        let digits = &line[..digits];
        assert!(!digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit));
        let digits = String::from_utf8_lossy(digits);
        let size = usize::from_str_radix(&digits, 16).expect("a size that was accepted");
        if size == 0 {
            break;
        }
        body.extend_from_slice(&input[at..at + size]);
        at += size;
        assert_eq!(&input[at..at + 2], b"\r\n", "after a chunk");
        at += 2;
    }
    loop {
        let line = line_at(input, at);
        at += line.len() + 2;
        if line.is_empty() {
            return (body, at);
        }
        field(line);
    }
}

/// The line at `at` without its CRLF; in it there is no other line end.
fn line_at(input: &[u8], at: usize) -> &[u8] {
    let rest = &input[at..];
    let end = rest.windows(2).position(|pair| pair == b"\r\n");
    let line = &rest[..end.expect("a line that was accepted")];
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
    line
}

/// The parts between `by`; none of them has a line end or a NUL in it.
fn split<'a>(mut bytes: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = bytes.windows(by.len()).position(|part| part == by) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + by.len()..];
    }
    parts.push(bytes);
    let is_end = |b: &u8| matches!(b, b'\r' | b'\n' | 0);
    assert!(
        !parts.iter().any(|part| part.iter().any(is_end)),
        "a bare line end"
    );
    parts
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// RFC 9110 section 5.6.2.
fn is_token(bytes: &[u8]) -> bool {
    let others = b"!#$%&'*+-.^_`|~";
    !bytes.is_empty()
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || others.contains(b))
}
