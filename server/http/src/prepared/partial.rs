//! Responses with parts of a representation (RFC 9110 sections 14.4, 14.6, 15.3.7 and 15.5.17).

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;

use super::range::{ByteRange, PART_OVERHEAD, Ranges, parse_ranges};
use crate::limits::MULTIPART;
use crate::response::{Body, Response, field_line, length_line, status_line};

/// The representation that parts are taken of.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeBody<'a> {
    /// Its Content-Type, a field line with its CRLF.
    pub(super) content_type: &'a [u8],
    /// The other field lines that a 206 shares with the 200 (section 15.3.7), each with its CRLF.
    pub(super) fields: &'a [u8],
    pub(super) body: &'a Body,
    /// True if its parts may be sent as multipart. Not if it has a content coding: that field would
    /// then seem to be about the multipart content.
    pub(super) may_be_several: bool,
}

/// Returns the response to the Range field `range`; none if it is the whole representation.
///
/// Of several parts, only the first ones are sent when all would be more than [`MULTIPART`] bytes;
/// the client asks again for what it still wants (section 14.2). One part alone can have any
/// length, since nothing is copied for it.
pub(super) fn respond(whole: &WholeBody<'_>, range: &[u8]) -> Option<Response> {
    let len = whole.body.len();
    let parts = match parse_ranges(range, len) {
        Ranges::Ignored => return None,
        Ranges::Unsatisfiable => return Some(unsatisfiable(len)),
        Ranges::Parts(parts) => parts,
    };
    let costs = |part: &ByteRange| part.len().saturating_add(PART_OVERHEAD);
    // Section 14.2: what would be no smaller in parts is sent whole.
    if parts.len() > 1 && parts.iter().map(costs).sum::<u64>() >= len {
        return None;
    }
    let mut sum = 0;
    let fitting = parts.iter().take_while(|part| {
        sum += costs(part);
        sum <= MULTIPART
    });
    match fitting.count() {
        count @ 2.. if whole.may_be_several => multipart(whole, &parts[..count]).ok(),
        _ => Some(single(whole, *parts.first()?)),
    }
}

/// Section 15.3.7.1.
fn single(whole: &WholeBody<'_>, part: ByteRange) -> Response {
    let mut head = Vec::with_capacity(whole.fields.len() + 256);
    status_line(&mut head, 206);
    head.extend_from_slice(whole.content_type);
    head.extend_from_slice(whole.fields);
    content_range(&mut head, part, whole.body.len());
    length_line(&mut head, part.len());
    let body = match whole.body {
        Body::Empty | Body::Streamed(_) => Body::Empty,
        Body::Bytes(bytes) => Body::Bytes(bytes.slice(bounds(part))),
        Body::File { file, offset, .. } => Body::File {
            file: Arc::clone(file),
            offset: offset + part.first,
            len: part.len(),
        },
    };
    Response::prepared(206, head.into(), Bytes::new(), body)
}

/// Section 15.3.7.2. Fails if the file cannot be read or has become shorter.
fn multipart(whole: &WholeBody<'_>, parts: &[ByteRange]) -> io::Result<Response> {
    let boundary = boundary(whole, parts);
    let overhead = whole.content_type.len() + PART_OVERHEAD as usize;
    let bytes = parts.iter().map(|part| part.len() as usize + overhead);
    let mut body = Vec::with_capacity(bytes.sum::<usize>() + boundary.len());
    for part in parts {
        let line_end = if body.is_empty() { "" } else { "\r\n" };
        body.extend_from_slice(format!("{line_end}--{boundary}\r\n").as_bytes());
        body.extend_from_slice(whole.content_type);
        content_range(&mut body, *part, whole.body.len());
        body.extend_from_slice(b"\r\n");
        append(whole.body, *part, &mut body)?;
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());

    let mut head = Vec::with_capacity(whole.fields.len() + 256);
    status_line(&mut head, 206);
    let media_type = format!("multipart/byteranges; boundary={boundary}");
    field_line(&mut head, "Content-Type", &media_type);
    head.extend_from_slice(whole.fields);
    length_line(&mut head, body.len() as u64);
    let body = Body::Bytes(body.into());
    Ok(Response::prepared(206, head.into(), Bytes::new(), body))
}

