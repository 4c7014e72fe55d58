//! A line of a log in any of the formats, found out line by line.

use std::net::{IpAddr, SocketAddr};

use crate::stamp::{self, COMMON, Stamp};

/// Bytes of a line at most; longer ones are damaged.
pub(crate) const LONGEST: usize = 64 * 1024;

/// One request as a log tells it. Method and target are without the escapes of the log, the other
/// texts without those of JSON. An absent one is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogEntry<'l> {
    /// The client's address.
    pub client: &'l [u8],
    /// Seconds since 1970, in UTC.
    pub time: i64,
    /// Seconds by which the clock of the log is ahead of UTC.
    pub offset: i32,
    /// The method; empty if the client sent no HTTP.
    pub method: &'l [u8],
    /// The path with its query, or what was sent instead.
    pub target: &'l [u8],
    /// The status.
    pub status: u16,
    /// Bytes that were sent.
    pub bytes: u64,
    /// The page that led here.
    pub referrer: &'l [u8],
    /// The `User-Agent` field.
    pub agent: &'l [u8],
    /// How long the answer took, in microseconds.
    pub micros: Option<u64>,
}

impl<'l> LogEntry<'l> {
    /// Method and target; `None` if the request cannot be repeated.
    pub fn request(&self) -> Option<(&'l [u8], &'l [u8])> {
        let is_method = !self.method.is_empty() && self.method.iter().all(u8::is_ascii_uppercase);
        // Spaces are a target that no client may send.
        let is_path = self.target.starts_with(b"/") && self.target.iter().all(u8::is_ascii_graphic);
        (is_method && is_path).then_some((self.method, self.target))
    }

    /// The target without its query.
    pub fn path(&self) -> &'l [u8] {
        let end = memchr::memchr(b'?', self.target).unwrap_or(self.target.len());
        &self.target[..end]
    }

    /// Seconds since 1970 on the clock of the log.
    pub fn local_time(&self) -> i64 {
        self.time + i64::from(self.offset)
    }

    /// Sets method and target from a request line: `GET /x HTTP/1.1`.
    pub(crate) fn set_request(&mut self, line: &'l [u8]) {
        let Some(space) = memchr::memchr(b' ', line) else {
            self.target = present(line);
            return;
        };
        let (method, rest) = (&line[..space], &line[space + 1..]);
        let version = memchr::memrchr(b' ', rest).filter(|at| rest[at + 1..].starts_with(b"HTTP/"));
        (self.method, self.target) = (method, &rest[..version.unwrap_or(rest.len())]);
    }
}

/// Reads lines. A time is read once for each second.
#[derive(Default)]
pub struct LogParser {
    text: Vec<u8>,
    stamp: Stamp,
    /// The last request line that had escapes, without them.
    unescaped: Vec<u8>,
    /// The last JSON line.
    pub(crate) document: serde_json::Value,
    /// Its target, if the query is a field of its own.
    pub(crate) target: Vec<u8>,
}

impl LogParser {
    /// The content of a line; `None` if it is damaged, or in no known format.
    pub fn parse<'l>(&'l mut self, line: &'l [u8]) -> Option<LogEntry<'l>> {
        let line = line.trim_ascii();
        if line.len() > LONGEST {
            return None;
        }
        match line.first()? {
            b'{' => self.json(line),
            _ => self.common(line),
        }
    }

    /// `host ident user [time] "request" status bytes "referrer" "agent" …`
    fn common<'l>(&'l mut self, line: &'l [u8]) -> Option<LogEntry<'l>> {
        // A user's name may have brackets too.
        let (head, rest) = memchr::memchr_iter(b'[', line).find_map(|at| {
            let head = line[..at].strip_suffix(b" ")?;
            let (text, rest) = line[at + 1..].split_at_checked(COMMON)?;
            let rest = rest
                .strip_prefix(b"]")
                .filter(|rest| rest.starts_with(b" \""))?;
            if self.text != text {
                self.stamp = stamp::common(text)?;
                self.text.clear();
                self.text.extend_from_slice(text);
            }
            Some((head, rest))
        })?;
        let (request, rest) = quoted(rest)?;
        let (status, rest) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
        if !rest.is_empty() && rest[0] != b' ' {
            return None;
        }
        let (bytes, rest) = word(rest);
        let mut entry = LogEntry {
            client: client(head),
            time: self.stamp.time,
            offset: self.stamp.offset,
            status: stamp::number(status)? as u16,
            bytes: digits(bytes).unwrap_or(0),
            ..LogEntry::default()
        };
        entry.set_request(match memchr::memchr(b'\\', request) {
            None => request,
            Some(_) => {
                unescape(request, &mut self.unescaped);
                &self.unescaped
            }
        });
        if let Some((referrer, rest)) = quoted(rest) {
            entry.referrer = present(referrer);
            if let Some((agent, rest)) = quoted(rest) {
                entry.agent = present(agent);
                entry.micros = duration(rest);
            }
        }
        Some(entry)
    }
}

