//! Every request counts exactly once: what the server has counted is held against what its clients
//! have counted themselves.
//!
//! Clients cannot know two things: a connection that they close within a head is counted as a head
//! (`heads_abandoned`) and as no request, and a response that they do not read counts with its
//! status, and with the bytes that the socket took.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base_clock::Boottime;
use lab_testkit::PATIENCE;
use lab_testkit::http2::{END_HEADERS, END_STREAM, Frames, HEADERS, RESET, field, head_of};
use millpond_http::{LATENCY_EDGES, Limits, Version, WorkerGroup, listen};

use crate::support::{Client, Server, ServiceCall, label};

/// Label, method, status and version.
type Series = (u32, &'static str, u16, Option<Version>);

const HTTP_10: Option<Version> = Some(Version::Http10);
const HTTP_11: Option<Version> = Some(Version::Http11);
const HTTP_2: Option<Version> = Some(Version::Http2);

/// Requests and bytes of bodies as clients count them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    series: BTreeMap<Series, u64>,
    /// Without responses that were not read.
    body_bytes: u64,
}

impl Tally {
    fn add(&mut self, series: Series, body_bytes: usize) {
        *self.series.entry(series).or_default() += 1;
        self.body_bytes += body_bytes as u64;
    }

    fn join(&mut self, other: Self) {
        for (series, requests) in other.series {
            *self.series.entry(series).or_default() += requests;
        }
        self.body_bytes += other.body_bytes;
    }

    fn requests(&self) -> u64 {
        self.series.values().sum()
    }

    /// Reads the counts of the server.
    fn of(group: &WorkerGroup) -> Self {
        let mut tally = Self::default();
        for counts in group.requests() {
            let series = (counts.label, counts.method, counts.status, counts.version);
            *tally.series.entry(series).or_default() += counts.requests;
            assert_eq!(counts.buckets.iter().sum::<u64>(), counts.requests);
            if ![label("/big"), label("/later")].contains(&counts.label) {
                tally.body_bytes += counts.body_bytes;
            }
        }
        tally
    }
}

fn server() -> Server {
    let limits = Limits {
        head_timeout: Duration::from_secs(2),
        progress_timeout: Duration::from_secs(2),
        body: 64 << 10,
        ..Limits::default()
    };
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    Server::on(listener, limits, None, false)
}

