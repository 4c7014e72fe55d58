//! Requests that come again byte for byte: answered without being parsed, and never with what is
//! not valid.

use std::net::Shutdown;

use millpond_http::Limits;

use crate::support::{Server, ServiceCall};

#[test]
fn a_response_is_repeated_until_it_is_not_valid() {
    let server = Server::untold();
    let mut client = server.connect();
    let calls = |client: &mut crate::support::Client| {
        client.get("/calls");
        client.response().text().parse::<usize>().unwrap()
    };
    for text in ["one", "two", ""] {
        client.post("/set", text);
        assert_eq!(client.response().text(), text);
        let before = calls(&mut client);
        for _ in 0..10 {
            client.get("/kept");
            let answer = client.response();
            assert_eq!(answer.text(), text);
            assert!(answer.field("date").is_some());
        }
        let asked = calls(&mut client) - before - 1;
        assert!(asked <= 2, "the service was asked {asked} times");
    }
    // The value as it was before is valid again, and is another answer.
    client.post("/set", "one");
    client.response();
    client.get("/kept");
    assert_eq!(client.response().text(), "one");
}

#[test]
fn only_the_very_same_bytes_are_the_same_request() {
    let server = Server::untold();
    let mut client = server.connect();
    client.post("/set", "text");
    client.response();
    for _ in 0..4 {
        for (head, status, closes) in [
            ("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n", 200, false),
            ("GET /kept HTTP/1.1\r\nHost: b\r\n\r\n", 200, false),
            ("HEAD /kept HTTP/1.1\r\nHost: a\r\n\r\n", 200, false),
            ("GET /kept HTTP/1.1\r\n\r\n", 400, true),
            ("GET /kept HTTP/1.0\r\n\r\n", 200, true),
            (
                "GET /kept HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                200,
                true,
            ),
        ] {
            let mut client = server.connect();
            client.send(head);
            let answer = client.head();
            assert_eq!(answer.status, status, "{head}");
            assert_eq!(
                answer.field("connection") == Some("close"),
                closes,
                "{head}"
            );
        }
    }
}

#[test]
fn a_pipeline_mixes_what_is_repeated_with_what_is_not() {
    let server = Server::untold();
    let mut client = server.connect();
    client.post("/set", "text");
    client.response();
    for _ in 0..5 {
        let mut burst = String::new();
        for n in 0..20 {
            burst += "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";
            burst += &format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n");
            burst += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 37\r\n\r\n";
            // A body that looks like a request that is known.
            burst += "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n  body";
            burst += "\r\nGET /large HTTP/1.1\r\nHost: a\r\n\r\n";
        }
        // Cut where it hurts.
        let (first, second) = burst.split_at(burst.len() / 2 - 7);
        client.send(first);
        client.send(second);
        for n in 0..20 {
            assert_eq!(client.response().text(), "text");
            assert_eq!(client.response().text(), format!("/{n}"));
            assert_eq!(
                client.response().text(),
                "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n  body"
            );
            assert_eq!(client.response().body, vec![b'l'; 20 << 10]);
        }
    }
}

#[test]
fn two_heads_as_long_as_an_earlier_one_are_two_requests() {
    let server = Server::untold();
    let mut client = server.connect();
    client.post("/set", "text");
    client.response();
    let short = "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";
    let long = format!(
        "GET /kept HTTP/1.1\r\nHost: {}\r\n\r\n",
        "a".repeat(1 + short.len())
    );
    assert_eq!(long.len(), 2 * short.len());
    for _ in 0..4 {
        // Each pipeline ends with a head whose length is tried first in the next.
        for (pipeline, count) in [
            (long.repeat(3), 3),
            (short.repeat(2), 2),
            (short.repeat(4), 4),
            (format!("{long}{short}{short}{long}"), 4),
        ] {
            client.send(&pipeline);
            for _ in 0..count {
                assert_eq!(client.response().text(), "text");
            }
        }
    }
    client.get("/calls");
    let calls: usize = client.response().text().parse().unwrap();
    assert!(calls <= 8, "the service was called {calls} times");
}

#[test]
fn an_answer_that_waits_for_a_slow_reader_is_not_touched() {
    let server = Server::untold();
    let mut slow = server.connect();
    // More than the sockets take, so that the last of them wait in the process.
    let asked = 1000;
    for _ in 0..asked {
        slow.get("/large");
    }
    for _ in 0..3 {
        server.check_serves();
    }
    let mut other = server.connect();
    other.get("/large");
    assert_eq!(other.response().body, vec![b'l'; 20 << 10]);
    for _ in 0..asked {
        let answer = slow.response();
        assert_eq!(answer.body, vec![b'l'; 20 << 10]);
    }
}

#[test]
fn whoever_is_told_of_requests_is_told_of_each() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    for (target, len) in [("/kept?a=b", 0), ("/large", 20 << 10)] {
        for _ in 0..5 {
            client.get(target);
            client.response();
        }
        for _ in 0..5 {
            let done = ServiceCall::Done {
                target: target.to_owned(),
                status: 200,
                body_bytes: len,
            };
            assert_eq!(server.next_seen(), done);
        }
    }
}

#[test]
fn a_lone_request_whose_answer_the_socket_does_not_take_gets_all_of_it() {
    let server = Server::with_small_sockets();
    let mut client = server.connect();
    let asked = 40;
    for _ in 0..asked {
        client.get("/large");
        // Another connection has had its turn, so this one's is over: its answer is sent, or as
        // much of it as there is room for.
        server.check_serves();
    }
    for _ in 0..asked {
        assert_eq!(client.response().body, vec![b'l'; 20 << 10]);
    }
    // Told of each once, with all of its bytes.
    let large =
        |done: &ServiceCall| matches!(done, ServiceCall::Done { target, .. } if target == "/large");
    let mut told = 0;
    while told < asked {
        let done = server.next_seen();
        if large(&done) {
            let whole = ServiceCall::Done {
                target: "/large".to_owned(),
                status: 200,
                body_bytes: 20 << 10,
            };
            assert_eq!(done, whole);
            told += 1;
        }
    }
}

#[test]
fn a_known_request_that_is_a_clients_last_word_is_answered_before_the_end() {
    let server = Server::with_small_sockets();
    for _ in 0..5 {
        let mut client = server.connect();
        client.get("/large");
        client.stream().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.response().body, vec![b'l'; 20 << 10]);
        assert!(client.is_at_end());
    }
}

#[test]
fn a_known_request_that_comes_in_pieces_or_with_a_second_is_answered() {
    let server = Server::untold();
    let mut client = server.connect();
    client.post("/set", "text");
    client.response();
    let request = "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";
    for cut in 1..request.len() {
        let (first, second) = request.split_at(cut);
        client.send(first);
        server.check_serves();
        client.send(second);
        assert_eq!(client.response().text(), "text");
        client.send(format!("{request}{first}"));
        assert_eq!(client.response().text(), "text");
        client.send(second);
        assert_eq!(client.response().text(), "text");
        client.send(request);
        assert_eq!(client.response().text(), "text");
    }
}
