//! Heads and bodies of requests (RFC 9113 sections 8.1 to 8.3 and 8.5).

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::frame::{END_STREAM, FrameKind};
use super::super::{ErrorCode, KnownResponse, SessionEvent, StreamId};
use super::support::{GET, POST, TestClient, assert_reset, block, ok};
use crate::h1::Refusal;
use crate::request::Version;
use crate::{Limits, OwnedRequest, Validity};

type FieldList<'a> = Vec<(&'a str, &'a str)>;

fn with<'a>(fields: &[(&'a str, &'a str)]) -> FieldList<'a> {
    [&GET[..], fields].concat()
}

/// A list without a field.
fn without<'a>(name: &str) -> FieldList<'a> {
    let mut list = GET.to_vec();
    list.retain(|(field, _)| *field != name);
    list
}

fn events(fields: &[(&str, &str)], flags: u8) -> (TestClient, Vec<SessionEvent>) {
    let mut client = TestClient::new();
    let events = client.head(1, flags, fields);
    (client, events)
}

#[track_caller]
fn malformed(fields: &[(&str, &str)]) {
    let (mut client, events) = events(fields, END_STREAM);
    assert_eq!(events, [], "{fields:?}");
    assert_reset(&client.frames(), 1, ErrorCode::ProtocolError);
    // The connection goes on.
    assert_eq!(client.get(3).len(), 1);
}

#[track_caller]
fn refused(fields: &[(&str, &str)], status: u16) {
    let (_, events) = events(fields, END_STREAM);
    let [SessionEvent::Refused(StreamId(1), refusal)] = events[..] else {
        panic!("not refused: {events:?} {fields:?}");
    };
    assert_eq!(refusal.status(), status, "{fields:?}");
}

#[track_caller]
fn request(fields: &[(&str, &str)]) -> OwnedRequest {
    let (mut client, events) = events(fields, END_STREAM);
    assert_eq!(events, [SessionEvent::Request(StreamId(1))], "{fields:?}");
    client.request(1)
}

#[test]
fn a_request_is_what_its_list_says() {
    let mut list = with(&[
        ("accept", "*/*"),
        ("x", "\u{e9} \t~"),
        ("empty", ""),
        ("x", "2"),
    ]);
    list[2].1 = "/a%20b?c=d?e";
    let request = request(&list);
    let request = request.as_request();
    assert_eq!((request.method, request.target), ("GET", "/a%20b?c=d?e"));
    assert_eq!((request.path, request.query), ("/a%20b", Some("c=d?e")));
    assert_eq!(
        (request.host(), request.version),
        (Some("a.example"), Version::Http2)
    );
    let fields: Vec<_> = request.fields.iter().collect();
    assert_eq!(
        fields,
        [
            ("host", &b"a.example"[..]),
            ("accept", b"*/*"),
            ("x", "\u{e9} \t~".as_bytes()),
            ("empty", b""),
            ("x", b"2"),
        ]
    );
    assert!(request.body.is_empty());
}

/// RFC 9113 section 8.3.
#[test]
fn pseudo_fields_come_first_and_once_and_are_those_of_requests() {
    malformed(&[GET[0], GET[1], ("x", "y"), GET[2], GET[3]]);
    for field in GET {
        malformed(&with(&[field]));
    }
    malformed(&with(&[(":status", "200")]));
    malformed(&with(&[(":protocol", "websocket")]));
    malformed(&with(&[(":", "")]));
    for name in [":method", ":scheme", ":path"] {
        malformed(&without(name));
    }
    let mut reverse = GET.to_vec();
    reverse.reverse();
    assert_eq!(request(&reverse).as_request().host(), Some("a.example"));
}

/// RFC 9113 section 8.3.1.
#[test]
fn a_path_is_a_path() {
    for path in [
        "",
        "a",
        "a/b",
        "*",
        "http://a.example/",
        "/#",
        "/ ",
        "/\u{e9}",
        "?x",
    ] {
        let mut list = GET.to_vec();
        list[2].1 = path;
        malformed(&list);
    }
    let options = [
        ("OPTIONS", "*"),
        ("OPTIONS", "/"),
        ("GET", "//x"),
        ("M-SEARCH", "/?"),
    ];
    for (method, path) in options {
        let list = [(":method", method), GET[1], (":path", path), GET[3]];
        assert_eq!(request(&list).as_request().target, path);
    }
    for method in ["", "G T", "G\u{e9}T", "GET:"] {
        malformed(&[(":method", method), GET[1], GET[2], GET[3]]);
    }
}