/// Returns the first word that is an address, or else the first word: a virtual host or a relay's
/// stamp may stand before it.
pub(crate) fn client(head: &[u8]) -> &[u8] {
    let mut words = head.split(|&byte| byte == b' ');
    let first = words.clone().next().unwrap_or_default();
    words.find_map(address).unwrap_or(first)
}

/// An IP address without what may stand around it: `[`, `]`, a port, a zone, a comma.
fn address(word: &[u8]) -> Option<&[u8]> {
    let text = std::str::from_utf8(word).ok()?.trim_end_matches(',');
    let host = match text.rsplit_once(':') {
        Some((host, _)) if text.parse::<SocketAddr>().is_ok() => host,
        _ => text,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.split('%').next().unwrap_or_default();
    host.parse::<IpAddr>().ok().map(|_| host.as_bytes())
}

/// ` "text" rest`: the text, up to the first quote without a backslash before it, and the rest.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" \"")?;
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &text[at..])?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        at = (at + 2).min(text.len());
    }
}

/// Writes a text of a log without its escapes: `\xHH` of nginx and Apache, and Apache's of C.
fn unescape(text: &[u8], into: &mut Vec<u8>) {
    into.clear();
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        into.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
        let (byte, len) = match rest.get(1) {
            Some(b'x') => match digit(2).zip(digit(3)) {
                Some((high, low)) => ((high * 16 + low) as u8, 4),
                None => (b'\\', 1),
            },
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(byte @ (b'"' | b'\\')) => (*byte, 2),
            _ => (b'\\', 1),
        };
        into.push(byte);
        rest = &rest[len..];
    }
    into.extend_from_slice(rest);
}

/// ` word rest`.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    text.split_at(memchr::memchr(b' ', text).unwrap_or(text.len()))
}

/// Turns the dash of an absent field into nothing.
pub(crate) fn present(text: &[u8]) -> &[u8] {
    if text == b"-" { b"" } else { text }
}

pub(crate) fn digits(text: &[u8]) -> Option<u64> {
    let add = |sum: u64, &byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    };
    text.first()?;
    text.iter().try_fold(0, add)
}

/// The value of a word of `duration`: without quotes and a name.
fn bare(word: &[u8]) -> &[u8] {
    let word = word.strip_prefix(b"\"").unwrap_or(word);
    let name = memchr::memchr(b'=', word).filter(|&at| !word[..at].contains(&b' '));
    let word = &word[name.map_or(0, |at| at + 1)..];
    let word = word.strip_prefix(b"\"").unwrap_or(word);
    word.strip_suffix(b"\"").unwrap_or(word)
}

