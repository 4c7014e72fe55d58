//! Prepared representations: what each combination of conditions, ranges and codings is answered with.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::{Coding, Content, Parts, Prepared};
use crate::response::Body;
use crate::{OwnedRequest, Response};

fn modified() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

fn text() -> Bytes {
    "the mill goes round and round; ".repeat(100).into()
}

fn page() -> Prepared {
    Prepared::new(Parts {
        status: 200,
        media_type: "text/html; charset=utf-8",
        fields: &[("Cache-Control", "no-cache"), ("Content-Language", "en")],
        body: text(),
        last_modified: Some(modified()),
        compressible: true,
    })
}

fn get(fields: &[(&str, &str)]) -> OwnedRequest {
    fields
        .iter()
        .fold(OwnedRequest::new("GET", "/"), |request, (name, value)| {
            request.field(name, value)
        })
}

fn respond(prepared: &Prepared, fields: &[(&str, &str)]) -> Response {
    prepared.respond(&get(fields).as_request(), Bytes::new())
}

fn body(response: &Response) -> Bytes {
    match response.body() {
        Body::Bytes(bytes) => bytes.clone(),
        _ => Bytes::new(),
    }
}

#[test]
fn a_plain_response() {
    let page = page();
    let response = page.respond(
        &get(&[]).as_request(),
        Bytes::from_static(b"Cache-Status: millpond; hit\r\n"),
    );
    assert_eq!(response.status(), 200);
    let etag = page.etag();
    let expected = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-cache\r\nContent-Language: en\r\n\
         X-Content-Type-Options: nosniff\r\nVary: Accept-Encoding\r\nLast-Modified: {DATE}\r\nAccept-Ranges: bytes\r\n\
         ETag: {etag}\r\nContent-Length: 3100\r\n"
    );
    assert_eq!(std::str::from_utf8(response.head()).unwrap(), expected);
    assert_eq!(response.field("cache-status"), Some("millpond; hit"));
    assert_eq!(body(&response), text());
    // The tag must not change with the program: clients and other nodes keep it.
    assert_eq!(etag, page_again().etag());
}

fn page_again() -> Prepared {
    Prepared::new(Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: text(),
        last_modified: None,
        compressible: false,
    })
}

#[test]
fn the_entity_tag_is_a_hash_that_outlives_the_process() {
    let prepared = Prepared::new(Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: Bytes::new(),
        last_modified: None,
        compressible: false,
    });
    // XXH3-128 of nothing, as every implementation of it gives.
    assert_eq!(prepared.etag(), "\"99aa06d3014798d86001c324468d497f\"");
}

#[test]
fn conditions() {
    let page = page();
    let tag = page.etag().to_owned();
    let weak = format!("W/{tag}");
    let gzip = format!("\"{}-gz\"", tag.trim_matches('"'));
    let list = format!("\"a,b\", W/\"c\" ,{gzip}");
    let cases: &[(&[(&str, &str)], u16)] = &[
        (&[("If-None-Match", &tag)], 304),
        (&[("If-None-Match", &weak)], 304),
        (&[("If-None-Match", &gzip)], 304),
        (&[("If-None-Match", &list)], 304),
        (&[("If-None-Match", &format!(", ,{tag},"))], 304),
        (&[("If-None-Match", "*")], 304),
        (&[("If-None-Match", "\"a\"")], 200),
        (&[("If-None-Match", "\"a\""), ("If-None-Match", &tag)], 304),
        (&[("If-None-Match", "nonsense")], 200),
        (&[("If-None-Match", "")], 200),
        (
            &[("If-None-Match", "\"a\""), ("If-Modified-Since", DATE)],
            200,
        ),
        (&[("If-Modified-Since", DATE)], 304),
        (&[("If-Modified-Since", EARLIER)], 200),
        (&[("If-Modified-Since", "yesterday")], 200),
        (
            &[("If-Modified-Since", DATE), ("If-Modified-Since", DATE)],
            200,
        ),
        (
            &[("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")],
            304,
        ),
        (&[("If-Modified-Since", "Sun Nov  6 08:49:37 1994")], 304),
        (&[("If-Match", &tag)], 200),
        (&[("If-Match", &gzip)], 200),
        (&[("If-Match", "*")], 200),
        (&[("If-Match", &weak)], 412),
        (&[("If-Match", "\"a\"")], 412),
        (&[("If-Match", "\"a\""), ("If-None-Match", &tag)], 412),
        (&[("If-Match", &tag), ("If-Unmodified-Since", EARLIER)], 200),
        (&[("If-Unmodified-Since", EARLIER)], 412),
        (&[("If-Unmodified-Since", DATE)], 200),
        (
            &[
                ("If-Unmodified-Since", EARLIER),
                ("If-Unmodified-Since", EARLIER),
            ],
            200,
        ),
        (&[("If-Unmodified-Since", "Sun Nov  6 08:49:36 1994")], 412),
        // 1993, since 2093 is more than fifty years away.
        (
            &[("If-Unmodified-Since", "Saturday, 06-Nov-93 08:49:37 GMT")],
            412,
        ),
        (&[("If-None-Match", &tag), ("Range", "bytes=0-1")], 304),
    ];
    for (fields, status) in cases {
        assert_eq!(respond(&page, fields).status(), *status, "{fields:?}");
    }
    let post = OwnedRequest::new("POST", "/").field("If-None-Match", &tag);
    assert_eq!(page.respond(&post.as_request(), Bytes::new()).status(), 200);
}

