//! JSON lines, as nginx, Caddy, Traefik and others write them. Their fields have many names.

use crate::entry::{LogEntry, LogParser, digits, present};
use crate::stamp::{self, Stamp};

/// Objects within objects; deeper ones are skipped.
const DEEPEST: u32 = 8;

/// Content of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Client,
    Time,
    Request,
    Method,
    Target,
    Status,
    Bytes,
    Referrer,
    Agent,
    Duration,
}

const ROLES: usize = Role::Duration as usize + 1;

/// Names of fields in small letters without `_`, `-` and `@`, the best for a role first.
const NAMES: [(Role, &[&str]); ROLES - 1] = [
    (
        Role::Client,
        &[
            "clientip",
            "remoteip",
            "remoteaddr",
            "clienthost",
            "client",
            "remote",
            "ip",
        ],
    ),
    (
        Role::Time,
        &[
            "msec",
            "ts",
            "timestamp",
            "time",
            "timelocal",
            "timeiso8601",
            "startutc",
            "timeepoch",
            "date",
        ],
    ),
    (Role::Request, &["request", "requestline"]),
    (
        Role::Method,
        &["method", "requestmethod", "verb", "httpmethod"],
    ),
    (
        Role::Target,
        &["requesturi", "uri", "url", "target", "requestpath", "path"],
    ),
    (
        Role::Status,
        &[
            "status",
            "statuscode",
            "downstreamstatus",
            "responsestatus",
            "responsecode",
            "response",
        ],
    ),
    (
        Role::Bytes,
        &[
            "bodybytessent",
            "size",
            "bytes",
            "bytessent",
            "responsesize",
            "downstreamcontentsize",
            "sentlength",
            "byteswritten",
        ],
    ),
    (
        Role::Referrer,
        &[
            "referer",
            "referrer",
            "httpreferer",
            "httpreferrer",
            "requestreferer",
        ],
    ),
    (
        Role::Agent,
        &["useragent", "httpuseragent", "agent", "requestuseragent"],
    ),
];

/// Beginnings of the names of a duration; a unit may follow.
const DURATIONS: [&str; 5] = [
    "requesttime",
    "responsetime",
    "duration",
    "latency",
    "elapsed",
];

/// Objects whose fields are those of the line.
const OBJECTS: [&[u8]; 4] = [b"request", b"response", b"headers", b"http"];

/// A value as it stands in the line, without quotes.
#[derive(Clone, Copy, Default)]
struct Found<'l> {
    raw: &'l [u8],
    /// Place of its name in the list of names, from the end.
    rank: usize,
    /// Nanoseconds of the unit that a duration's name has.
    unit: f64,
    is_text: bool,
}

impl LogParser {
    /// The content of a JSON line. Lines of other events have no status and no time.
    pub(crate) fn json<'l>(&'l mut self, line: &'l [u8]) -> Option<LogEntry<'l>> {
        let mut scan = Scan {
            line,
            at: 1,
            found: [Found::default(); ROLES],
        };
        scan.object(0)?;
        scan.space();
        if scan.at < line.len() {
            return None;
        }
        let found = scan.found;
        self.unescaped.clear();
        let mut places = [(0, 0); ROLES];
        for (value, place) in found.iter().zip(&mut places) {
            if value.is_text && memchr::memchr(b'\\', value.raw).is_some() {
                *place = unescape(&mut self.unescaped, value.raw);
            }
        }
        let unescaped = &self.unescaped;
        let text = |role: Role| match places[role as usize] {
            (0, 0) => present(found[role as usize].raw),
            (from, to) => present(&unescaped[from..to]),
        };
        let Stamp { time, offset } = time(text(Role::Time))?;
        let status = stamp::number(text(Role::Status)).filter(|status| *status < 1000)?;
        let mut entry = LogEntry {
            client: text(Role::Client),
            time,
            offset,
            status: status as u16,
            bytes: digits(text(Role::Bytes)).unwrap_or(0),
            referrer: text(Role::Referrer),
            agent: text(Role::Agent),
            micros: duration(text(Role::Duration), found[Role::Duration as usize].unit),
            ..LogEntry::default()
        };
        entry.set_request(text(Role::Request));
        if found[Role::Method as usize].rank > 0 {
            entry.method = text(Role::Method);
        }
        // A bare path may be one on the disk.
        if found[Role::Target as usize].rank > 1 || entry.target.is_empty() {
            entry.target = text(Role::Target);
        }
        Some(entry)
    }
}

