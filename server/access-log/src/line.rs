//! One line of the combined format or of JSON, escaped so that a client cannot forge another.

use std::io::Write as _;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use base_clock::Boottime;
use time::OffsetDateTime;
use time::macros::format_description;

/// Bytes of a request field that are logged; the rest is replaced by `...`. So a request with a
/// head of 64 KiB makes a line of a few pages, not of a quarter of a megabyte.
const FIELD: usize = 4096;

/// Format of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined format.
    #[default]
    Combined,
    /// A JSON object a line, with the names that OpenTelemetry has for the attributes of a request.
    Json,
}

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
    /// When the request was received, if it was. Only JSON has the time that passed since.
    pub received: Option<Boottime>,
}

/// Appends one line of JSON, with its line feed. What is absent is left out. Each byte of a client
/// that is not plain ASCII becomes the character with its number, so that nothing is lost.
pub(super) fn json(out: &mut Vec<u8>, stamp: &[u8], line: &LogLine<'_>) {
    out.extend_from_slice(b"{\"timestamp\":\"");
    out.extend_from_slice(stamp);
    out.extend_from_slice(b"\",\"client.address\":\"");
    address(out, line.client);
    let at = line.target.iter().position(|byte| *byte == b'?');
    let (path, query) = line.target.split_at(at.unwrap_or(line.target.len()));
    let version = line.version.strip_prefix("HTTP/").unwrap_or_default();
    let version = version
        .strip_suffix(".0")
        .filter(|version| *version != "1")
        .unwrap_or(version);
    for (name, value) in [
        ("http.request.method", line.method),
        ("url.path", path),
        ("url.query", query.get(1..).unwrap_or_default()),
        ("network.protocol.version", version.as_bytes()),
        (
            "http.request.header.referer",
            line.referer.unwrap_or_default(),
        ),
        ("user_agent.original", line.user_agent.unwrap_or_default()),
    ] {
        if !value.is_empty() {
            out.extend_from_slice(b"\",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":\"");
            escaped(out, value, b"\\u00");
        }
    }
    out.extend_from_slice(b"\",\"http.response.status_code\":");
    number(out, u64::from(line.status));
    out.extend_from_slice(b",\"http.response.body.size\":");
    number(out, line.bytes);
    if let Some(received) = line.received {
        let taken = Boottime::now().since(received).as_secs_f64();
        let _ = write!(out, ",\"http.server.request.duration\":{taken:.6}");
    }
    out.extend_from_slice(b"}\n");
}

/// Appends one line of the combined format, with its line feed.
pub(super) fn combined(out: &mut Vec<u8>, stamp: &[u8], line: &LogLine<'_>) {
    address(out, line.client);
    out.extend_from_slice(b" - - ");
    out.extend_from_slice(stamp);
    out.extend_from_slice(b" \"");
    if line.method.is_empty() && line.target.is_empty() {
        // No request line was understood.
        out.push(b'-');
    } else {
        escaped(out, line.method, TEXT);
        out.push(b' ');
        escaped(out, line.target, TEXT);
        out.push(b' ');
        escaped(out, line.version.as_bytes(), TEXT);
    }
    out.extend_from_slice(b"\" ");
    number(out, u64::from(line.status));
    out.push(b' ');
    number(out, line.bytes);
    for field in [line.referer, line.user_agent] {
        out.extend_from_slice(b" \"");
        match field {
            Some(value) if !value.is_empty() => escaped(out, value, TEXT),
            _ => out.push(b'-'),
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// The beginning of an escape in the combined format, as nginx has it.
const TEXT: &[u8] = b"\\x";

/// Quotes, backslashes, control bytes and everything beyond ASCII as two digits behind `begin`.
fn escaped(out: &mut Vec<u8>, value: &[u8], begin: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let shown = &value[..value.len().min(FIELD)];
    let mut rest = shown;
    while let Some(at) = rest
        .iter()
        .position(|&byte| NEEDS_ESCAPE[usize::from(byte)])
    {
        let byte = rest[at];
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(begin);
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
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
    /// `[21/Nov/2026:05:28:21 +0000]` or `2026-11-21T05:28:21Z`, in UTC.
    pub(super) fn at(&mut self, now: SystemTime, format: LogFormat) -> &[u8] {
        let second = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs() as i64);
        if self.second != Some(second) {
            let date =
                OffsetDateTime::from_unix_timestamp(second).unwrap_or(OffsetDateTime::UNIX_EPOCH);
            self.text.clear();
            let _ = match format {
                LogFormat::Combined => date.format_into(
                    &mut self.text,
                    format_description!(
                        "[[[day]/[month repr:short]/[year]:[hour]:[minute]:[second] +0000]"
                    ),
                ),
                LogFormat::Json => date.format_into(
                    &mut self.text,
                    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"),
                ),
            };
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
            received: Some(Boottime::now()),
        }
    }

    fn check(line: &LogLine<'_>, expected: &str) {
        let mut out = Vec::new();
        combined(&mut out, b"[t]", line);
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
        combined(&mut out, b"[t]", &hostile);
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
    fn json_has_the_names_of_opentelemetry_and_each_byte_of_a_client() {
        let every: Vec<u8> = (0..=255).collect();
        let mut out = Vec::new();
        let hostile = LogLine {
            method: &every,
            target: b"/a?b=\xc3\xa9&c=?",
            version: "HTTP/2.0",
            user_agent: Some(&every),
            ..line()
        };
        json(&mut out, b"2026-11-21T05:30:01Z", &hostile);
        assert!(out.is_ascii() && out.iter().filter(|byte| byte.is_ascii_control()).count() == 1);
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let field = |name: &str| read[name].as_str().map(str::to_owned);
        let every: String = every.into_iter().map(char::from).collect();
        assert_eq!(field("user_agent.original").as_ref(), Some(&every));
        assert_eq!(field("http.request.method"), Some(every));
        for (name, value) in [
            ("timestamp", Some("2026-11-21T05:30:01Z")),
            ("client.address", Some("192.0.2.1")),
            ("url.path", Some("/a")),
            ("url.query", Some("b=\u{c3}\u{a9}&c=?")),
            ("network.protocol.version", Some("2")),
            ("http.request.header.referer", None),
        ] {
            assert_eq!(field(name).as_deref(), value, "{name}");
        }
        assert_eq!(read["http.response.status_code"], 200);
        assert_eq!(read["http.response.body.size"], u64::MAX);
        assert!(read["http.server.request.duration"].as_f64().unwrap() >= 0.0);
        let mut out = Vec::new();
        let unread = LogLine {
            method: b"",
            target: b"",
            version: "",
            received: None,
            ..line()
        };
        json(&mut out, b"t", &unread);
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        for name in [
            "url.path",
            "http.request.method",
            "http.server.request.duration",
        ] {
            assert!(read.get(name).is_none(), "{name}");
        }
    }

    #[test]
    fn long_fields_are_cut_and_missing_ones_are_a_dash() {
        let long = vec![b'a'; FIELD + 1];
        let mut out = Vec::new();
        combined(
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
        assert_eq!(
            stamp.at(at, LogFormat::Combined),
            b"[21/Nov/2026:05:30:01 +0000]"
        );
        assert_eq!(
            stamp.at(at + Duration::from_millis(1), LogFormat::Combined),
            b"[21/Nov/2026:05:30:02 +0000]"
        );
        assert_eq!(
            stamp.at(UNIX_EPOCH, LogFormat::Combined),
            b"[01/Jan/1970:00:00:00 +0000]"
        );
    }
}