#[test]
fn a_304_repeats_what_it_must_and_no_more() {
    let page = page();
    let tag = page.etag().trim_matches('"').to_owned() + "-br";
    let response = respond(&page, &[("If-None-Match", &format!("\"{tag}\""))]);
    let expected = format!(
        "HTTP/1.1 304 Not Modified\r\nCache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n\
         Vary: Accept-Encoding\r\nLast-Modified: {DATE}\r\nETag: \"{tag}\"\r\n"
    );
    assert_eq!(std::str::from_utf8(response.head()).unwrap(), expected);
    assert!(response.body().is_empty());
}

#[test]
fn ranges() {
    let page = page();
    let tag = page.etag().to_owned();
    let response = respond(&page, &[("Range", "bytes=4-7")]);
    assert_eq!(
        (response.status(), &body(&response)[..]),
        (206, &b"mill"[..])
    );
    assert_eq!(response.field("content-range"), Some("bytes 4-7/3100"));
    assert_eq!(response.field("content-length"), Some("4"));
    assert_eq!(response.field("etag"), Some(&tag[..]));
    let response = respond(&page, &[("Range", "bytes=1000-1003,4-7")]);
    assert_eq!(response.status(), 206);
    let media_type = response.field("content-type").unwrap();
    assert!(media_type.starts_with("multipart/byteranges; boundary="));
    let sent = String::from_utf8(body(&response).to_vec()).unwrap();
    let part =
        "Content-Type: text/html; charset=utf-8\r\nContent-Range: bytes 4-7/3100\r\n\r\nmill\r\n";
    assert!(sent.contains(part), "{sent}");
    let response = respond(&page, &[("Range", "bytes=3100-")]);
    assert_eq!(
        (response.status(), response.field("content-range")),
        (416, Some("bytes */3100"))
    );
    for (fields, status) in [
        (&[("Range", "bytes=0-1,4-5")][..], 206),
        (&[("Range", "bytes=0-1,1000-1001")], 206),
        (&[("Range", "bytes=0-1,2-1")], 200),
        (&[("Range", "bytes=0-1"), ("Range", "bytes=0-1")], 200),
        (&[("Range", "bytes=0-1"), ("If-Range", &tag)], 206),
        (
            &[("Range", "bytes=0-1"), ("If-Range", &format!("W/{tag}"))],
            200,
        ),
        (&[("Range", "bytes=0-1"), ("If-Range", "\"other\"")], 200),
        (
            &[
                ("Range", "bytes=0-1"),
                ("If-Range", &format!("{tag}, {tag}")),
            ],
            200,
        ),
        (
            &[
                ("Range", "bytes=0-1"),
                ("If-Range", &tag),
                ("If-Range", &tag),
            ],
            200,
        ),
        (&[("Range", "bytes=0-1"), ("If-Range", "*")], 200),
        (&[("Range", "bytes=0-1"), ("If-Range", DATE)], 206),
        (&[("Range", "bytes=0-1"), ("If-Range", EARLIER)], 200),
        (&[("If-Range", "\"other\"")], 200),
    ] {
        assert_eq!(respond(&page, fields).status(), status, "{fields:?}");
    }
    let head = OwnedRequest::new("HEAD", "/").field("Range", "bytes=0-1");
    assert_eq!(page.respond(&head.as_request(), Bytes::new()).status(), 200);
}

