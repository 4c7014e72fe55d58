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
    let gzip = page.hash.tag(Some(Coding::Gzip));
    let list = format!("\"a,b\", W/\"c\" ,{tag}");
    let cases: &[(&[(&str, &str)], u16)] = &[
        (&[("If-None-Match", &tag)], 304),
        (&[("If-None-Match", &weak)], 304),
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

/// A cache asks with the tags of all that it has kept, and may send what the 304 names to the
/// client that it asks for.
#[test]
fn a_304_names_only_what_the_client_can_read() {
    let plain = page().etag().to_owned();
    let tag = |coding: Coding| page().hash.tag(Some(coding));
    let (br, gzip) = (tag(Coding::Brotli), tag(Coding::Gzip));
    let all = format!("{br}, {gzip}, {plain}");
    let coded = format!("W/{br}, W/{gzip}");
    // Whether the codings have been made, since the start of this process, makes no difference.
    let made = page();
    for coding in Coding::ALL {
        assert!(made.make(coding) > 0);
    }
    for (accept, tags, named) in [
        (None, &br, None),
        (None, &coded, None),
        (None, &all, Some(&plain)),
        (Some(""), &coded, None),
        (Some("br"), &br, Some(&br)),
        (Some("br"), &all, Some(&br)),
        (Some("gzip"), &br, None),
        (Some("gzip"), &coded, Some(&gzip)),
        (Some("gzip"), &all, Some(&gzip)),
        (Some("gzip, br;q=0"), &br, None),
        (Some("gzip, br;q=0"), &coded, Some(&gzip)),
        (Some("*"), &coded, Some(&br)),
        (Some("*;q=0"), &coded, None),
        (Some("zstd"), &all, Some(&plain)),
        // It likes another better, and can read this one.
        (Some("identity, br;q=0.1"), &br, Some(&br)),
    ] {
        let mut fields = vec![("If-None-Match", &**tags)];
        fields.extend(accept.map(|accept| ("Accept-Encoding", accept)));
        for page in [&page(), &made] {
            let response = respond(page, &fields);
            let expected = if named.is_some() { 304 } else { 200 };
            assert_eq!(response.status(), expected, "{fields:?}");
            if let Some(named) = named {
                assert_eq!(response.field("etag"), Some(&**named), "{fields:?}");
            }
        }
    }
}

#[test]
fn a_304_repeats_what_it_must_and_no_more() {
    let page = page();
    let tag = page.hash.tag(Some(Coding::Brotli));
    let fields = [("Accept-Encoding", "br"), ("If-None-Match", &tag)];
    let response = respond(&page, &fields);
    let expected = format!(
        "HTTP/1.1 304 Not Modified\r\nCache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n\
         Vary: Accept-Encoding\r\nLast-Modified: {DATE}\r\nETag: {tag}\r\n"
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
