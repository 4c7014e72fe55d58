//! JSON lines, as nginx, Caddy, Traefik and others write them. Their fields have many names.

use serde_json::{Map, Value};

use crate::entry::{LogEntry, LogParser, client, digits, present};
use crate::stamp::{self, Stamp};

/// Contents of fields; a duration is the last one.
#[derive(Clone, Copy)]
enum Role {
    Client,
    Time,
    Request,
    Method,
    Target,
    Query,
    Status,
    Bytes,
    Referrer,
    Agent,
    Duration,
}

const DURATION: usize = Role::Duration as usize;

/// Names of the fields of each role in small letters without `_`, `-`, `.` and `@`, the best one
/// first.
#[rustfmt::skip]
const NAMES: [&[&str]; DURATION] = [
    &["clientip", "remoteip", "remoteaddr", "clienthost", "clientaddress", "client", "remote", "ip"],
    &["msec", "ts", "timestamp", "time", "timelocal", "timeiso8601", "startutc", "timeepoch", "date"],
    &["request", "requestline"],
    &["method", "requestmethod", "verb", "httpmethod", "httprequestmethod"],
    &["requesturi", "uri", "url", "target", "urlpath", "requestpath", "path"],
    &["urlquery"],
    &["status", "statuscode", "downstreamstatus", "responsestatus", "responsecode", "httpresponsestatuscode", "response"],
    &["bodybytessent", "size", "bytes", "bytessent", "responsesize", "downstreamcontentsize", "sentlength", "byteswritten", "httpresponsebodysize"],
    &["referer", "referrer", "httpreferer", "httpreferrer", "requestreferer", "httprequestheaderreferer"],
    &["useragent", "httpuseragent", "agent", "requestuseragent", "useragentoriginal"],
];

/// Beginnings of the names of a duration; a unit may follow.
const DURATIONS: [&str; 6] = [
    "requesttime",
    "responsetime",
    "duration",
    "latency",
    "elapsed",
    "httpserverrequestduration",
];

/// Objects whose fields are those of the line.
const OBJECTS: [&str; 4] = ["request", "response", "headers", "http"];

/// The best value for each role, with the place of its name and the nanoseconds of its unit.
type Found<'v> = [Option<(usize, f64, &'v Value)>; DURATION + 1];

impl LogParser {
    /// The content of a JSON line. Lines of other events have no status or no time.
    pub(crate) fn json(&mut self, line: &[u8]) -> Option<LogEntry<'_>> {
        let line = String::from_utf8_lossy(line);
        // nginx writes escapes that JSON does not have, unless it is told to write JSON.
        let document = serde_json::from_str(&line);
        let document = document.or_else(|_| serde_json::from_str(&line.replace("\\x", "\\\\x")));
        self.document = document.ok()?;
        let mut found = Found::default();
        collect(self.document.as_object()?, false, &mut found);
        let value = |role: Role| found[role as usize].map(|(.., value)| value);
        let text = |role: Role| {
            let text = value(role).and_then(Value::as_str);
            text.map_or(&b""[..], |text| present(text.as_bytes()))
        };
        let whole = |role: Role| value(role)?.as_u64().or_else(|| digits(text(role)));
        let Stamp { time, offset } = match value(Role::Time)? {
            Value::Number(number) => stamp::epoch(number.as_f64()?)?,
            _ => time(text(Role::Time))?,
        };
        let mut entry = LogEntry {
            client: client(text(Role::Client)),
            time,
            offset,
            status: whole(Role::Status).filter(|status| *status < 1000)? as u16,
            bytes: whole(Role::Bytes).unwrap_or(0),
            referrer: text(Role::Referrer),
            agent: text(Role::Agent),
            micros: found[DURATION].and_then(|(_, unit, value)| duration(value, unit)),
            ..LogEntry::default()
        };
        entry.set_request(text(Role::Request));
        if found[Role::Method as usize].is_some() {
            entry.method = text(Role::Method);
        }
        // A bare path may be one on the disk.
        let target = found[Role::Target as usize];
        if target.is_some_and(|(place, ..)| place < 6 || entry.target.is_empty()) {
            entry.target = text(Role::Target);
        }
        let query = text(Role::Query);
        if !query.is_empty() {
            self.target.clear();
            for part in [entry.target, b"?", query] {
                self.target.extend_from_slice(part);
            }
            entry.target = &self.target;
        }
        Some(entry)
    }
}