#[test]
fn a_range_is_of_the_coding_that_if_range_names() {
    let page = page();
    page.make(Coding::Gzip);
    let accept = ("Accept-Encoding", "gzip");
    let whole = respond(&page, &[accept]);
    let tag = whole.field("etag").unwrap().to_owned();
    let part = respond(&page, &[accept, ("Range", "bytes=10-"), ("If-Range", &tag)]);
    assert_eq!(
        (part.status(), body(&part)),
        (206, body(&whole).slice(10..))
    );
    assert_eq!(part.field("content-encoding"), Some("gzip"));
    let part = respond(&page, &[accept, ("Range", "bytes=10-")]);
    assert_eq!(
        (part.status(), body(&part)),
        (206, text().slice(10..)),
        "without a name it is of the plain content"
    );
}

#[test]
fn codings_are_made_once_and_read_back() {
    let page = page();
    let accept = [("Accept-Encoding", "gzip, br, zstd")];
    let request = get(&accept);
    assert_eq!(respond(&page, &accept).field("content-encoding"), None);
    assert_eq!(page.wanted(&request.as_request()), Some(Coding::Brotli));
    let before = page.weight();
    for coding in Coding::ALL {
        let weight = page.weight();
        let added = page.make(coding);
        assert!(added > 0);
        assert_eq!((page.weight(), page.make(coding)), (weight + added, 0));
        assert_eq!(page.wanted(&request.as_request()), None, "the best is made");
        let response = respond(&page, &[("Accept-Encoding", coding.name())]);
        assert_eq!(response.field("content-encoding"), Some(coding.name()));
        assert_eq!(response.field("vary"), Some("Accept-Encoding"));
        assert_eq!(
            response.field("content-length"),
            Some(&body(&response).len().to_string()[..])
        );
        assert_ne!(response.field("etag"), Some(page.etag()));
        assert_eq!(decompress(coding, &body(&response)), text());
        let tag = response.field("etag").unwrap().to_owned();
        let response = respond(&page, &[("If-None-Match", &tag)]);
        assert_eq!(
            (response.status(), response.field("etag")),
            (304, Some(&tag[..]))
        );
    }
    assert!(page.weight() > before);
    let smallest = Coding::ALL
        .map(|c| body(&respond(&page, &[("Accept-Encoding", c.name())])).len())
        .into_iter()
        .min();
    assert_eq!(Some(body(&respond(&page, &accept)).len()), smallest);
}

fn decompress(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(coded)
            .read_to_end(&mut plain)
            .unwrap(),
        Coding::Brotli => brotli::Decompressor::new(coded, 4096)
            .read_to_end(&mut plain)
            .unwrap(),
        Coding::Zstd => {
            plain = zstd::bulk::decompress(coded, 1 << 20).unwrap();
            plain.len()
        }
    };
    plain
}

#[test]
fn what_does_not_shrink_is_remembered() {
    // Bytes without a pattern: a linear congruential generator.
    let noise: Vec<u8> = std::iter::successors(Some(1_u64), |x| {
        Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
    })
    .map(|x| (x >> 56) as u8)
    .take(2000)
    .collect();
    let parts = |body: Bytes, compressible| Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body,
        last_modified: None,
        compressible,
    };
    let request = get(&[("Accept-Encoding", "gzip")]);
    let prepared = Prepared::new(parts(noise.into(), true));
    assert_eq!(prepared.wanted(&request.as_request()), Some(Coding::Gzip));
    assert_eq!(prepared.make(Coding::Gzip), 0);
    assert_eq!(prepared.wanted(&request.as_request()), None);
    let short = Prepared::new(parts(Bytes::from_static(b"short"), true));
    assert_eq!(short.wanted(&request.as_request()), None);
    let image = Prepared::new(parts(text(), false));
    assert_eq!(
        (
            image.wanted(&request.as_request()),
            image.make(Coding::Gzip)
        ),
        (None, 0)
    );
    assert_eq!(respond(&image, &[]).field("vary"), None);
}