/// Appends a text without its escapes, and returns its place. A text with escapes that JSON does
/// not have stays as it is.
fn unescape(out: &mut Vec<u8>, raw: &[u8]) -> (usize, usize) {
    let from = out.len();
    let quoted = [b"\"", raw, b"\""].concat();
    match serde_json::from_slice::<String>(&quoted) {
        Ok(text) => out.extend_from_slice(text.as_bytes()),
        Err(_) => out.extend_from_slice(raw),
    }
    (from, out.len())
}

fn time(text: &[u8]) -> Option<Stamp> {
    stamp::iso(text)
        .or_else(|| stamp::common(text))
        .or_else(|| stamp::epoch(text))
}

/// Microseconds of a number with a unit behind it, or else in the unit of its name.
fn duration(text: &[u8], unit: f64) -> Option<u64> {
    let end = text
        .iter()
        .position(|byte| !(byte.is_ascii_digit() || b".-+eE".contains(byte)));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let unit = if suffix.is_empty() {
        unit
    } else {
        nanoseconds(suffix)?
    };
    let value: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    (value >= 0.0).then(|| (value * unit / 1e3).round() as u64)
}

fn nanoseconds(unit: &[u8]) -> Option<f64> {
    Some(match unit {
        b"s" | b"seconds" | b"" => 1e9,
        b"ms" | b"millis" => 1e6,
        b"us" | b"micros" | b"\xc2\xb5s" => 1e3,
        b"ns" | b"nanos" => 1.0,
        _ => return None,
    })
}

