//! Each limit exceeded on a real socket: the answer that belongs to it, the end of that connection,
//! and a server that still serves.

use std::io::Write;
use std::time::{Duration, Instant};

use millpond_http::Limits;

use crate::support::{Server, ServiceCall};

const SOON: Duration = Duration::from_millis(50);

/// Sends `input` to a server with small limits and expects `status` and the end.
#[track_caller]
fn check(limits: Limits, input: &str, status: u16) {
    let server = Server::start(limits);
    let mut client = server.connect();
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().text(), "/first");
    client.send(input);
    let answer = client.response();
    assert_eq!(
        (answer.status, answer.field("connection")),
        (status, Some("close")),
        "{answer:?}"
    );
    assert!(client.is_at_end());
    assert!(matches!(server.next_seen(), ServiceCall::Done { .. }));
    assert_eq!(server.next_seen(), ServiceCall::Refused(status));
    let refused = server.shared.stats().refused;
    assert_eq!(
        refused
            .iter()
            .filter(|(_, count)| *count > 0)
            .copied()
            .collect::<Vec<_>>(),
        [(status, 1)]
    );
    server.check_serves();
}

fn small() -> Limits {
    Limits {
        target: 100,
        head: 500,
        body: 100,
        ..Limits::default()
    }
}

#[test]
fn malformed() {
    for input in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02 TLS \r\n\r\n",
    ] {
        check(small(), input, 400);
    }
}

#[test]
fn target() {
    check(
        small(),
        &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100)),
        414,
    );
}

#[test]
fn head() {
    check(
        small(),
        &format!(
            "GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n",
            "a".repeat(500)
        ),
        431,
    );
}

#[test]
fn default_limits() {
    let get = |rest: String| format!("GET / HTTP/1.1\r\nHost: a\r\n{rest}\r\n");
    check(
        Limits::default(),
        &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(8 << 10)),
        414,
    );
    check(
        Limits::default(),
        &get(format!("A: {}\r\n", "a".repeat(64 << 10))),
        431,
    );
    check(Limits::default(), &get("A: b\r\n".repeat(100)), 431);
    check(
        Limits::default(),
        &get(format!("Content-Length: {}\r\n", (1 << 20) + 1)),
        413,
    );
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send(get(format!("A: {}\r\n", "a".repeat(63 << 10))));
    assert_eq!(client.response().status, 200);
    client.post("/echo", &"a".repeat(1 << 20));
    assert_eq!(client.response().body.len(), 1 << 20);
}

#[test]
fn body() {
    check(
        small(),
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n",
        413,
    );
    check(
        small(),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n",
        413,
    );
}

#[test]
fn a_refusal_reaches_a_client_that_goes_on_sending() {
    let server = Server::start(small());
    let mut client = server.connect();
    let mut writer = client.stream().try_clone().unwrap();
    // As much as lingering takes; the client reads only when it has sent it all.
    let body = vec![b'a'; 4 << 20];
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(head);
    writer.write_all(&body).unwrap();
    assert_eq!(client.response().status, 413);
}

