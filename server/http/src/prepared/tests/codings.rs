//! Content codings: which are made, which is sent, and what is said about them.

use bytes::Bytes;

use super::super::{Coding, Content, Parts, Prepared};
use super::{body, decompress, get, page, respond, text};
use crate::response::Body;

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
        let again = [("Accept-Encoding", coding.name()), ("If-None-Match", &tag)];
        let response = respond(&page, &again);
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

#[test]
fn what_does_not_shrink_is_remembered() {
    // Bytes without a pattern.
    let mut random = lab_testkit::Random::new(1);
    let noise: Vec<u8> = (0..2000).map(|_| random.byte()).collect();
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
