//! Lines of an access log in the common or combined format.

use std::io::{self, BufRead, Read as _};

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// Bytes of a line at most; longer ones are damaged.
const LONGEST: u64 = 64 * 1024;
/// Length of a time between its brackets.
const STAMP: usize = 26;
const FORMAT: &[BorrowedFormatItem<'static>] = format_description!(
    "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]"
);

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogLine<'l> {
    /// Seconds since 1970.
    pub(super) time: i64,
    /// Method and target; `None` if the request cannot be repeated.
    pub(super) request: Option<(&'l [u8], &'l [u8])>,
    pub(super) status: u16,
}

/// Reads lines; times are parsed once for each second.
#[derive(Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    stamp: Vec<u8>,
    time: i64,
}

impl Lines {
    /// The next line of `input`: `None` at the end, `Some(None)` if it is damaged.
    pub(super) fn next(
        &mut self,
        input: &mut dyn BufRead,
    ) -> io::Result<Option<Option<LogLine<'_>>>> {
        self.line.clear();
        let length = (&mut *input)
            .take(LONGEST)
            .read_until(b'\n', &mut self.line)?;
        if length == 0 {
            return Ok(None);
        }
        if length as u64 == LONGEST && self.line.last() != Some(&b'\n') {
            input.skip_until(b'\n')?;
            return Ok(Some(None));
        }
        Ok(Some(self.parse()))
    }

    /// `host ident user [time] "request" status …`
    fn parse(&mut self) -> Option<LogLine<'_>> {
        let line = self.line.trim_ascii();
        let at = memchr::memmem::find(line, b" [")? + 2;
        let (stamp, rest) = line[at..].split_at_checked(STAMP)?;
        if self.stamp != stamp {
            let text = std::str::from_utf8(stamp).ok()?;
            self.time = OffsetDateTime::parse(text, FORMAT).ok()?.unix_timestamp();
            self.stamp.clear();
            self.stamp.extend_from_slice(stamp);
        }
        let rest = rest.strip_prefix(b"] \"")?;
        let end = end_of_quoted(rest)?;
        let (request, rest) = rest.split_at(end);
        let status = rest
            .get(2..5)
            .filter(|status| status.iter().all(u8::is_ascii_digit))?;
        if rest[1] != b' ' || rest.get(5).is_some_and(|&byte| byte != b' ') {
            return None;
        }
        let digit = |n: usize| u16::from(status[n] - b'0');
        Some(LogLine {
            time: self.time,
            request: split(request),
            status: 100 * digit(0) + 10 * digit(1) + digit(2),
        })
    }
}

/// Returns the place of the closing quote: the first one without a backslash before it.
fn end_of_quoted(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// `GET /x HTTP/1.1`, with a target that is a path.
fn split(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = request.split(|&byte| byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    // Only HTTP/0.9 has no version. More words are a target with spaces, which no client may send.
    let ends = words
        .next()
        .is_none_or(|version| version.starts_with(b"HTTP/"))
        && words.next().is_none();
    let is_path = target.starts_with(b"/") && target.iter().all(u8::is_ascii_graphic);
    (is_method && ends && is_path).then_some((method, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (i64, Option<(String, String)>, u16);

    fn parse(text: &str) -> Option<Told> {
        let mut lines = Lines::default();
        let line = lines.next(&mut text.as_bytes()).unwrap().unwrap()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let request = line
            .request
            .map(|(method, target)| (text(method), text(target)));
        Some((line.time, request, line.status))
    }

    #[test]
    fn both_formats_are_read() {
        let request = Some(("GET".to_owned(), "/apache_pb.gif".to_owned()));
        let common = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
        assert_eq!(parse(common), Some((971_211_336, request.clone(), 200)));
        let combined =
            format!("{common} \"http://e.org/\\\"x\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"\r\n");
        assert_eq!(parse(&combined), Some((971_211_336, request, 200)));
        let quoted = r#"::1 - a b [01/Jan/1970:00:00:01 +0000] "GET /a\"b HTTP/1.1" 404 -"#;
        assert_eq!(
            parse(quoted),
            Some((1, Some(("GET".into(), "/a\\\"b".into())), 404))
        );
    }

    #[test]
    fn lines_without_a_request_differ_from_damaged_lines() {
        let with = |request: &str| {
            parse(&format!(
                "h - - [01/Jan/1970:00:00:00 +0000] \"{request}\" 400 0"
            ))
        };
        for request in [
            "-",
            "",
            r"\x16\x03\x01",
            "GET http://other/ HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET /a b c",
        ] {
            assert_eq!(with(request), Some((0, None, 400)), "{request}");
        }
        for damaged in [
            "\n",
            "no log at all",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1",
            "h - - [32/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 20 1",
            "h - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 2000",
            "h - - [01/Jan/1970:00:00:00 +0000] GET / 200 1",
            "h - - [01/Jan/19",
        ] {
            assert_eq!(parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn an_endless_line_is_damaged_and_the_next_one_is_not() {
        let long =
            "x".repeat(1 << 20) + "\nh - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n";
        let (mut input, mut lines) = (long.as_bytes(), Lines::default());
        assert_eq!(lines.next(&mut input).unwrap(), Some(None));
        assert!(lines.next(&mut input).unwrap().unwrap().is_some());
        assert!(lines.next(&mut input).unwrap().is_none());
    }
}
