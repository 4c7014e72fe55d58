//! Requests and responses: order, framing, persistence, panics.

use std::net::Shutdown;

use millpond_http::Limits;

use crate::support::{Server, ServiceCall};

#[test]
fn a_request() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.get("/hello?x");
    let answer = client.response();
    assert_eq!((answer.status, &*answer.text()), (200, "/hello"));
    assert!(
        answer
            .field("date")
            .is_some_and(|date| date.ends_with(" GMT"))
    );
    assert_eq!(answer.field("connection"), None);
    assert_eq!(
        server.next_seen(),
        ServiceCall::Done {
            target: "/hello?x".into(),
            status: 200,
            body_bytes: 6
        }
    );
    client.get("/again");
    assert_eq!(client.response().text(), "/again");
    let stats = server.shared.stats();
    assert_eq!((stats.accepted, stats.open, stats.requests), (1, 1, 2));
}

#[test]
fn a_request_byte_by_byte() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    for byte in
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    {
        client.send([*byte]);
    }
    assert_eq!(client.response().text(), "abc");
}

#[test]
fn a_hundred_pipelined_requests() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    let requests: String = (0..100)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .collect();
    client.send(requests);
    for n in 0..100 {
        assert_eq!(client.response().text(), format!("/{n}"));
    }
    for n in 0..100 {
        let ServiceCall::Done { target, .. } = server.next_seen() else {
            panic!()
        };
        assert_eq!(target, format!("/{n}"));
    }
}

#[test]
fn pipelined_megabytes_come_through_a_bounded_queue() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    let body = "b".repeat(100_000);
    for _ in 0..50 {
        client.post("/echo", &body);
        client.get("/x");
        assert_eq!(client.response().body.len(), 100_000);
        assert_eq!(client.response().text(), "/x");
    }
    let requests =
        format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{body}")
            .repeat(20);
    let mut writer = client.stream().try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        std::io::Write::write_all(&mut writer, requests.as_bytes()).unwrap();
    });
    for _ in 0..20 {
        assert_eq!(client.response().body.len(), 100_000);
    }
    writing.join().unwrap();
}

#[test]
fn a_get_behind_a_slow_post_sees_what_it_did() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("GET /before HTTP/1.1\r\nHost: a\r\n\r\nPOST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nnewGET /value HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        client.response().text(),
        "/before",
        "what is ready does not wait"
    );
    assert_eq!(server.next_seen(), ServiceCall::Waiting);
    let ServiceCall::Done { target, .. } = server.next_seen() else {
        panic!("the first is not done")
    };
    assert_eq!(target, "/before");
    server.check_serves();
    server.gate.add_permits(1);
    assert_eq!(client.response().text(), "new");
    assert_eq!(client.response().text(), "new");
}

#[test]
fn a_head_that_is_refused_has_no_content() {
    let server = Server::start(Limits::default());
    let bodiless = |request: &str| {
        let mut client = server.connect();
        client.send(request);
        let head = client.head();
        assert!(head.field("content-length") != Some("0"), "{request}");
        assert!(client.is_at_end(), "{request}");
        head.status
    };
    assert_eq!(bodiless("HEAD / HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(bodiless("HEAD /\u{e9} HTTP/1.1\r\n\r\n"), 400);
    let chunked = "HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n";
    assert_eq!(bodiless(chunked), 400);
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("HEAD /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head();
    assert_eq!(
        (head.status, head.field("content-length")),
        (200, Some("6"))
    );
    assert_eq!(client.response().text(), "/next");
    client.get("/none");
    let none = client.response();
    assert_eq!((none.status, none.field("content-length")), (204, None));
    client.get("/next");
    assert_eq!(client.response().text(), "/next");
    assert_eq!(
        server.next_seen(),
        ServiceCall::Done {
            target: "/hello".into(),
            status: 200,
            body_bytes: 0
        }
    );
}

#[test]
fn persistence_is_what_the_client_asks_for() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().field("connection"), Some("close"));
    assert!(client.is_at_end());
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.response().field("connection"), Some("keep-alive"));
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().field("connection"), Some("close"));
    assert!(client.is_at_end());
    let mut client = server.connect();
    client.get("/close");
    assert_eq!(client.response().field("connection"), Some("close"));
    assert!(client.is_at_end());
}

#[test]
fn a_client_that_only_listens_any_more_gets_its_answer() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.get("/later");
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.next_seen(), ServiceCall::Waiting);
    server.gate.add_permits(1);
    assert_eq!(client.response().status, 200);
    assert!(client.is_at_end());
}

#[test]
fn continue_is_sent_when_it_helps() {
    let server = Server::start(Limits {
        body: 10,
        ..Limits::default()
    });
    let mut client = server.connect();
    let head = |len: usize| {
        format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {len}\r\n\r\n"
        )
    };
    client.send(head(3));
    assert_eq!(client.response().status, 100);
    client.send("abc");
    assert_eq!(client.response().text(), "abc");
    client.send(head(3) + "abc");
    assert_eq!(
        client.response().text(),
        "abc",
        "no 100 when the body is there"
    );
    client.send(head(11));
    assert_eq!(
        client.response().status,
        413,
        "no 100 for a body that is too large"
    );
    assert!(client.is_at_end());
}

#[test]
fn a_panic_is_500_for_one_client() {
    let server = Server::start(Limits::default());
    for path in ["/panic", "/panic-later"] {
        let mut other = server.connect();
        other.get("/a");
        assert_eq!(other.response().text(), "/a");
        let mut client = server.connect();
        client.get(path);
        assert_eq!(client.response().status, 500);
        assert!(client.is_at_end());
        other.get("/b");
        assert_eq!(other.response().text(), "/b");
    }
    let mut client = server.connect();
    client.get("/panic-in-log");
    assert_eq!(client.response().status, 200);
    client.get("/a");
    assert_eq!(client.response().text(), "/a");
    assert_eq!(server.shared.stats().panics, 3);
}