/// Microseconds in the words after the agent: the first number with a point is seconds (nginx's
/// `$request_time`), bare or as `rt=0.012`; a whole number at the end is microseconds (Apache's
/// `%D`). A quoted text is one word: a client may have chosen it.
fn duration(rest: &[u8]) -> Option<u64> {
    if rest.len() < 2 {
        return None;
    }
    let words = || {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let is_end = move |&byte: &u8| {
            is_quoted ^= byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            byte == b' ' && !is_quoted
        };
        rest.split(is_end).filter(|word| !word.is_empty())
    };
    let value = |word: &'_ [u8]| {
        let word = bare(word);
        let (whole, part) = word.split_at(memchr::memchr(b'.', word)?);
        let part = &part[1..part.len().min(7)];
        let fraction = digits(part)? * 10_u64.pow(6 - part.len() as u32);
        digits(whole)?.checked_mul(1_000_000)?.checked_add(fraction)
    };
    // Quotes are read from the front.
    let last = || words().fold(&b""[..], |_, word| word);
    words().find_map(value).or_else(|| digits(bare(last())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<T>(line: &str, then: impl FnOnce(Option<LogEntry<'_>>) -> T) -> T {
        then(LogParser::default().parse(line.as_bytes()))
    }

    const COMMON_LINE: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?x=1 HTTP/1.0" 200 2326"#;

    #[test]
    fn common_and_combined_are_read() {
        let common = LogEntry {
            client: b"127.0.0.1",
            time: 971_211_336,
            offset: -25_200,
            method: b"GET",
            target: b"/apache_pb.gif?x=1",
            status: 200,
            bytes: 2326,
            ..LogEntry::default()
        };
        parse(COMMON_LINE, |entry| {
            assert_eq!(entry, Some(common));
            assert_eq!(entry.unwrap().path(), b"/apache_pb.gif");
        });
        let agent = "Mozilla/4.08 [en] (Win98; I ;Nav)";
        let combined = LogEntry {
            referrer: br#"http://e.org/\"x"#,
            agent: agent.as_bytes(),
            ..common
        };
        parse(
            &format!("{COMMON_LINE} \"http://e.org/\\\"x\" \"{agent}\"\r\n"),
            |entry| {
                assert_eq!(entry, Some(combined));
            },
        );
        parse(&format!("{COMMON_LINE} \"-\" \"-\""), |entry| {
            assert_eq!(entry, Some(common))
        });
        let quoted = r#"::1 - a [b] [10/Oct/2000:13:55:36 -0700] [01/Jan/1970:00:00:01 +0000] "GET /a\"b HTTP/1.1" 404 -"#;
        parse(quoted, |entry| {
            let entry = entry.unwrap();
            assert_eq!((entry.time, entry.status, entry.bytes), (1, 404, 0));
            assert_eq!(entry.request(), Some((&b"GET"[..], &br#"/a"b"#[..])));
        });
    }

    #[test]
    fn escapes_of_a_request_are_read() {
        for (written, target) in [
            (r#"/a\"b\x22c"#, &b"/a\"b\"c"[..]),
            (r"/\xc3\xa9", b"/\xc3\xa9"),
            (r"/a\\b\tc", b"/a\\b\tc"),
            (r"/c:\dir\x4", br"/c:\dir\x4"),
            (r"/end\\", b"/end\\"),
        ] {
            let line =
                format!("h - - [01/Jan/1970:00:00:00 +0000] \"GET {written} HTTP/1.1\" 200 0");
            parse(&line, |entry| {
                assert_eq!(entry.unwrap().target, target, "{written}")
            });
        }
    }

    #[test]
    fn the_response_time_is_found_behind_the_agent() {
        for (rest, expected) in [
            ("", None),
            (" 0.012", Some(12_000)),
            (" \"0.012\"", Some(12_000)),
            (
                " \"10.0.0.1, 10.0.0.2\" rt=1.5 uct=\"0.0\"",
                Some(1_500_000),
            ),
            (
                " 512 0.250 [upstream] 10.0.0.1:80 0 0.249 200",
                Some(250_000),
            ),
            (" 1234", Some(1234)),
            (" \"-\"", None),
            (" \"10.0.0.1\"", None),
            (" \"x 9.5 y\" 0.5", Some(500_000)),
            (" 512 \"x \\\" 9.5 y=77\"", None),
            (" \"x y=9.5\" \"urt=0.5\"", Some(500_000)),
            (" 0.1234567", Some(123_456)),
            (" 99999999999999999999.0", None),
        ] {
            parse(&format!("{COMMON_LINE} \"-\" \"x\"{rest}"), |entry| {
                assert_eq!(entry.unwrap().micros, expected, "{rest}");
            });
        }
    }

    #[test]
    fn a_virtual_host_or_a_relays_stamp_is_no_client() {
        for before in [
            "example.org:443 ",
            "Nov 29 12:00:00 web nginx: ",
            "Dec 1 12:00:00 web nginx: ",
        ] {
            parse(&format!("{before}{COMMON_LINE}"), |entry| {
                assert_eq!(entry.unwrap().client, b"127.0.0.1", "{before}");
            });
        }
        for (head, client) in [
            ("client.example.org", "client.example.org"),
            ("1.2.3.4, 10.0.0.1", "1.2.3.4"),
            ("192.0.2.9:40060", "192.0.2.9"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("unknown, 192.0.2.9", "192.0.2.9"),
        ] {
            parse(&COMMON_LINE.replace("127.0.0.1", head), |entry| {
                assert_eq!(entry.unwrap().client, client.as_bytes());
            });
            let json = format!(r#"{{"ts":1,"status":200,"client":"{head}"}}"#);
            parse(&json, |entry| {
                assert_eq!(entry.unwrap().client, client.as_bytes())
            });
        }
    }

    #[test]
    fn lines_without_a_request_differ_from_damaged_lines() {
        for request in [
            "-",
            "",
            r"\x16\x03\x01",
            "GET http://other/ HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET /a b c",
        ] {
            let line = format!("h - - [01/Jan/1970:00:00:00 +0000] \"{request}\" 400 0");
            parse(&line, |entry| {
                let entry = entry.unwrap();
                assert_eq!((entry.request(), entry.status), (None, 400), "{request}");
            });
        }
        for damaged in [
            "\n",
            "no log at all",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\\",
            "h - - [32/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 20 1",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 2000",
            "h - - [01/Jan/1970:00:00:00 +0000] GET / 200 1",
            "h - - [01/Jan/19",
            "[01/Jan/1970:00:00:00 +0000]",
            "\u{0}\u{1}[",
        ] {
            parse(damaged, |entry| assert_eq!(entry, None, "{damaged}"));
        }
        let long = format!("{COMMON_LINE} \"-\" \"{}\"", "x".repeat(LONGEST));
        parse(&long, |entry| assert_eq!(entry, None));
    }
}
