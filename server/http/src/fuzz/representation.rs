//! Ranges, conditions and preferences, as a prepared representation answers them.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use lab_torture::{Choices, http::words};

use super::corpus;
use crate::response::Body;
use crate::syntax::is_field_value;
use crate::{Coding, OwnedRequest, Parts, Prepared, Response};

/// When the page was last changed: 784,111,777 s.
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn page() -> Prepared {
    let lines: String = (0..300)
        .map(|n| format!("line {n} of the page\n"))
        .collect();
    Prepared::new(Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: lines.into(),
        last_modified: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)),
        compressible: true,
    })
}

static PLAIN: LazyLock<Prepared> = LazyLock::new(page);

/// The page with every coding made.
static CODED: LazyLock<Prepared> = LazyLock::new(|| {
    let page = page();
    assert!(Coding::ALL.into_iter().all(|coding| page.make(coding) > 0));
    page
});

/// Makes a value that a field can have once a head is parsed.
fn value(input: &[u8]) -> Vec<u8> {
    let bytes: Vec<u8> = input
        .iter()
        .copied()
        .filter(|&b| is_field_value(b))
        .collect();
    bytes.trim_ascii().to_vec()
}

fn respond(page: &Prepared, method: &str, fields: &[(&str, &[u8])]) -> Response {
    let request = fields
        .iter()
        .fold(OwnedRequest::new(method, "/"), |request, (name, value)| {
            request.field(name, value)
        });
    page.respond(&request.as_request(), Bytes::new())
}

/// The content of a response from memory.
fn content(response: &Response) -> Bytes {
    bytes(response.body())
}

fn bytes(body: &Body) -> Bytes {
    match body {
        Body::Bytes(bytes) => bytes.clone(),
        Body::Empty => Bytes::new(),
        body => panic!("not from memory: {body:?}"),
    }
}

#[test]
fn ranges() {
    let corpus = corpus("ranges", &words::VALUES);
    bolero::check!(name = "ranges")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for input in corpus.inputs(engine) {
                let range = value(&input);
                check_range(&range, &respond(&PLAIN, "GET", &[("Range", &range)]));
                // Without a matching validator there is no part (RFC 9110 section 13.1.5).
                let fields: [(&str, &[u8]); 2] = [("Range", &range), ("If-Range", b"\"other\"")];
                let whole = respond(&PLAIN, "GET", &fields);
                assert_eq!(
                    (whole.status(), content(&whole)),
                    (200, bytes(PLAIN.body()))
                );
            }
        });
}

/// For any range, the parts that are sent are those that the response names, and never much longer
/// than the page itself.
fn check_range(range: &[u8], response: &Response) {
    let shown = range.escape_ascii();
    let (page, body) = (bytes(PLAIN.body()), content(response));
    assert!(
        body.len() <= 2 * page.len(),
        "{} bytes for {shown}",
        body.len()
    );
    if let Some(expected) = one_range(range, page.len()) {
        let got = (
            response.status(),
            response.field("content-range").map(str::to_owned),
        );
        assert_eq!(got, expected, "{shown}");
    }
    match response.status() {
        200 => assert_eq!(body, page, "{shown}"),
        416 => {
            let unsatisfied = format!("bytes */{}", page.len());
            assert_eq!(
                response.field("content-range"),
                Some(&*unsatisfied),
                "{shown}"
            );
        }
        206 => match response.field("content-range") {
            Some(part) => assert_eq!(body, page[place(part, page.len())], "{shown}"),
            None => check_parts(response, &body, &page),
        },
        status => panic!("{status} for {shown}"),
    }
}

/// Returns the answer to exactly one plain range (RFC 9110 section 14.1.2); none where the field is
/// anything else.
fn one_range(range: &[u8], len: usize) -> Option<(u16, Option<String>)> {
    let range = std::str::from_utf8(range).ok()?.strip_prefix("bytes=")?;
    let (first, last) = range.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(first) || !is_number(last) || range.len() == 1 || range.len() > 30 {
        return None;
    }
    let len = len as u128;
    let (first, last) = match (first.parse::<u128>().ok(), last.parse::<u128>().ok()) {
        (Some(first), Some(last)) if last < first => return Some((200, None)),
        (Some(first), last) => (first, last.unwrap_or(u128::MAX)),
        (None, Some(0)) => (len, 0),
        (None, suffix) => (len.saturating_sub(suffix?), u128::MAX),
    };
    Some(if first >= len {
        (416, Some(format!("bytes */{len}")))
    } else {
        (
            206,
            Some(format!("bytes {first}-{}/{len}", last.min(len - 1))),
        )
    })
}

