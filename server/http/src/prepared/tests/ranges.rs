//! Requests for a part.

use bytes::Bytes;

use super::super::Coding;
use super::{DATE, EARLIER, body, page, respond, text};
use crate::OwnedRequest;

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
    for accept in ["gzip, identity;q=0", "gzip, *;q=0"] {
        let fields = [("Accept-Encoding", accept), ("Range", "bytes=10-")];
        let response = respond(&page, &fields);
        assert_eq!(
            (response.status(), body(&response)),
            (200, body(&whole)),
            "{accept}"
        );
    }
}

#[test]
fn what_another_encoder_made_is_not_continued() {
    let page = page();
    page.make(Coding::Gzip);
    let accept = ("Accept-Encoding", "gzip");
    let whole = respond(&page, &[accept]);
    let tag = whole.field("etag").unwrap();
    let (content, _) = tag.trim_matches('"').split_once('-').unwrap();
    for revision in ["", "0", "1x", "10"] {
        let other = format!("\"{content}-gz{revision}\"");
        let fields = [accept, ("Range", "bytes=10-"), ("If-Range", &other)];
        let response = respond(&page, &fields);
        assert_eq!(
            (response.status(), body(&response)),
            (200, body(&whole)),
            "{other}"
        );
        let response = respond(&page, &[accept, ("If-None-Match", &other)]);
        assert_eq!(response.status(), 200, "{other}");
    }
}