/// RFC 9113 section 8.3.1.
#[test]
fn a_request_has_one_host() {
    malformed(&without(":authority"));
    for host in [
        "",
        ":80",
        "a b",
        "user@a.example",
        "a,b",
        "a/b",
        "[::1",
        "a:b",
    ] {
        malformed(&[GET[0], GET[1], GET[2], (":authority", host)]);
        malformed(&[GET[0], GET[1], GET[2], ("host", host)]);
    }
    malformed(&with(&[("host", "b.example")]));
    malformed(&with(&[("host", "a.example:80")]));
    malformed(&with(&[("host", "a.example"), ("host", "a.example")]));
    for host in ["a.example", "A.Example", "a.example:443"] {
        let request = request(&with(&[("host", host)]));
        let request = request.as_request();
        assert_eq!(request.host(), Some("a.example"));
        assert_eq!(request.fields.get_all("host").count(), 1);
    }
    let alone = request(&[GET[0], GET[1], GET[2], ("host", "b.example:1")]);
    assert_eq!(alone.as_request().host(), Some("b.example:1"));
    assert_eq!(
        alone.as_request().fields.get("host"),
        Some(&b"b.example:1"[..])
    );
}

/// RFC 9110 section 7.4, RFC 9113 section 8.3.1.
#[test]
fn schemes() {
    refused(&[GET[0], (":scheme", "ftp"), GET[2], GET[3]], 400);
    refused(&[GET[0], (":scheme", "http"), GET[2], GET[3]], 421);
    refused(&[GET[0], (":scheme", "HTTP"), GET[2], GET[3]], 421);
    request(&[GET[0], (":scheme", "HTTPS"), GET[2], GET[3]]);
    let mut client = TestClient::new();
    client.session.is_secured = false;
    let events = client.get(1);
    let refused = SessionEvent::Refused(StreamId(1), Refusal::Misdirected);
    assert_eq!(events, [refused]);
    let events = client.head(
        3,
        END_STREAM,
        &[GET[0], (":scheme", "http"), GET[2], GET[3]],
    );
    assert_eq!(events, [SessionEvent::Request(StreamId(3))]);
}

/// RFC 9110 sections 8.4 and 15.5.16.
#[test]
fn a_body_with_a_coding_is_refused() {
    let of = |coding: &str, flags| {
        let coding = [("content-encoding", coding)];
        let (_, events) = events(&[&POST[..], &coding].concat(), flags);
        events
    };
    let refused = || SessionEvent::Refused(StreamId(1), Refusal::ContentCoding);
    for coding in ["gzip", "identity, br"] {
        assert_eq!(of(coding, 0), [refused()], "{coding}");
        assert_eq!(of(coding, END_STREAM), [SessionEvent::Request(StreamId(1))]);
    }
    let fields = Refusal::ContentCoding.fields();
    assert_eq!(fields, "Accept-Encoding: identity\r\n");
    for coding in ["identity", "IDENTITY,", ""] {
        assert!(!of(coding, 0).contains(&refused()), "{coding}");
    }
}

/// RFC 9113 section 8.2.1.
#[test]
fn names_are_tokens_in_lower_case_and_values_are_values() {
    for name in ["", "X", "a b", "a:", "a\u{0}", "\u{e9}", "a\r\n"] {
        malformed(&with(&[(name, "v")]));
    }
    for value in [
        "a\r", "a\nb", "\u{0}", " a", "a ", "\ta", "a\t", "\u{1}", "a\u{7f}",
    ] {
        malformed(&with(&[("x", value)]));
        malformed(&[GET[0], GET[1], GET[2], (":authority", value)]);
    }
}

/// RFC 9113 section 8.2.2.
#[test]
fn fields_of_a_connection_are_malformed() {
    for name in [
        "connection",
        "proxy-connection",
        "keep-alive",
        "transfer-encoding",
        "upgrade",
    ] {
        malformed(&with(&[(name, "x")]));
    }
    malformed(&with(&[("te", "gzip")]));
    malformed(&with(&[("te", "trailers, gzip")]));
    request(&with(&[("te", "trailers")]));
}

/// RFC 9113 section 8.2.3.
#[test]
fn crumbs_of_cookies_are_one_field() {
    let list = with(&[
        ("cookie", "a=b"),
        ("x", "y"),
        ("cookie", "c=d"),
        ("z", ""),
        ("cookie", "e"),
    ]);
    let joined = request(&list);
    let fields: Vec<_> = joined
        .as_request()
        .fields
        .iter()
        .skip(1)
        .map(|(n, v)| (n.to_owned(), v.to_vec()))
        .collect();
    let expected = [("cookie", "a=b; c=d; e"), ("x", "y"), ("z", "")];
    let expected = expected.map(|(n, v)| (n.to_owned(), v.as_bytes().to_vec()));
    assert_eq!(fields, expected);
    let one = request(&with(&[("cookie", "a=b")]));
    assert_eq!(one.as_request().fields.get("cookie"), Some(&b"a=b"[..]));
}