/// The bytes that `bytes first-last/len` names.
fn place(part: &str, len: usize) -> std::ops::RangeInclusive<usize> {
    let (range, whole) = part
        .strip_prefix("bytes ")
        .and_then(|part| part.split_once('/'))
        .expect("a Content-Range");
    let (first, last) = range.split_once('-').expect("two places");
    assert_eq!(whole, len.to_string());
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    assert!(first <= last && last < len, "{part}");
    first..=last
}

/// RFC 9110 section 14.6: parts of a multipart response, each with its place.
fn check_parts(response: &Response, body: &[u8], page: &[u8]) {
    let media_type = response.field("content-type").unwrap_or_default();
    let boundary = media_type.strip_prefix("multipart/byteranges; boundary=");
    let boundary = boundary.unwrap_or_else(|| panic!("parts in {media_type}"));
    let boundary = format!("--{}", boundary.trim_matches('"'));
    let body = String::from_utf8_lossy(body);
    let mut parts = body.split(&*boundary);
    assert!(parts.next().is_some_and(|before| before.trim().is_empty()));
    for (count, part) in parts.enumerate() {
        if part.starts_with("--") {
            assert_eq!(part.trim_end(), "--", "after the last part");
            assert!(count > 1, "one part needs no boundary");
            return;
        }
        let (head, content) = part.split_once("\r\n\r\n").expect("a part's head");
        let place_of = |line: &str| {
            line.to_ascii_lowercase()
                .strip_prefix("content-range: ")
                .map(str::to_owned)
        };
        let part = head.lines().find_map(place_of).expect("a part's place");
        let expected = &page[place(&part, page.len())];
        assert_eq!(content.as_bytes().strip_suffix(b"\r\n"), Some(expected));
    }
    panic!("parts without an end: {body}");
}

/// Variant of the page that a client might know, and the answer to its condition.
#[derive(Clone, Copy)]
struct ExpectedVariant {
    tag: &'static str,
    strongly: bool,
    weakly: bool,
}

const KNOWN: [ExpectedVariant; 6] = [
    known("\"other\"", false, false),
    known("ETAG", true, true),
    known("W/ETAG", false, true),
    known("W/\"other\", ETAG", true, true),
    known("\"\" , W/ETAG,\"a,b\"", false, true),
    known("*", true, true),
];

const fn known(tag: &'static str, strongly: bool, weakly: bool) -> ExpectedVariant {
    ExpectedVariant {
        tag,
        strongly,
        weakly,
    }
}

/// A field that is there or not, chosen by `choices`.
fn maybe<T: Copy>(choices: &mut Choices<'_>, all: &[T]) -> Option<T> {
    choices
        .chance(50)
        .then(|| choices.pick(all).copied())
        .flatten()
}

/// Every combination of conditions is answered as RFC 9110 section 13.2.2 orders.
#[test]
fn conditions() {
    bolero::check!(name = "conditions")
        .with_max_len(64)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let match_ = maybe(&mut choices, &KNOWN);
            let none_match = maybe(&mut choices, &KNOWN);
            let dates = [(EARLIER, -1), (DATE, 0), (LATER, 1)];
            let unmodified = maybe(&mut choices, &dates);
            let since = maybe(&mut choices, &dates);
            let if_range = maybe(&mut choices, &KNOWN[..3]);
            let range = choices.chance(50);
            let method = if choices.chance(30) { "HEAD" } else { "GET" };
            let mut fields = Vec::new();
            let mut add = |name, text: Option<String>| fields.extend(text.map(|text| (name, text)));
            let tag = |known: Option<ExpectedVariant>| {
                known.map(|known| known.tag.replace("ETAG", PLAIN.etag()))
            };
            add("If-Match", tag(match_));
            add(
                "If-Unmodified-Since",
                unmodified.map(|(date, _)| date.to_owned()),
            );
            add("If-None-Match", tag(none_match));
            add("If-Modified-Since", since.map(|(date, _)| date.to_owned()));
            add("If-Range", tag(if_range));
            add("Range", range.then(|| "bytes=2-5".to_owned()));
            let fails = match match_ {
                Some(known) => !known.strongly,
                None => unmodified.is_some_and(|(_, order)| order < 0),
            };
            let is_same = match none_match {
                Some(known) => known.weakly,
                None => since.is_some_and(|(_, order)| order >= 0),
            };
            let is_part = range && method == "GET" && if_range.is_none_or(|known| known.strongly);
            let expected = match (fails, is_same, is_part) {
                (true, ..) => 412,
                (_, true, _) => 304,
                (.., true) => 206,
                _ => 200,
            };
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, text)| (*name, text.as_bytes()))
                .collect();
            let response = respond(&PLAIN, method, &fields);
            assert_eq!(response.status(), expected, "{method} {fields:?}");
        });
}

