//! Conditional requests.

use bytes::Bytes;

use super::super::{Coding, Parts, Prepared};
use super::{DATE, EARLIER, page, respond, text};
use crate::OwnedRequest;

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