#[test]
fn vary_is_said_where_the_field_may_decide() {
    let prepared = |len: usize, compressible, codings| {
        let parts = Parts {
            status: 200,
            media_type: "text/plain",
            fields: &[],
            body: text().slice(..len),
            last_modified: None,
            compressible,
        };
        let identity = Body::Bytes(parts.body.clone());
        Prepared::with_content(&parts, Content { identity, codings })
    };
    let gzip = || vec![(Coding::Gzip, Body::Bytes(Bytes::from_static(b"coded")))];
    for (prepared, varies) in [
        (prepared(2000, true, Vec::new()), true),
        (prepared(100, true, Vec::new()), false),
        (prepared(2000, false, Vec::new()), false),
        (prepared(2000, false, gzip()), true),
        (prepared(100, false, gzip()), true),
    ] {
        let tag = prepared.etag().to_owned();
        for fields in [
            &[][..],
            &[("Accept-Encoding", "gzip")],
            &[("Accept-Encoding", "*;q=0")],
            &[("Accept-Encoding", "identity;q=0")],
            &[("If-None-Match", &tag)],
            &[("Range", "bytes=0-1")],
        ] {
            let vary = respond(&prepared, fields).field("vary").map(str::to_owned);
            let expected = varies.then(|| "Accept-Encoding".to_owned());
            assert_eq!(vary, expected, "{fields:?}");
        }
    }
}

#[test]
fn codings_made_beforehand_are_sent() {
    let parts = Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: Bytes::from_static(b"what tells it from others"),
        last_modified: None,
        compressible: true,
    };
    let content = Content {
        identity: Body::Bytes(text()),
        codings: vec![(Coding::Zstd, Body::Bytes(Bytes::from_static(b"coded")))],
    };
    let prepared = Prepared::with_content(&parts, content);
    let accept = [("Accept-Encoding", "zstd, gzip")];
    let response = respond(&prepared, &accept);
    assert_eq!(response.field("content-encoding"), Some("zstd"));
    assert_eq!(body(&response), &b"coded"[..]);
    assert_eq!(
        respond(&prepared, &[]).field("content-length"),
        Some("3100")
    );
    // The others are made as ever, of the content.
    let request = get(&[("Accept-Encoding", "gzip")]);
    assert_eq!(prepared.wanted(&request.as_request()), Some(Coding::Gzip));
    assert_eq!(prepared.make(Coding::Zstd), 0);
    assert!(prepared.make(Coding::Gzip) > 0);
    let response = respond(&prepared, &[("Accept-Encoding", "gzip")]);
    assert_eq!(decompress(Coding::Gzip, &body(&response)), text());
}

#[test]
fn a_content_in_a_file_is_sent_from_there() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before").unwrap();
    file.write_all(&text()).unwrap();
    let file = Arc::new(file);
    let parts = Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: text(),
        last_modified: None,
        compressible: true,
    };
    let content = Content {
        identity: Body::File {
            file,
            offset: 6,
            len: 3100,
        },
        codings: Vec::new(),
    };
    let prepared = Prepared::with_content(&parts, content);
    assert!(prepared.weight() < 3100, "the file is not its own");
    let place = |response: &Response| match response.body() {
        Body::File { offset, len, .. } => (*offset, *len),
        _ => panic!("not from the file"),
    };
    assert_eq!(place(&respond(&prepared, &[])), (6, 3100));
    let part = respond(&prepared, &[("Range", "bytes=10-19")]);
    assert_eq!((part.status(), place(&part)), (206, (16, 10)));
    let tag = prepared.etag().to_owned();
    let unchanged = respond(&prepared, &[("If-None-Match", &tag)]);
    assert_eq!((unchanged.status(), unchanged.body().len()), (304, 0));
    assert!(prepared.make(Coding::Brotli) > 0);
    let response = respond(&prepared, &[("Accept-Encoding", "br")]);
    assert_eq!(decompress(Coding::Brotli, &body(&response)), text());
}

#[test]
fn an_error_page_has_no_conditions() {
    let error = Prepared::new(Parts {
        status: 404,
        media_type: "text/html; charset=utf-8",
        fields: &[],
        body: text(),
        last_modified: None,
        compressible: true,
    });
    error.make(Coding::Brotli);
    for fields in [
        &[("If-None-Match", "*")][..],
        &[("If-Match", "\"a\"")],
        &[("Range", "bytes=0-1")],
    ] {
        assert_eq!(respond(&error, fields).status(), 404);
    }
    let response = respond(&error, &[("Accept-Encoding", "br")]);
    assert_eq!(
        (
            response.field("content-encoding"),
            response.field("accept-ranges")
        ),
        (Some("br"), None)
    );
}

#[test]
fn a_modification_in_the_future_is_one_of_now() {
    let prepared = Prepared::new(Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: text(),
        last_modified: Some(SystemTime::now() + Duration::from_secs(3600)),
        compressible: false,
    });
    let response = respond(&prepared, &[]);
    let modified = httpdate::parse_http_date(response.field("last-modified").unwrap()).unwrap();
    assert!(modified <= SystemTime::now());
}