/// Of the fields of a head, which the client chooses, only referrer and agent count.
fn collect<'v>(object: &'v Map<String, Value>, is_head: bool, found: &mut Found<'v>) {
    for (name, value) in object {
        // Traefik writes a field `Date` of the request as `request_Date`.
        let field = name.strip_prefix("request_").unwrap_or_default();
        let is_head = is_head || name == "headers" || field.starts_with(char::is_uppercase);
        // A field of a head is a list of values.
        let value = value.as_array().map_or(Some(value), |list| list.first());
        match value {
            None | Some(Value::Null | Value::Array(_)) => {}
            Some(Value::Object(inner)) if OBJECTS.contains(&name.as_str()) => {
                collect(inner, is_head, found);
            }
            Some(Value::Object(_)) => {}
            Some(value) => {
                let heads = [Role::Referrer as usize, Role::Agent as usize];
                if let Some((role, place, unit)) = role(name)
                    && (!is_head || heads.contains(&role))
                    && found[role].is_none_or(|(before, ..)| place < before)
                {
                    found[role] = Some((place, unit, value));
                }
            }
        }
    }
}

/// The role of a name, its place in the list of names, and its unit in nanoseconds.
fn role(name: &str) -> Option<(usize, usize, f64)> {
    // Traefik's durations are nanoseconds.
    if name == "Duration" {
        return Some((DURATION, 0, 1.0));
    }
    let mut plain = name.replace(['_', '-', '.', '@'], "");
    plain.make_ascii_lowercase();
    let named = |(role, names): (usize, &&[&str])| {
        let place = names.iter().position(|name| *name == plain);
        place.map(|place| (role, place, 0.0))
    };
    NAMES.iter().enumerate().find_map(named).or_else(|| {
        let unit = DURATIONS.iter().find_map(|name| plain.strip_prefix(name));
        Some((DURATION, 0, nanoseconds(unit?)?))
    })
}

fn time(text: &[u8]) -> Option<Stamp> {
    let number = || stamp::epoch(std::str::from_utf8(text).ok()?.parse().ok()?);
    stamp::iso(text)
        .or_else(|| stamp::common(text))
        .or_else(number)
}

/// Microseconds of a number with a unit behind it, or else in the unit of its name.
fn duration(value: &Value, unit: f64) -> Option<u64> {
    let (value, unit) = match value.as_str() {
        None => (value.as_f64()?, unit),
        Some(text) => {
            let number = text.trim_end_matches(|c: char| c.is_alphabetic());
            let suffix = &text[number.len()..];
            let given = if suffix.is_empty() {
                unit
            } else {
                nanoseconds(suffix)?
            };
            (number.parse().ok()?, given)
        }
    };
    (value >= 0.0).then(|| (value * unit / 1e3).round() as u64)
}

fn nanoseconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" | "seconds" | "" => 1e9,
        "ms" | "millis" => 1e6,
        "us" | "micros" | "µs" => 1e3,
        "ns" | "nanos" => 1.0,
        _ => return None,
    })
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
            r#"{"level":"info","ts":971211336.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.1","remote_port":"1","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b=1","headers":{"User-Agent":["curl/8 \"x\" é","y"],"Client-Ip":["203.0.113.9"],"Msec":["1"],"Body-Bytes-Sent":["18446744073709551615"],"Request-Uri":["/forged"],"Request":["GET /forged HTTP/1.1"],"Request-Time":["9"],"http":{"Status":["500"]},"Accept":["*/*"],"Referer":["http://e.org/"]},"tls":{"status":1}},"bytes_read":0,"duration":0.0125,"size":99,"status":404,"resp_headers":{"Date":["x"],"Status":["1"]}}"#,
            r#"{"ClientHost":"192.0.2.1","StartUTC":"2000-10-10T20:55:36.123456789Z","RequestMethod":"GET","RequestPath":"/a?b=1","DownstreamStatus":404,"DownstreamContentSize":99,"Duration":12500000,"request_Uri":"/forged","request_Time":"9","request_Referer":"http://e.org/","request_User-Agent":"curl/8 \"x\" é","nothing":null}"#,
            r#"{"timestamp":"2000-10-10T20:55:36Z","client.address":"192.0.2.1","http.request.method":"GET","url.path":"/a","url.query":"b=1","network.protocol.version":"2","http.request.header.referer":"http://e.org/","user_agent.original":"curl/8 \u0022x\u0022 \u00E9","http.response.status_code":404,"http.response.body.size":99,"http.server.request.duration":0.012500}"#,
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
