//! What RFC 9110 and RFC 9112 ask of a connection, seen from the other end of it.
//! `docs/reference/conformance.md` says which rule has which test.

use std::net::Shutdown;

use millpond_http::Limits;

use crate::support::{Answer, Client, Server, ServiceCall, prepared};

fn server() -> Server {
    Server::start(Limits::default())
}

/// The next request on the same connection is read and answered as such.
#[track_caller]
fn check_in_step(client: &mut Client) {
    client.get("/in-step");
    assert_eq!(client.response().text(), "/in-step");
}

#[test]
fn a_smuggled_request_is_never_answered() {
    const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (fields, body) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
            "0\r\n\r\n",
        ),
        ("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: \u{b}chunked\r\n", "0\r\n\r\n"),
        ("Content-Length: 0\r\nContent-Length: 35\r\n", ""),
        ("Content-Length: 0, 35\r\n", ""),
        ("Content-Length: +0\r\n", ""),
        ("A: b\r\n c: d\r\n", ""),
        ("A: b\n\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", "1\r\nxx0\r\n\r\n"),
    ] {
        let server = server();
        let mut client = server.connect();
        client.send(format!(
            "POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}{SMUGGLED}"
        ));
        let answer = client.response();
        assert_eq!(
            (answer.status, answer.field("connection")),
            (400, Some("close")),
            "{fields:?}"
        );
        assert!(client.is_at_end(), "{fields:?}");
        assert_eq!(server.next_seen(), ServiceCall::Refused(400));
        assert_eq!(server.shared.stats().requests, 0);
        server.check_serves();
    }
}