#[test]
fn unknown_codings_and_versions() {
    check(
        small(),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        501,
    );
    check(small(), "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501);
    check(small(), "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
    check(
        small(),
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: cake\r\n\r\n",
        417,
    );
}

#[test]
fn head_timeout() {
    check(
        Limits {
            head_timeout: SOON,
            ..small()
        },
        "GET / HTTP/1.1\r\nHo",
        408,
    );
}

#[test]
fn body_timeout() {
    let limits = || Limits {
        progress_timeout: SOON,
        ..small()
    };
    check(
        limits(),
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab",
        408,
    );
    check(
        limits(),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        408,
    );
    check(
        limits(),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA",
        408,
    );
}

#[test]
fn a_body_that_trickles_is_refused_although_it_never_stands_still_for_long() {
    let server = Server::start(Limits {
        progress_timeout: Duration::from_millis(300),
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    let mut reader = client.stream().try_clone().unwrap();
    reader
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let mut answer = [0; 12];
    // Every read that finds nothing takes 20 ms and is followed by one byte: 50 bytes a second.
    loop {
        match std::io::Read::read(&mut reader, &mut answer) {
            Ok(_) => break,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => client.send("a"),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert_eq!(server.shared.stats().body_timeouts, 1);
    server.check_serves();
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let server = Server::start(Limits {
        progress_timeout: SOON,
        ..Limits::default()
    });
    let mut client = server.connect();
    client.get("/big");
    let ServiceCall::Done {
        status, body_bytes, ..
    } = server.next_seen()
    else {
        panic!()
    };
    assert_eq!(status, 200);
    assert!(body_bytes < 32 << 20);
    assert_eq!(server.shared.stats().write_timeouts, 1);
    client.head();
    while client.read() > 0 {}
    assert!(
        client.buffered() < 32 << 20,
        "the response is visibly incomplete"
    );
    server.check_serves();
}

#[test]
fn a_client_that_reads_slowly_gets_all() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.get("/big");
    server.check_serves();
    assert_eq!(client.response().body.len(), 32 << 20);
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let server = Server::start(Limits {
        idle_timeout: Duration::from_secs(1),
        ..Limits::default()
    });
    let mut silent = server.connect();
    assert!(silent.is_at_end());
    // A client that is slower than the limit finds its connection closed, and connects again.
    let (mut served, attempts) = (1..)
        .find_map(|attempt| {
            let mut client = server.connect();
            client.get("/a");
            let is_served = client.read() > 0 && client.response().text() == "/a";
            is_served.then_some((client, attempt))
        })
        .unwrap();
    assert!(served.is_at_end());
    assert_eq!(server.shared.stats().idle_timeouts, 1 + attempts);
}

#[test]
fn connections() {
    let server = Server::start(Limits {
        connections: 2,
        ..Limits::default()
    });
    let mut clients = [server.connect(), server.connect()];
    for client in &mut clients {
        client.get("/a");
        assert_eq!(client.response().text(), "/a");
    }
    let mut third = server.connect();
    third.get("/b");
    let answer = third.response();
    assert_eq!(
        (answer.status, answer.field("retry-after")),
        (503, Some("1"))
    );
    assert!(third.is_at_end());
    for client in &mut clients {
        client.get("/a");
        assert_eq!(client.response().text(), "/a");
    }
    assert_eq!(server.shared.stats().over_limit, 1);
    let [first, _second] = clients;
    drop(first);
    // The server sees the end of the first some time; until then it refuses.
    loop {
        let mut client = server.connect();
        client.get("/c");
        let answer = client.response();
        if answer.status == 200 {
            break assert_eq!(answer.text(), "/c");
        }
    }
}

#[test]
fn a_client_that_reads_slowly_and_steadily_is_served() {
    const TIMEOUT: Duration = Duration::from_millis(300);
    let server = Server::start(Limits {
        progress_timeout: TIMEOUT,
        ..Limits::default()
    });
    // A machine may hold up the client for longer than the server allows: then it was not steady.
    let is_served = (0..100).any(|_| match read_steadily(&server) {
        Ok(()) => true,
        Err(longest_pause) => {
            assert!(longest_pause > TIMEOUT / 3, "cut off in spite of its pace");
            false
        }
    });
    assert!(is_served, "the machine is too slow for any pace");
}

/// Reads `/big` so slowly that the kernel has no news of room for longer than the timeout. If it is
/// cut off: the longest time from one read to the next.
fn read_steadily(server: &Server) -> Result<(), Duration> {
    let mut client = server.connect();
    client.get("/big");
    let len = client.head().field("content-length").map(str::to_owned);
    assert_eq!(len.as_deref(), Some("33554432"));
    let start = Instant::now();
    let (mut last, mut longest) = (start, Duration::ZERO);
    while client.buffered() < 32 << 20 {
        let is_cut_off = client.read() == 0;
        longest = longest.max(last.elapsed());
        if is_cut_off {
            return Err(longest);
        }
        last = Instant::now();
        if start.elapsed() < Duration::from_millis(1500) {
            std::thread::sleep(Duration::from_millis(8));
        }
    }
    Ok(())
}