/// The role of a name with its rank, from 1, and its unit in nanoseconds.
fn role(name: &[u8]) -> Option<(Role, usize, f64)> {
    // Traefik's durations are nanoseconds.
    if name == b"Duration" {
        return Some((Role::Duration, 1, 1.0));
    }
    let mut plain = [0; 24];
    let mut length = 0;
    for byte in name.iter().filter(|byte| !b"_-@".contains(byte)) {
        *plain.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = &plain[..length];
    for (role, names) in NAMES {
        if let Some(at) = names.iter().position(|name| name.as_bytes() == plain) {
            return Some((role, names.len() - at, 0.0));
        }
    }
    let unit = DURATIONS
        .iter()
        .find_map(|name| plain.strip_prefix(name.as_bytes()));
    Some((Role::Duration, 1, nanoseconds(unit?)?))
}

/// Walks over a line once.
struct Scan<'l> {
    line: &'l [u8],
    at: usize,
    found: [Found<'l>; ROLES],
}

impl<'l> Scan<'l> {
    fn space(&mut self) {
        while self.line.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// The next byte that is no space; it stays.
    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.line.get(self.at).copied()
    }

    /// The members of an object, up to and with its brace.
    fn object(&mut self, depth: u32) -> Option<()> {
        loop {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                b',' => self.at += 1,
                b'"' => self.member(depth)?,
                _ => return None,
            }
        }
    }

    fn member(&mut self, depth: u32) -> Option<()> {
        let name = self.text()?;
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        match self.peek()? {
            b'{' if depth < DEEPEST && OBJECTS.contains(&name) => {
                self.at += 1;
                return self.object(depth + 1);
            }
            b'{' => return self.skip(),
            // A field of a head is a list of values.
            b'[' => {
                let begin = self.at;
                self.at += 1;
                if self.peek()? == b'"' {
                    let raw = self.text()?;
                    self.set(name, raw, true);
                }
                self.at = begin;
                return self.skip();
            }
            b'"' => {
                let raw = self.text()?;
                self.set(name, raw, true);
            }
            _ => {
                let rest = &self.line[self.at..];
                let ends = |byte: &u8| b",}]".contains(byte) || byte.is_ascii_whitespace();
                let length = rest.iter().position(ends).filter(|length| *length > 0)?;
                self.at += length;
                self.set(name, &rest[..length], false);
            }
        }
        Some(())
    }

    fn set(&mut self, name: &[u8], raw: &'l [u8], is_text: bool) {
        if let Some((role, rank, unit)) = role(name)
            && rank > self.found[role as usize].rank
            && raw != b"null"
        {
            self.found[role as usize] = Found {
                raw,
                rank,
                unit,
                is_text,
            };
        }
    }

    /// A text, without its quotes.
    fn text(&mut self) -> Option<&'l [u8]> {
        let begin = self.at + 1;
        let mut at = begin;
        loop {
            at += memchr::memchr2(b'"', b'\\', self.line.get(at..)?)?;
            if self.line[at] == b'"' {
                self.at = at + 1;
                return Some(&self.line[begin..at]);
            }
            at += 2;
        }
    }

    /// Passes a list or an object, however deep.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_u32;
        loop {
            match *self.line.get(self.at)? {
                b'"' => {
                    self.text()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<T>(line: &str, then: impl FnOnce(Option<LogEntry<'_>>) -> T) -> T {
        then(LogParser::default().parse(line.as_bytes()))
    }

    #[test]
    fn lines_of_known_servers_say_the_same() {
        let entry = LogEntry {
            client: b"192.0.2.1",
            time: 971_211_336,
            offset: 0,
            method: b"GET",
            target: b"/a?b=1",
            status: 404,
            bytes: 99,
            referrer: b"http://e.org/",
            agent: b"curl/8 \"x\" \xc3\xa9",
            micros: Some(12_500),
        };
        for line in [
            r#"{"remote_addr":"192.0.2.1","time_local":"10/Oct/2000:20:55:36 +0000","request":"GET /a?b=1 HTTP/1.1","status":"404","body_bytes_sent":"99","bytes_sent":"300","request_time":"0.0125","http_referer":"http://e.org/","http_user_agent":"curl/8 \"x\" \u00e9"}"#,
            r#"{ "msec": "971211336.250", "clientip":"192.0.2.1", "verb":"GET", "request":"/a?b=1", "path":"/var/log/x", "response":404, "bytes":99, "referrer":"http://e.org/", "agent":"curl/8 \"x\" é", "latency_ms": 12.5 }"#,
            r#"{"level":"info","ts":971211336.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"1","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=1","headers":{"User-Agent":["curl/8 \"x\" é","y"],"Accept":["*/*"],"Referer":["http://e.org/"]},"tls":{"status":1}},"bytes_read":0,"duration":0.0125,"size":99,"status":404,"resp_headers":{"Date":["x"],"Status":["1"]}}"#,
            r#"{"ClientHost":"192.0.2.1","StartUTC":"2000-10-10T20:55:36.123456789Z","RequestMethod":"GET","RequestPath":"/a?b=1","DownstreamStatus":404,"DownstreamContentSize":99,"Duration":12500000,"request_Referer":"http://e.org/","request_User-Agent":"curl/8 \"x\" é","nothing":null}"#,
            r#"{"time":"2000-10-10T20:55:36Z","ip":"192.0.2.1","method":"GET","url":"/a?b=1","status":404,"size":99,"referer":"http://e.org/","user_agent":"curl/8 \"x\" é","duration":"12.5ms"}"#,
        ] {
            parse(line, |found| assert_eq!(found, Some(entry), "{line}"));
        }
    }

    #[test]
    fn other_events_and_damaged_lines_are_no_entries() {
        for line in [
            "{}",
            "{",
            r#"{"level":"info","ts":971211336.5,"msg":"serving initial configuration"}"#,
            r#"{"time":"2000-10-10T20:55:36Z","status":404"#,
            r#"{"time":"2000-10-10T20:55:36Z","status":404} x"#,
            r#"{"time":"2000-10-10T20:55:36Z","status":"4040"}"#,
            r#"{"time":"never","status":404}"#,
            r#"{"time":["2000"#,
            r#"{"time":{{{["#,
            r#"{"time""#,
            r#"{"time":"2000-10-10T20:55:36Z\"#,
            r#"{"a":,"time":"2000-10-10T20:55:36Z","status":404}"#,
        ] {
            parse(line, |entry| assert_eq!(entry, None, "{line}"));
        }
        let odd = r#"{"time":"2000-10-10T20:55:36Z","status":404,"a":{"b":[{"c":"]}"}]},"method":"-","uri":"\x22"}"#;
        parse(odd, |entry| {
            let entry = entry.unwrap();
            assert_eq!((entry.method, entry.target), (&b""[..], &br"\x22"[..]));
        });
    }
}