#[test]
fn nothing_is_read_after_the_client_has_said_close() {
    let server = server();
    let mut client = server.connect();
    client.send(
        "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /more HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(client.response().text(), "/last");
    assert!(client.is_at_end());
    assert_eq!(server.shared.stats().requests, 1);
    let mut client = server.connect();
    client.send("GET /close HTTP/1.1\r\nHost: a\r\n\r\nGET /more HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().field("connection"), Some("close"));
    assert!(client.is_at_end(), "nor when the server has said it");
    assert_eq!(server.shared.stats().requests, 2);
}

#[test]
fn a_body_that_ends_too_early_is_no_request() {
    for (framing, part) in [
        ("Content-Length: 4", "abc"),
        ("Transfer-Encoding: chunked", "3\r\nabc\r\n"),
        ("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\nA: b\r\n"),
    ] {
        let server = server();
        let mut client = server.connect();
        client.send(format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{part}"
        ));
        client.stream().shutdown(Shutdown::Write).unwrap();
        assert!(client.is_at_end());
        assert_eq!(server.shared.stats().requests, 0);
        server.check_serves();
    }
}

#[test]
fn trailers_are_read_and_dropped() {
    let server = server();
    let mut client = server.connect();
    client.send(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n\
         3;x=y\r\nabc\r\n0\r\nX: 1\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(client.response().text(), "abc");
    check_in_step(&mut client);
}

#[test]
fn an_upgrade_is_politely_ignored() {
    let server = server();
    let mut client = server.connect();
    for fields in [
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "Upgrade: TLS/1.0, HTTP/3.0\r\nConnection: upgrade\r\nExpect: 100-continue\r\n",
    ] {
        client.send(format!("GET /here HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        let answer = client.response();
        assert_eq!((answer.status, &*answer.text()), (200, "/here"));
        assert_eq!(
            (answer.field("upgrade"), answer.field("connection")),
            (None, None)
        );
    }
    client.send("GET /old HTTP/1.0\r\nUpgrade: h2c\r\nConnection: Upgrade, keep-alive\r\n\r\n");
    assert_eq!(client.response().field("connection"), Some("keep-alive"));
    check_in_step(&mut client);
}

#[test]
fn http_1_0_clients_get_what_they_can_read() {
    let server = server();
    let mut client = server.connect();
    // No 100, no chunks, a length, and the connection kept because it was asked for.
    client.send(
        "POST /echo HTTP/1.0\r\nConnection: Keep-Alive\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    );
    client.send("abc");
    let answer = client.response();
    assert_eq!((answer.status, &*answer.text()), (200, "abc"));
    assert_eq!(answer.field("connection"), Some("keep-alive"));
    assert_eq!(
        (
            answer.field("content-length"),
            answer.field("transfer-encoding")
        ),
        (Some("3"), None)
    );
    client.send("GET http://a.example/b HTTP/1.0\r\n\r\n");
    let answer = client.response();
    assert_eq!(
        (&*answer.text(), answer.field("connection")),
        ("/b", Some("close"))
    );
    assert!(client.is_at_end());
}

#[test]
fn targets_in_their_other_forms() {
    let server = server();
    let mut client = server.connect();
    for (line, seen) in [
        ("GET http://other.example/a/b?c", "/a/b"),
        ("GET http://other.example", "/"),
        ("GET HTTP://other.example:80?c", "/"),
        ("OPTIONS *", "*"),
        ("OPTIONS /a", "/a"),
    ] {
        client.send(format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.response().text(), seen, "{line}");
    }
}

#[test]
fn an_https_resource_is_not_given_without_tls() {
    let server = server();
    let mut client = server.connect();
    client.send("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.response();
    assert_eq!(
        (answer.status, answer.field("connection")),
        (421, Some("close"))
    );
    assert!(client.is_at_end());
    assert_eq!(server.next_seen(), ServiceCall::Refused(421));
}

#[test]
fn every_answer_has_a_date_and_says_why_it_is_none() {
    let has_date = |answer: &Answer| {
        let date = answer.field("date");
        date.is_some_and(|date| date.len() == 29 && date.ends_with(" GMT"))
    };
    let server = server();
    let mut client = server.connect();
    for path in ["/a", "/none", "/prepared", "/panic"] {
        client.get(path);
        let answer = client.response();
        assert!(has_date(&answer), "{answer:?}");
    }
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.send(request);
        let answer = client.response();
        let coding = answer.field("accept-encoding");
        assert_eq!(coding == Some("identity"), answer.status == 415);
        assert!(answer.status >= 400 && has_date(&answer), "{answer:?}");
        assert!(!answer.body.is_empty(), "{request:?}");
    }
}

/// Asks for `/prepared` with these fields.
fn conditional(client: &mut Client, method: &str, fields: &str) -> Answer {
    client.send(format!(
        "{method} /prepared HTTP/1.1\r\nHost: a\r\n{fields}\r\n"
    ));
    if method == "HEAD" {
        client.head()
    } else {
        client.response()
    }
}

#[test]
fn conditions_and_ranges_leave_the_connection_in_step() {
    let server = server();
    let mut client = server.connect();
    let tag = prepared().etag().to_owned();
    for (method, fields, status, length) in [
        ("GET", String::new(), 200, Some("1000")),
        ("HEAD", String::new(), 200, Some("1000")),
        ("GET", format!("If-None-Match: {tag}\r\n"), 304, None),
        ("HEAD", format!("If-None-Match: {tag}\r\n"), 304, None),
        ("GET", "If-Match: \"x\"\r\n".to_owned(), 412, Some("20")),
        ("HEAD", "If-Match: \"x\"\r\n".to_owned(), 412, Some("20")),
        ("GET", "Range: bytes=3-5\r\n".to_owned(), 206, Some("3")),
        ("HEAD", "Range: bytes=3-5\r\n".to_owned(), 200, Some("1000")),
        ("GET", "Range: bytes=1000-\r\n".to_owned(), 416, Some("0")),
        ("GET", "Range: bytes=5-3\r\n".to_owned(), 200, Some("1000")),
        (
            "GET",
            format!("Range: bytes=3-5\r\nIf-Range: {tag}\r\n"),
            206,
            Some("3"),
        ),
        (
            "GET",
            "Range: bytes=3-5\r\nIf-Range: \"x\"\r\n".to_owned(),
            200,
            Some("1000"),
        ),
        (
            "GET",
            "Content-Range: bytes 3-5/1000\r\n".to_owned(),
            200,
            Some("1000"),
        ),
        (
            "GET",
            "Content-Location: /other\r\n".to_owned(),
            200,
            Some("1000"),
        ),
    ] {
        let answer = conditional(&mut client, method, &fields);
        assert_eq!(
            (answer.status, answer.field("content-length")),
            (status, length),
            "{method} {fields:?}"
        );
        check_in_step(&mut client);
    }
}

#[test]
fn several_ranges_are_one_multipart_answer() {
    let server = server();
    let mut client = server.connect();
    let answer = conditional(&mut client, "GET", "Range: bytes=0-1,500-501\r\n");
    assert_eq!((answer.status, answer.field("content-range")), (206, None));
    let media_type = answer.field("content-type").unwrap().to_owned();
    let boundary = media_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let part = |first: usize| {
        format!(
            "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {first}-{}/1000\r\n\r\n01\r\n",
            first + 1
        )
    };
    assert_eq!(
        answer.text(),
        part(0) + &part(500) + &format!("--{boundary}--\r\n")
    );
    check_in_step(&mut client);
    // A thousand times the same is once.
    let ranges = vec!["0-"; 16].join(",");
    let answer = conditional(&mut client, "GET", &format!("Range: bytes={ranges}\r\n"));
    assert_eq!(answer.field("content-range"), Some("bytes 0-999/1000"));
    let ranges = vec!["0-"; 1000].join(",");
    let answer = conditional(&mut client, "GET", &format!("Range: bytes={ranges}\r\n"));
    assert_eq!((answer.status, answer.body.len()), (200, 1000));
    check_in_step(&mut client);
}
