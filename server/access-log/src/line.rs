//! One line of the combined format, escaped so that a client cannot forge another.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::macros::format_description;

/// Bytes of a request field that are logged; the rest is replaced by `...`. So a request with a
/// head of 64 KiB makes a line of a few pages, not of a quarter of a megabyte.
const FIELD: usize = 4096;

/// One answered request. The byte strings come from the client, so they may contain any byte.
#[derive(Clone, Copy, Debug)]
pub struct LogLine<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The method, as received.
    pub method: &'a [u8],
    /// The request target, as received.
    pub target: &'a [u8],
    /// The protocol, such as `HTTP/1.1`.
    pub version: &'a str,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// The `Referer` field.
    pub referer: Option<&'a [u8]>,
    /// The `User-Agent` field.
    pub user_agent: Option<&'a [u8]>,
}

/// Appends one line, with its line feed.
pub(super) fn format(out: &mut Vec<u8>, stamp: &[u8], line: &LogLine<'_>) {
    address(out, line.client);
    out.extend_from_slice(b" - - ");
    out.extend_from_slice(stamp);
    out.extend_from_slice(b" \"");
    if line.method.is_empty() && line.target.is_empty() {
        // No request line was understood.
        out.push(b'-');
    } else {
        escaped(out, line.method);
        out.push(b' ');
        escaped(out, line.target);
        out.push(b' ');
        escaped(out, line.version.as_bytes());
    }
    out.extend_from_slice(b"\" ");
    number(out, u64::from(line.status));
    out.push(b' ');
    number(out, line.bytes);
    for field in [line.referer, line.user_agent] {
        out.extend_from_slice(b" \"");
        match field {
            Some(value) if !value.is_empty() => escaped(out, value),
            _ => out.push(b'-'),
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// Quotes, backslashes, control bytes and everything beyond ASCII as `\xHH`, as nginx does.
fn escaped(out: &mut Vec<u8>, value: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let shown = &value[..value.len().min(FIELD)];
    let mut rest = shown;
    while let Some(at) = rest
        .iter()
        .position(|&byte| NEEDS_ESCAPE[usize::from(byte)])
    {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[
            b'\\',
            b'x',
            HEX[usize::from(byte >> 4)],
            HEX[usize::from(byte & 15)],
        ]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    if shown.len() < value.len() {
        out.extend_from_slice(b"...");
    }
}

static NEEDS_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = byte < 0x20 || byte > 0x7e || byte == b'"' as usize || byte == b'\\' as usize;
        byte += 1;
    }
    table
};

/// By hand for IPv4, where the formatting machinery would be a third of the line's cost.
fn address(out: &mut Vec<u8>, peer: IpAddr) {
    match peer.to_canonical() {
        IpAddr::V4(v4) => {
            for (n, octet) in v4.octets().into_iter().enumerate() {
                if n > 0 {
                    out.push(b'.');
                }
                number(out, u64::from(octet));
            }
        }
        IpAddr::V6(v6) => {
            let _ = write!(out, "{v6}");
        }
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The time of day as text, made once a second.
#[derive(Default)]
pub(super) struct Timestamp {
    second: Option<i64>,
    text: Vec<u8>,
}

impl Timestamp {
    /// `[21/Nov/2026:05:28:21 +0000]`, in UTC.
    pub(super) fn at(&mut self, now: SystemTime) -> &[u8] {
        let second = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs() as i64);
        if self.second != Some(second) {
            let date =
                OffsetDateTime::from_unix_timestamp(second).unwrap_or(OffsetDateTime::UNIX_EPOCH);
            let layout = format_description!(
                "[[[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000]"
            );
            self.text.clear();
            let _ = date.format_into(&mut self.text, layout);
            self.second = Some(second);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    use super::*;

    fn line<'a>() -> LogLine<'a> {
        LogLine {
            client: Ipv4Addr::new(192, 0, 2, 1).into(),
            method: b"GET",
            target: b"/read?id=5",
            version: "HTTP/1.1",
            status: 200,
            bytes: 18_446_744_073_709_551_615,
            referer: None,
            user_agent: Some(b"curl/8.5"),
        }
    }

    fn check(line: &LogLine<'_>, expected: &str) {
        let mut out = Vec::new();
        format(&mut out, b"[t]", line);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_plain_request_is_combined_format() {
        check(
            &line(),
            "192.0.2.1 - - [t] \"GET /read?id=5 HTTP/1.1\" 200 18446744073709551615 \"-\" \"curl/8.5\"\n",
        );
    }

    #[test]
    fn addresses_are_canonical() {
        let v6 = LogLine {
            client: Ipv6Addr::LOCALHOST.into(),
            bytes: 0,
            ..line()
        };
        check(
            &v6,
            "::1 - - [t] \"GET /read?id=5 HTTP/1.1\" 200 0 \"-\" \"curl/8.5\"\n",
        );
        let mapped = LogLine {
            client: Ipv4Addr::new(10, 0, 200, 3).to_ipv6_mapped().into(),
            bytes: 0,
            ..line()
        };
        check(
            &mapped,
            "10.0.200.3 - - [t] \"GET /read?id=5 HTTP/1.1\" 200 0 \"-\" \"curl/8.5\"\n",
        );
    }

    #[test]
    fn no_byte_of_a_client_ends_a_field_or_a_line() {
        let every: Vec<u8> = (0..=255).collect();
        let mut out = Vec::new();
        let hostile = LogLine {
            method: &every,
            target: &every,
            referer: Some(&every),
            user_agent: Some(&every),
            ..line()
        };
        format(&mut out, b"[t]", &hostile);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('"').count(), 6);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(
            text.bytes()
                .all(|byte| byte == b'\n' || (0x20..0x7f).contains(&byte))
        );
        assert!(text.contains("\\x00\\x01") && text.contains("\\x22") && text.contains("\\x5C"));
    }

    #[test]
    fn long_fields_are_cut_and_missing_ones_are_a_dash() {
        let long = vec![b'a'; FIELD + 1];
        let mut out = Vec::new();
        format(
            &mut out,
            b"[t]",
            &LogLine {
                user_agent: Some(&long),
                method: b"",
                target: b"",
                referer: Some(b""),
                ..line()
            },
        );
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("[t] \"-\" 200 "));
        assert!(text.contains(" \"-\" \"aaa") && text.ends_with("a...\"\n"));
        assert!(text.len() < FIELD + 200);
    }

    #[test]
    fn the_stamp_follows_the_second() {
        let mut stamp = Timestamp::default();
        let at = UNIX_EPOCH + Duration::from_millis(1_795_239_001_999);
        assert_eq!(stamp.at(at), b"[21/Nov/2026:05:30:01 +0000]");
        assert_eq!(
            stamp.at(at + Duration::from_millis(1)),
            b"[21/Nov/2026:05:30:02 +0000]"
        );
        assert_eq!(stamp.at(UNIX_EPOCH), b"[01/Jan/1970:00:00:00 +0000]");
    }
}