/// RFC 9113 section 8.5.
#[test]
fn connect_opens_no_tunnel() {
    refused(
        &[(":method", "CONNECT"), (":authority", "a.example:443")],
        501,
    );
    malformed(&[(":method", "CONNECT"), GET[1], GET[2], GET[3]]);
    malformed(&[(":method", "CONNECT")]);
}

/// RFC 9113 section 8.1.1.
#[test]
fn a_body_has_the_length_that_was_announced() {
    let announced = |length| [&POST[..], &[("content-length", length)]].concat();
    for length in ["5", "3", "0"] {
        let mut client = TestClient::new();
        client.head(1, 0, &announced(length));
        client.data(1, 0, b"ab");
        assert_eq!(client.data(1, END_STREAM, b"cd"), []);
        assert_reset(&client.frames(), 1, ErrorCode::ProtocolError);
    }
    let mut client = TestClient::new();
    client.head(1, 0, &announced("4"));
    client.data(1, 0, b"ab");
    assert_eq!(client.data(1, END_STREAM, b"cd").len(), 1);
    malformed(&announced("1"));
    for length in ["", "+1", "-1", "1, 1", "1x", "18446744073709551616"] {
        malformed(&announced(length));
    }
    malformed(&with(&[("content-length", "0"), ("content-length", "0")]));
    request(&with(&[("content-length", "0")]));
}

/// RFC 9113 section 8.1.
#[test]
fn trailers_end_a_request_and_are_dropped() {
    let mut client = TestClient::new();
    client.post(1);
    client.data(1, 0, b"ab");
    let events = client.head(1, END_STREAM, &[("x", "y"), ("content-length", "7")]);
    assert_eq!(events, [SessionEvent::Request(StreamId(1))]);
    let request = client.request(1);
    assert_eq!(request.as_request().fields.get("x"), None);
    assert_eq!(request.as_request().body, &b"ab"[..]);
    for (flags, trailer) in [
        (0, ("x", "y")),
        (END_STREAM, (":path", "/")),
        (END_STREAM, ("X", "y")),
        (END_STREAM, ("x", "\n")),
        (END_STREAM, ("connection", "close")),
    ] {
        let mut client = TestClient::new();
        client.post(1);
        client.data(1, 0, b"ab");
        assert_eq!(client.head(1, flags, &[trailer]), []);
        assert_reset(&client.frames(), 1, ErrorCode::ProtocolError);
    }
    let long = "x".repeat(9000);
    let mut client = TestClient::new();
    client.post(1);
    let events = client.head(1, END_STREAM, &[("x", &long)]);
    let refused = SessionEvent::Refused(StreamId(1), Refusal::HeadTooLarge);
    assert_eq!(events, [refused]);
}

/// RFC 9110 section 10.1.1.
#[test]
fn expectations() {
    refused(&with(&[("expect", "200-maybe")]), 417);
    let expecting = [&POST[..], &[("expect", "100-Continue")]].concat();
    let mut client = TestClient::new();
    client.head(1, 0, &expecting);
    let frames = client.frames();
    assert_eq!((frames.len(), frames[0].stream), (1, 1));
    let fields = client.fields(&frames[0].payload);
    assert_eq!(fields, [(":status".to_owned(), "100".to_owned())]);
    assert_eq!(client.data(1, END_STREAM, b"x").len(), 1);
    client.respond(1, &ok(b"x"));
    assert_eq!(client.frames().len(), 2);
    // Not when the content is there.
    client.head(3, 0, &expecting);
    client.data(3, 0, b"x");
    assert_eq!(client.frames(), []);
    client.head(5, END_STREAM, &expecting);
    assert_eq!(client.frames(), []);
}

#[test]
fn limits_of_a_head() {
    let fields = |count: usize| with(&vec![("a", "b"); count]);
    request(&fields(196));
    refused(&fields(197), 431);
    let crumbs = with(&vec![("cookie", "b"); 197]);
    refused(&crumbs, 431);
    let long = "x".repeat(64 << 10);
    refused(&with(&[("x", &long[..(64 << 10) - 200])]), 431);
    let mut target = GET.to_vec();
    let path = format!("/{}", &long[..8 << 10]);
    target[2].1 = &path;
    refused(&target, 414);
    let mut method = GET.to_vec();
    method[0].1 = &long[..33];
    refused(&method, 501);
}