/// Section 15.5.17: with the length that there is.
fn unsatisfiable(len: u64) -> Response {
    let mut head = Vec::with_capacity(128);
    status_line(&mut head, 416);
    field_line(&mut head, "Content-Range", &format!("bytes */{len}"));
    field_line(&mut head, "X-Content-Type-Options", "nosniff");
    length_line(&mut head, 0);
    Response::prepared(416, head.into(), Bytes::new(), Body::Empty)
}

/// Section 14.4.
fn content_range(head: &mut Vec<u8>, part: ByteRange, len: u64) {
    let ByteRange { first, last } = part;
    head.extend_from_slice(format!("Content-Range: bytes {first}-{last}/{len}\r\n").as_bytes());
}

/// As indices of a content in memory, within which the part lies.
fn bounds(part: ByteRange) -> std::ops::Range<usize> {
    let index = |at| usize::try_from(at).unwrap_or(usize::MAX);
    index(part.first)..index(part.last).saturating_add(1)
}

fn append(body: &Body, part: ByteRange, to: &mut Vec<u8>) -> io::Result<()> {
    match body {
        Body::Empty | Body::Streamed(_) => {}
        Body::Bytes(bytes) => to.extend_from_slice(&bytes[bounds(part)]),
        Body::File { file, offset, .. } => {
            let start = to.len();
            to.resize(start + bounds(part).len(), 0);
            file.read_exact_at(&mut to[start..], offset + part.first)?;
        }
    }
    Ok(())
}

