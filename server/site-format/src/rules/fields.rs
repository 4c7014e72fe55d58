//! Fields that the configuration adds to responses.

use bytes::Bytes;
use millpond_http::Response;

use super::{RulePosition, pattern::PathPattern};

/// Fields for the responses at some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    pub path: PathPattern,
    /// Names and values, checked by [`check_field`].
    pub set: Vec<(String, String)>,
    pub place: RulePosition,
}

/// Fields that the server itself sends of a response, or of the connection. A second field would
/// contradict the first one.
const OWN: &str = "\
    accept-ranges age allow cache-control cache-status connection content-encoding content-length \
    content-location content-range content-type date etag keep-alive last-modified location \
    proxy-connection retry-after server-timing te trailer transfer-encoding upgrade vary \
    x-content-type-options";

/// Checks that a response may have this field; an error is a sentence and advice.
pub fn check_field(name: &str, value: &str) -> Result<(), (String, String)> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        let message = format!("`{name}` is no name of a field");
        return Err((message, "a name is such as X-Frame-Options".to_owned()));
    }
    if OWN.split(' ').any(|own| own.eq_ignore_ascii_case(name)) {
        let advice = match name.to_ascii_lowercase().as_str() {
            "cache-control" => {
                "files whose names change with their content may be kept for a year: static.immutable"
            }
            "location" => "an address that leads to another is a [[redirect]]",
            _ => "leave it out",
        };
        return Err((format!("{name} is the server's own"), advice.to_owned()));
    }
    // RFC 9110 section 5.5. A line break in a value would begin another field, or the body.
    let is_plain = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    if !value.bytes().all(is_plain) || value.trim() != value {
        let message = format!("the value of {name} cannot stand in a response");
        let advice = "a value is one line of ASCII without spaces at its ends";
        return Err((message, advice.to_owned()));
    }
    Ok(())
}

/// The rules, with their lines rendered.
#[derive(Debug, Default)]
pub(super) struct ResponseFields {
    rules: Vec<(PathPattern, Lines)>,
}

/// Field lines to be added to a response.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    plain: Bytes,
    /// The fields of a hit.
    hit: Bytes,
    /// The fields behind those of a hit, so that a hit need not put them together.
    with_hit: Bytes,
}

impl ResponseFields {
    pub(super) fn new(rules: &[FieldRule], hit: &Bytes) -> Self {
        let rules = rules.iter().map(|rule| {
            let lines = rule
                .set
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"));
            (
                rule.path.clone(),
                Lines::new(lines.collect::<String>().into(), hit),
            )
        });
        Self {
            rules: rules.collect(),
        }
    }

    /// The lines of all rules that match, in their order. Allocates only where there are several.
    pub(super) fn at(&self, path: &str) -> Option<Lines> {
        let mut matching = self.rules.iter().filter(|(rule, _)| rule.matches(path));
        let (_, first) = matching.next()?;
        let Some((_, second)) = matching.next() else {
            return Some(first.clone());
        };
        let mut all = first.plain.to_vec();
        all.extend_from_slice(&second.plain);
        for (_, more) in matching {
            all.extend_from_slice(&more.plain);
        }
        Some(Lines::new(all, &first.hit))
    }
}

impl Lines {
    fn new(lines: Vec<u8>, hit: &Bytes) -> Self {
        Self {
            hit: hit.clone(),
            with_hit: [&hit[..], &lines].concat().into(),
            plain: lines.into(),
        }
    }

    /// The response with these lines as well, but for those that it has.
    pub(super) fn add_to(&self, response: Response) -> Response {
        let lines = match &response.extra()[..] {
            b"" => self.plain.clone(),
            extra if *extra == self.hit[..] => self.with_hit.clone(),
            other => merged(other, &self.plain).into(),
        };
        response.with_extra(lines)
    }
}

/// Lines, and behind them those of `more` that are none of them. A page that answers a form has the
/// lines of its own path already. A page of the server's own has its own policy.
fn merged(lines: &[u8], more: &[u8]) -> Vec<u8> {
    const POLICY: &[u8] = b"content-security-policy:";
    let is_policy = |line: &[u8]| {
        let name = line.get(..POLICY.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(POLICY))
    };
    let of = |text: &'_ [u8], line: &[u8]| {
        let mut own = text.split_inclusive(|byte| *byte == b'\n');
        own.any(|own| own == line || is_policy(own) && is_policy(line))
    };
    let more = more.split_inclusive(|byte| *byte == b'\n');
    let new = more.filter(|line| !of(lines, line));
    let new: Vec<&[u8]> = new.collect();
    [lines, &new.concat()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_may_not_be_set() {
        for (name, value, said) in [
            ("", "x", "no name"),
            ("X Y", "x", "no name"),
            ("X:", "x", "no name"),
            ("X\r\nY", "x", "no name"),
            ("content-length", "1", "the server's own"),
            ("Transfer-Encoding", "chunked", "the server's own"),
            ("ETag", "\"x\"", "the server's own"),
            ("X-A", "a\r\nX-B: b", "cannot stand"),
            ("X-A", "a\nb", "cannot stand"),
            ("X-A", "a\0b", "cannot stand"),
            ("X-A", "ä", "cannot stand"),
            ("X-A", " a", "cannot stand"),
        ] {
            let (error, _) = check_field(name, value).expect_err(name);
            assert!(error.contains(said), "{name}: {error}");
        }
        assert!(check_field("Content-Security-Policy", "default-src 'self'; img-src *").is_ok());
        assert!(check_field("X-Empty", "").is_ok());
    }

    #[test]
    fn a_line_stands_once() {
        let merged = |lines: &str, more: &str| {
            String::from_utf8(merged(lines.as_bytes(), more.as_bytes())).unwrap()
        };
        assert_eq!(
            merged("A: 1\r\nB: 2\r\n", "B: 2\r\nA: 12\r\n"),
            "A: 1\r\nB: 2\r\nA: 12\r\n"
        );
        assert_eq!(merged("", "A: 1\r\n"), "A: 1\r\n");
        let policies = (
            "Content-Security-Policy: a\r\n",
            "content-security-policy: b\r\nA: 1\r\n",
        );
        assert_eq!(
            merged(policies.0, policies.1),
            "Content-Security-Policy: a\r\nA: 1\r\n"
        );
    }
}