/// RFC 9110 section 9.3.2.
#[test]
fn a_head_that_is_refused_sends_no_content() {
    let long = "x".repeat(70_000);
    let mut list = with(&[("x", &long)]);
    list[0].1 = "HEAD";
    let (mut client, events) = events(&list, END_STREAM);
    assert!(matches!(events[..], [SessionEvent::Refused(..)]));
    client.respond(1, &crate::Response::text(431, "too large"));
    let frames = client.frames();
    assert_eq!((frames.len(), frames[0].kind), (1, FrameKind::Headers));
}

#[test]
fn a_body_over_the_limit_is_refused_and_dropped() {
    let limits = Limits {
        body: 100,
        ..Limits::default()
    };
    let mut client = TestClient::with_limits(limits);
    let announced = [&POST[..], &[("content-length", "101")]].concat();
    let refused = |stream| SessionEvent::Refused(StreamId(stream), Refusal::BodyTooLarge);
    assert_eq!(client.head(1, 0, &announced), [refused(1)]);
    client.post(3);
    assert_eq!(client.data(3, 0, &[0; 100]), []);
    assert_eq!(client.data(3, 0, &[0; 1]), [refused(3)]);
    assert_eq!(client.data(3, 0, &[0; 1000]), []);
    assert_eq!(client.session.body_bytes_held(), 0);
    client.respond(3, &crate::Response::text(413, "no"));
    let frames = client.frames();
    // RFC 9113 section 8.1.
    assert_reset(&frames[2..], 3, ErrorCode::NoError);
    assert_eq!(client.data(3, END_STREAM, &[0; 1000]), []);
    // The other was ended by the client.
    assert_eq!(client.data(1, END_STREAM, &[0; 101]), []);
    client.respond(1, &crate::Response::text(413, "no"));
    assert_eq!(client.frames().len(), 2);
}

/// Sends one block twice at one generation: it is one request, and is not decoded again.
#[test]
fn a_block_that_is_known_is_not_decoded() {
    let mut client = TestClient::new();
    let send = |client: &mut TestClient, stream, block: &[u8]| {
        client.frame(FrameKind::Headers, END_STREAM | 0x4, stream, block)
    };
    let repeatable = |client: &TestClient, stream| {
        let text = client.session.repeatable_text(StreamId(stream));
        text.map(<[u8]>::to_vec)
    };
    // A field that is put into the table: the block changes the state of the connection.
    let mut first = block(&GET);
    first.extend([0x40, 1, b'x', 1, b'y']);
    send(&mut client, 1, &first);
    assert_eq!(repeatable(&client, 1), None);
    let mut second = block(&GET);
    second.push(0xbe);
    send(&mut client, 3, &second);
    assert!(repeatable(&client, 3).is_some_and(|text| text.ends_with(b"x: y\r\n")));
    let epoch = Arc::new(AtomicU64::new(7));
    let (validity, response) = (Validity::Counter(Arc::clone(&epoch), 7), ok(b"x"));
    let known = KnownResponse::new(&client.session, StreamId(3), &response, validity);
    let known = Rc::new(known.expect("a short response"));
    client.session.learn(StreamId(3), &known);
    let events = send(&mut client, 5, &second);
    assert_eq!(
        events,
        [SessionEvent::Repeated(StreamId(5), Rc::clone(&known))]
    );
    client.session.repeat(StreamId(5), known.clone(), &[]);
    assert_eq!(client.frames().len(), 2);
    // The request is still known to the access log.
    let ended = client.ended.pop().expect("a stream that has ended");
    let request = ended.request(&super::support::peer(), client.now);
    assert_eq!(request.fields.get("x"), Some(&b"y"[..]));
    // A response that is not valid now.
    epoch.store(8, Ordering::SeqCst);
    assert_eq!(
        send(&mut client, 7, &second),
        [SessionEvent::Request(StreamId(7))]
    );
    epoch.store(7, Ordering::SeqCst);
    // Another state of the table: the same bytes may mean another request.
    let mut changing = block(&GET);
    changing.extend([0x40, 1, b'x', 1, b'z']);
    send(&mut client, 9, &changing);
    assert_eq!(
        send(&mut client, 11, &second),
        [SessionEvent::Request(StreamId(11))]
    );
    assert_eq!(
        client.request(11).as_request().fields.get("x"),
        Some(&b"z"[..])
    );
    // A response that the cache has dropped.
    client.session.learn(StreamId(11), &known);
    drop((known, ended, events));
    assert_eq!(
        send(&mut client, 13, &second),
        [SessionEvent::Request(StreamId(13))]
    );
    // POST has none.
    client.head(15, END_STREAM, &POST);
    assert_eq!(repeatable(&client, 15), None);
}
