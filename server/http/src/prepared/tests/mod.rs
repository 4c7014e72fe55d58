//! Prepared representations: what each combination of conditions, ranges and codings is answered
//! with.

mod codings;
mod conditions;
mod ranges;

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
fn a_modification_in_the_future_is_one_of_now() {
    let prepared = Prepared::new(Parts {
        status: 200,
        media_type: "text/plain",
        fields: &[],
        body: text(),
        last_modified: Some(base_clock::wall() + Duration::from_secs(3600)),
        compressible: false,
    });
    let response = respond(&prepared, &[]);
    let modified = httpdate::parse_http_date(response.field("last-modified").unwrap()).unwrap();
    assert!(modified <= base_clock::wall());
}
