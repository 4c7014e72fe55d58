//! A prepared representation to one request's response: codings, conditions, ranges.

use std::hint::black_box;

use bytes::Bytes;
use millpond_http::{Coding, OwnedRequest, Parts, Prepared};

/// 4 KiB of text that compresses, with all codings made.
fn prepared() -> Prepared {
    let text: String = (0..)
        .map(|n| format!("line {n} of a page\n"))
        .take(400)
        .collect();
    let prepared = Prepared::new(Parts {
        status: 200,
        media_type: "text/html; charset=utf-8",
        fields: &[("Cache-Control", "no-cache")],
        body: Bytes::from(text).slice(..4 << 10),
        last_modified: None,
        compressible: true,
    });
    for coding in Coding::ALL {
        assert!(prepared.make(coding) > 0);
    }
    prepared
}

pub(super) fn plain() -> Box<dyn FnMut()> {
    respond(prepared(), request(), 200)
}

pub(super) fn coded() -> Box<dyn FnMut()> {
    let request = request().field("Accept-Encoding", "gzip, deflate, br, zstd");
    respond(prepared(), request, 200)
}

pub(super) fn unchanged() -> Box<dyn FnMut()> {
    let prepared = prepared();
    let request = request().field("If-None-Match", prepared.etag());
    respond(prepared, request, 304)
}

pub(super) fn range() -> Box<dyn FnMut()> {
    respond(prepared(), request().field("Range", "bytes=100-199"), 206)
}

fn request() -> OwnedRequest {
    OwnedRequest::new("GET", "/read?id=1").field("Host", "magazine.example")
}

fn respond(prepared: Prepared, request: OwnedRequest, status: u16) -> Box<dyn FnMut()> {
    let answer = prepared.respond(&request.as_request(), Bytes::new());
    assert_eq!(answer.status(), status);
    Box::new(move || {
        black_box(prepared.respond(black_box(&request.as_request()), Bytes::new()));
    })
}
