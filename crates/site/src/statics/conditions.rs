//! Conditions and ranges for files on disk (RFC 9110 sections 13 and 14), with the meaning they have for
//! [`millpond_http::Prepared`]; here there is one entity tag and no coding.

use std::time::{Duration, SystemTime};

use millpond_http::Request;

/// A date is a strong validator only if the content cannot have changed twice in its second without being noticed
/// (section 8.8.2.2).
const STRONG_AFTER: Duration = Duration::from_secs(60);

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// 200.
    Full,
    /// 206 with the bytes `first..=last`.
    Part { first: u64, last: u64 },
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Unsatisfiable,
}

/// Decides in the order of section 13.2.2. `etag` is strong and has its quotes.
pub(super) fn evaluate(
    request: &Request<'_>,
    etag: &str,
    modified: SystemTime,
    len: u64,
) -> Outcome {
    if !matches!(request.method, "GET" | "HEAD") {
        return Outcome::Full;
    }
    let fields = &request.fields;
    let modified = whole_seconds(modified);
    let listed = |name: &str, strongly: bool| {
        fields
            .get_all(name)
            .any(|list| list == b"*" || names(list, etag, strongly))
    };
    if fields.get("if-match").is_some() {
        if !listed("if-match", true) {
            return Outcome::Failed;
        }
    } else if date(request, "if-unmodified-since").is_some_and(|date| modified > date) {
        return Outcome::Failed;
    }
    if fields.get("if-none-match").is_some() {
        // With it If-Modified-Since is ignored, even if no tag matches.
        if listed("if-none-match", false) {
            return Outcome::NotModified;
        }
    } else if date(request, "if-modified-since").is_some_and(|date| modified <= date) {
        return Outcome::NotModified;
    }
    match range(request) {
        Some(range) if if_range_holds(request, etag, modified) => part(range, len),
        _ => Outcome::Full,
    }
}

/// Whether a list of entity tags, such as `"a", W/"b"`, has this one.
fn names(mut list: &[u8], etag: &str, strongly: bool) -> bool {
    while let Some(start) = list.iter().position(|b| !matches!(b, b' ' | b'\t' | b',')) {
        let rest = &list[start..];
        let (weak, tag) = rest
            .strip_prefix(b"W/")
            .map_or((false, rest), |r| (true, r));
        let closing = tag.iter().skip(1).position(|&b| b == b'"');
        // What is malformed ends the list: nothing after it can be read for certain.
        let (Some(b'"'), Some(closing)) = (tag.first(), closing) else {
            return false;
        };
        let (tag, after) = tag.split_at(closing + 2);
        if tag == etag.as_bytes() && !(weak && strongly) {
            return true;
        }
        list = after;
    }
    false
}

/// Section 13.1.5: a range is of the content that the client has a part of, or of none.
fn if_range_holds(request: &Request<'_>, etag: &str, modified: SystemTime) -> bool {
    let Some(value) = request.fields.get("if-range") else {
        return true;
    };
    if value.contains(&b'"') {
        return value == etag.as_bytes();
    }
    let strong = SystemTime::now()
        .duration_since(modified)
        .is_ok_and(|age| age >= STRONG_AFTER);
    strong && date(request, "if-range") == Some(modified)
}

/// The Range field, if it applies: one of them, to GET (section 14.2).
fn range<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    let mut all = request.fields.get_all("range");
    let first = all.next().filter(|_| request.method == "GET")?;
    all.next().is_none().then_some(first)
}

/// Reads `bytes=first-last`, `bytes=first-` and `bytes=-length` (section 14.1.2). Another unit, what is malformed and
/// several ranges are answered in full, as section 14.2 allows.
fn part(range: &[u8], len: u64) -> Outcome {
    let bounds = split_once(range, b'=')
        .filter(|(unit, _)| unit.eq_ignore_ascii_case(b"bytes"))
        .and_then(|(_, set)| split_once(set.trim_ascii(), b'-'));
    let (first, last) = match bounds {
        Some((b"", suffix)) => match number(suffix) {
            Some(0) => return Outcome::Unsatisfiable,
            Some(suffix) => (len.saturating_sub(suffix), u64::MAX),
            None => return Outcome::Full,
        },
        Some((first, b"")) => match number(first) {
            Some(first) => (first, u64::MAX),
            None => return Outcome::Full,
        },
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last),
            _ => return Outcome::Full,
        },
        None => return Outcome::Full,
    };
    if first >= len {
        return Outcome::Unsatisfiable;
    }
    Outcome::Part {
        first,
        last: last.min(len - 1),
    }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let index = bytes.iter().position(|&byte| byte == at)?;
    Some((&bytes[..index], &bytes[index + 1..]))
}

/// `1*DIGIT`; what overflows is past the end of any file, so it saturates.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    }))
}

/// A date field; a malformed one is as if it were not there.
fn date(request: &Request<'_>, name: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(request.fields.get(name)?).ok()?).ok()
}

/// HTTP dates have whole seconds.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}