/// Requests that are answered, 60 at a time.
fn pipelines(addr: SocketAddr, rounds: usize) -> Tally {
    let mut tally = Tally::default();
    let mut client = Client::open(addr);
    for round in 0..rounds {
        let methods = ["GET", "GET", "GET", "HEAD", "POST", "GET"];
        let targets = ["/kept", "/kept", "/large", "/ok", "/echo", "/other"];
        let asked: Vec<(&'static str, &str)> = (0..60)
            .map(|at| match round % 2 {
                // Runs of equal requests, and requests in turn.
                0 => (methods[at / 10], targets[at / 10]),
                _ => (methods[at % 6], targets[at % 6]),
            })
            .collect();
        let mut bytes = String::new();
        for (method, target) in &asked {
            let body = if *method == "POST" { "a body" } else { "" };
            let length = format!("Content-Length: {}\r\n", body.len());
            let length = if body.is_empty() { "" } else { &length };
            bytes += &format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{length}\r\n{body}");
        }
        client.send(bytes);
        for (method, target) in asked {
            let answer = match method {
                "HEAD" => client.head(),
                _ => client.response(),
            };
            let series = (label(target), method, answer.status, HTTP_11);
            tally.add(series, answer.body.len());
        }
    }
    tally
}

/// Requests that are refused, and answers that end a connection.
fn errors(addr: SocketAddr) -> Tally {
    let mut tally = Tally::default();
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9_000));
    let post = |rest: &str| format!("POST /echo HTTP/1.1\r\nHost: a\r\n{rest}");
    for (bytes, method, version, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "_OTHER", None, 400),
        ("GET /\r\n\r\n", "_OTHER", None, 400),
        (&long, "_OTHER", None, 414),
        ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "_OTHER", HTTP_11, 200),
        ("GET /ok HTTP/1.0\r\n\r\n", "GET", HTTP_10, 200),
        ("GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "GET", HTTP_11, 204),
        (
            "GET /panic HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET",
            HTTP_11,
            500,
        ),
        (
            "GET /panic-later HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET",
            HTTP_11,
            500,
        ),
        ("GET /made HTTP/1.1\r\nHost: a\r\n\r\n", "GET", HTTP_11, 200),
        (
            "GET /made-empty HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET",
            HTTP_11,
            200,
        ),
        // The second is not answered, and counts nowhere.
        (
            "GET /close HTTP/1.1\r\nHost: a\r\n\r\nGET /ok HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET",
            HTTP_11,
            200,
        ),
        (
            &post("Content-Length: 9999999\r\n\r\n"),
            "POST",
            HTTP_11,
            413,
        ),
        (
            &post("Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
            "POST",
            HTTP_11,
            400,
        ),
        (
            &post("Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
            "POST",
            HTTP_11,
            200,
        ),
        (
            "POST /unwanted HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            "POST",
            HTTP_11,
            403,
        ),
        (
            "POST /panic-at-body HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            "POST",
            HTTP_11,
            500,
        ),
    ] {
        let mut client = Client::open(addr);
        client.send(bytes);
        let answer = client.response();
        assert_eq!(answer.status, status, "{bytes}");
        tally.add((0, method, status, version), answer.body.len());
    }
    tally
}

/// Requests that clients give up, and those that are too slow.
fn given_up(server: &Server) -> (Tally, u64) {
    let mut tally = Tally::default();
    let mut slow = Vec::new();
    for (bytes, method, version) in [
        ("GET /slow HTT", "_OTHER", None),
        (
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
            "POST",
            HTTP_11,
        ),
    ] {
        let mut client = server.connect();
        client.send(bytes);
        slow.push((client, method, version));
    }
    let mut client = server.connect();
    client.send("GET /unfinished HTTP/1.1\r\nHo");
    drop(client);
    let mut client = server.connect();
    client.send("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    drop(client);
    tally.add((0, "PUT", 0, HTTP_11), 0);
    let mut client = server.connect();
    client.get("/big");
    assert_eq!(client.head().status, 200);
    drop(client);
    tally.add((label("/big"), "GET", 200, HTTP_11), 0);
    let mut client = server.connect();
    client.get("/later");
    while server.next_seen() != ServiceCall::Waiting {}
    drop(client);
    server.gate.add_permits(1);
    tally.add((label("/later"), "GET", 200, HTTP_11), 0);
    for (mut client, method, version) in slow {
        let answer = client.response();
        assert_eq!(answer.status, 408);
        tally.add((0, method, 408, version), answer.body.len());
    }
    (tally, 1)
}

/// Streams that are answered, reset by the client or by the server, and left.
fn streams(server: &Server, rounds: u32) -> Tally {
    let mut tally = Tally::default();
    let socket = TcpStream::connect(server.addr).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut frames = Frames::open(socket, &[]).unwrap();
    let mut next = (1..).step_by(2);
    let mut open = |frames: &mut Frames, flags: u8, block: &[u8]| {
        let stream = next.next().unwrap();
        frames
            .send(HEADERS, flags | END_HEADERS, stream, block)
            .unwrap();
        stream
    };
    for _ in 0..rounds {
        for target in ["/kept", "/kept", "/large", "/ok", "/made"] {
            let stream = open(&mut frames, END_STREAM, &head_of("http", "GET", target));
            let (status, body) = frames.response(stream).unwrap();
            tally.add((label(target), "GET", status, HTTP_2), body.len());
        }
    }
    let stream = open(&mut frames, END_STREAM, &head_of("http", "GET", "/later"));
    while server.next_seen() != ServiceCall::Waiting {}
    frames.send(RESET, 0, stream, &8_u32.to_be_bytes()).unwrap();
    tally.add((0, "GET", 0, HTTP_2), 0);
    let mut malformed = head_of("http", "DELETE", "/");
    field(&mut malformed, b"Upper-Case", b"1");
    let stream = open(&mut frames, END_STREAM, &malformed);
    assert!(frames.response(stream).is_err(), "it is reset");
    tally.add((0, "DELETE", 0, HTTP_2), 0);
    open(&mut frames, 0, &head_of("http", "PUT", "/echo"));
    tally.add((0, "PUT", 0, HTTP_2), 0);
    // An answer after it shows that the server has read so far.
    let stream = open(&mut frames, END_STREAM, &head_of("http", "GET", "/ok"));
    let (status, body) = frames.response(stream).unwrap();
    tally.add((0, "GET", status, HTTP_2), body.len());
    tally
}

/// With `MILLPOND_COUNTED` in the environment, about that many requests.
#[test]
fn each_request_counts_exactly_once() {
    let total = std::env::var("MILLPOND_COUNTED").ok();
    let total: usize = total.map_or(30_000, |total| total.parse().unwrap());
    let rounds = total / 60 / 2;
    let mut server = server();
    let addr = server.addr;
    let threads: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(move || {
                let mut tally = pipelines(addr, rounds);
                for _ in 0..20 {
                    tally.join(errors(addr));
                }
                tally
            })
        })
        .collect();
    let (mut tally, mut heads) = (Tally::default(), 0);
    for _ in 0..3 {
        let (given_up, abandoned) = given_up(&server);
        tally.join(given_up);
        heads += abandoned;
        tally.join(streams(&server, total as u32 / 300));
    }
    for thread in threads {
        tally.join(thread.join().unwrap());
    }
    server.shared.shutdown();
    server.join();
    let counted = Tally::of(&server.shared);
    assert_eq!(counted.series, tally.series);
    assert_eq!(counted.body_bytes, tally.body_bytes);
    assert!(tally.requests() > total as u64 / 2);
    assert_eq!(server.shared.stats().heads_abandoned, heads);
}

/// The time is that from the request to the last byte: no longer than the client has waited.
#[test]
fn the_time_of_a_request_is_that_of_its_response() {
    let mut server = server();
    let mut client = server.connect();
    let begun = Boottime::now();
    client.get("/later");
    while server.next_seen() != ServiceCall::Waiting {}
    let waiting = Boottime::now();
    // A time that no clock confuses with none.
    while Boottime::now().since(waiting) < Duration::from_millis(3) {
        std::thread::yield_now();
    }
    let let_go = Boottime::now();
    server.gate.add_permits(1);
    assert_eq!(client.response().status, 200);
    server.shared.shutdown();
    server.join();
    let longest = Boottime::now().since(begun).as_nanos();
    let counts = server.shared.requests();
    let [counts] = &counts[..] else {
        panic!("{counts:?}");
    };
    let nanos = u128::from(counts.nanos);
    assert!(
        nanos >= let_go.since(waiting).as_nanos() && nanos <= longest,
        "{nanos}"
    );
    let bucket = counts.buckets.iter().position(|&count| count == 1).unwrap();
    let bounds = [bucket.checked_sub(1), Some(bucket)];
    let [above, to] = bounds.map(|at| at.and_then(|at| LATENCY_EDGES.get(at)).copied());
    assert!(above.is_none_or(|above| counts.nanos > above));
    assert!(to.is_none_or(|to| counts.nanos <= to));
}