/// For any condition, the status is one of five, and the body and the fields fit the status.
#[test]
fn broken_conditions() {
    const NAMES: [&str; 6] = [
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Range",
    ];
    let corpus = corpus("broken_conditions", &words::VALUES);
    bolero::check!(name = "broken_conditions")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let values: Vec<_> = (0..=choices.below(3))
                .map(|_| value(&corpus.mutated(&mut choices)))
                .collect();
            let names = values
                .iter()
                .map(|_| choices.pick(&NAMES).copied().unwrap_or("Range"));
            let fields: Vec<(&str, &[u8])> = names.zip(values.iter().map(Vec::as_slice)).collect();
            let response = respond(&CODED, "GET", &fields);
            let has = |name| fields.iter().any(|(field, _)| *field == name);
            let is_fair = match response.status() {
                200 => content(&response) == bytes(CODED.body()),
                206 | 416 => has("Range"),
                304 => {
                    content(&response).is_empty()
                        && (has("If-None-Match") || has("If-Modified-Since"))
                }
                412 => has("If-Match") || has("If-Unmodified-Since"),
                _ => false,
            };
            assert!(is_fair, "{} for {fields:?}", response.status());
        });
}

/// No client gets a coding that it has refused or not named, and a client gets the coding that it
/// prefers.
#[test]
fn accepted_codings() {
    let corpus = corpus("accepted_codings", &words::VALUES);
    bolero::check!(name = "accepted_codings")
        .with_max_len(256)
        .for_each(|engine: &[u8]| {
            for input in corpus.inputs(engine) {
                let list = value(&input);
                let response = respond(&CODED, "GET", &[("Accept-Encoding", &list)]);
                let got = response.field("content-encoding").unwrap_or("identity");
                check_coding(&list, got);
                if got == "identity" && response.status() == 200 {
                    assert_eq!(content(&response), bytes(CODED.body()));
                }
            }
        });
}

fn check_coding(list: &[u8], got: &str) {
    let shown = list.escape_ascii();
    let lower = list.to_ascii_lowercase();
    let text = String::from_utf8_lossy(&lower);
    let is_named = got == "identity" || text.contains(got) || text.contains('*');
    assert!(is_named, "{got} for {shown}");
    let Some(qualities) = qualities(&text) else {
        return;
    };
    let of = |name: &str| {
        let named = |wanted: &str| qualities.iter().find(|(name, _)| *name == wanted);
        named(name)
            .or_else(|| named("*"))
            .map(|(_, quality)| *quality)
    };
    assert!(got == "identity" || of(got) > Some(0), "{got} for {shown}");
    let all = Coding::ALL.map(|coding| (coding.name(), of(coding.name()).unwrap_or(0)));
    let as_it_is = qualities.iter().find(|(name, _)| *name == "identity");
    let as_it_is = as_it_is.map_or(0, |(_, quality)| *quality);
    for (name, quality) in all {
        let is_best = all
            .iter()
            .all(|(other, less)| *other == name || *less < quality);
        if is_best && quality > as_it_is {
            assert_eq!(got, name, "{shown}");
        }
    }
}

/// The names and qualities, in thousandths, of a list that follows the grammar and names nothing
/// twice (RFC 9110 sections 12.4.2 and 12.5.3).
fn qualities(list: &str) -> Option<Vec<(&str, u16)>> {
    let mut all = Vec::new();
    for element in list.split(',') {
        let (name, weight) = match element.split_once(';') {
            Some((name, weight)) => (name.trim(), Some(weight.trim().strip_prefix("q=")?)),
            None => (element.trim(), None),
        };
        // "x-gzip" is another name of a coding that may be named too.
        let is_plain = name == "*" || name.bytes().all(|b| b.is_ascii_alphanumeric());
        if name.is_empty() || !is_plain || all.iter().any(|(other, _)| *other == name) {
            return None;
        }
        all.push((name, weight.map_or(Some(1000), thousandths)?));
    }
    Some(all)
}

fn thousandths(weight: &str) -> Option<u16> {
    let (whole, fraction) = weight.split_once('.').unwrap_or((weight, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", _) => Some(fraction),
        ("1", 0) => Some(1000),
        _ => None,
    }
}