/// A line that stands in no content (RFC 2046 section 5.1.1): 128 bits that no author could have
/// known when the content was written. The same parts of the same representation have the same, so
/// that the same request has the same answer.
fn boundary(whole: &WholeBody<'_>, parts: &[ByteRange]) -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(<[RandomState; 2]>::default);
    let mut boundary = String::with_capacity(32);
    for key in &*KEYS {
        // The entity tag is among the fields. Writing to a String does not fail.
        let _ = write!(boundary, "{:016x}", key.hash_one((whole.fields, parts)));
    }
    boundary
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TYPE: &str = "Content-Type: text/plain\r\n";
    const FIELDS: &str = "Cache-Control: no-cache\r\nETag: \"a\"\r\n";

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|n| b'a' + (n % 26) as u8).collect()
    }

    /// Returns bodies of one content, in memory and in the middle of a file.
    fn bodies(content: &[u8]) -> [Body; 2] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(content).unwrap();
        file.write_all(b"after").unwrap();
        [
            Body::Bytes(content.to_vec().into()),
            Body::File {
                file: Arc::new(file),
                offset: 6,
                len: content.len() as u64,
            },
        ]
    }

    fn ask(body: &Body, range: &str, may_be_several: bool) -> Option<Response> {
        let whole = WholeBody {
            content_type: TYPE.as_bytes(),
            fields: FIELDS.as_bytes(),
            body,
            may_be_several,
        };
        respond(&whole, range.as_bytes())
    }

    fn sent(response: &Response) -> Vec<u8> {
        match response.body() {
            Body::Empty | Body::Streamed(_) => Vec::new(),
            Body::Bytes(bytes) => bytes.to_vec(),
            Body::File { file, offset, len } => {
                let mut bytes = vec![0; usize::try_from(*len).unwrap()];
                file.read_exact_at(&mut bytes, *offset).unwrap();
                bytes
            }
        }
    }

    /// The fields and the bytes of each part of a multipart response.
    fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
        let media_type = response.field("content-type").unwrap();
        let boundary = media_type
            .strip_prefix("multipart/byteranges; boundary=")
            .unwrap();
        let text = String::from_utf8(sent(response)).unwrap();
        let text = text.strip_prefix(&format!("--{boundary}\r\n")).unwrap();
        let text = text.strip_suffix(&format!("\r\n--{boundary}--\r\n"));
        let delimiter = format!("\r\n--{boundary}\r\n");
        let parts = text.unwrap().split(&delimiter);
        let split = |part: &str| {
            let (fields, bytes) = part.split_once("\r\n\r\n").unwrap();
            (fields.to_owned(), bytes.as_bytes().to_vec())
        };
        parts.map(split).collect()
    }

    #[test]
    fn one_part_is_said_in_the_head() {
        let content = content(1000);
        for body in bodies(&content) {
            for (range, first, last) in [
                ("bytes=4-7", 4, 7),
                ("bytes=0-1,2-3", 0, 3),
                ("bytes=990-999,2000-", 990, 999),
            ] {
                let response = ask(&body, range, true).unwrap();
                assert_eq!(
                    std::str::from_utf8(response.head()).unwrap(),
                    format!(
                        "HTTP/1.1 206 Partial Content\r\n{TYPE}{FIELDS}Content-Range: bytes {first}-{last}/1000\r\n\
                         Content-Length: {}\r\n",
                        last - first + 1
                    )
                );
                assert_eq!(sent(&response), content[first..=last]);
            }
        }
    }

    #[test]
    fn several_parts_say_each_what_they_are() {
        let content = content(1000);
        for body in bodies(&content) {
            let response = ask(&body, "bytes=-3, 5-5,500-509, 7000-", true).unwrap();
            assert_eq!(
                (response.status(), response.field("content-range")),
                (206, None)
            );
            assert_eq!(response.field("etag"), Some("\"a\""));
            assert_eq!(response.field("cache-control"), Some("no-cache"));
            let len = sent(&response).len().to_string();
            assert_eq!(response.field("content-length"), Some(&len[..]));
            let part = |first: usize, last: usize| {
                (
                    format!("{TYPE}Content-Range: bytes {first}-{last}/1000"),
                    content[first..=last].to_vec(),
                )
            };
            let expected = [part(997, 999), part(5, 5), part(500, 509)];
            assert_eq!(parts(&response), expected);
            let boundary = |range| {
                let response = ask(&body, range, true).unwrap();
                response.field("content-type").map(str::to_owned)
            };
            assert_eq!(boundary("bytes=-3,5-5"), boundary("bytes=-3,5-5"));
            assert_ne!(boundary("bytes=-3,5-5"), boundary("bytes=-3,5-6"));
        }
    }

    #[test]
    fn parts_of_a_coded_content_come_alone() {
        for body in bodies(&content(1000)) {
            let response = ask(&body, "bytes=0-0,500-500", false).unwrap();
            assert_eq!(
                response.field("content-range"),
                Some("bytes 0-0/1000"),
                "the client asks again for the rest"
            );
        }
    }

    #[test]
    fn what_would_be_no_smaller_in_parts_is_sent_whole() {
        for body in bodies(&content(1000)) {
            let overlapping = vec!["0-"; 16].join(",");
            let response = ask(&body, &format!("bytes={overlapping}"), true).unwrap();
            assert_eq!(
                response.field("content-range"),
                Some("bytes 0-999/1000"),
                "sixteen times the same is once"
            );
            assert!(ask(&body, "bytes=0-300,500-", true).is_none());
            assert!(ask(&body, "bytes=0-300,500-600", true).is_some());
            assert!(ask(&body, "lines=1-2", true).is_none());
        }
    }

    #[test]
    fn parts_that_are_copied_are_bounded() {
        let half = MULTIPART as usize / 2;
        let content = content(4 * half);
        for body in bodies(&content) {
            let response = ask(&body, &format!("bytes=0-99,{half}-{},-9", half + 99), true);
            assert_eq!(parts(&response.unwrap()).len(), 3);
            let ranges = format!("bytes=0-99,{half}-{},-9", 3 * half - 401);
            let response = ask(&body, &ranges, true).unwrap();
            assert_eq!(parts(&response).len(), 2, "the last does not fit any more");
            let ranges = format!("bytes=0-{},-9", 3 * half);
            let response = ask(&body, &ranges, true).unwrap();
            let expected = format!("bytes 0-{}/{}", 3 * half, 4 * half);
            assert_eq!(response.field("content-range"), Some(&expected[..]));
            assert_eq!(sent(&response).len(), 3 * half + 1);
        }
    }

    #[test]
    fn what_lies_outside_is_416_with_the_length() {
        for body in bodies(&content(1000)) {
            let response = ask(&body, "bytes=1000-,-0", true).unwrap();
            assert_eq!(
                (response.status(), response.field("content-range")),
                (416, Some("bytes */1000"))
            );
            assert_eq!(response.field("content-length"), Some("0"));
        }
    }

    #[test]
    fn a_file_that_has_become_shorter_is_left_to_the_full_response() {
        let [_, body] = bodies(&content(1000));
        let Body::File { file, .. } = &body else {
            panic!("the second is a file");
        };
        file.set_len(100).unwrap();
        assert!(ask(&body, "bytes=0-1,500-501", true).is_none());
    }
}
