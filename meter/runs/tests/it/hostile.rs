//! Servers that do not behave: counted by kind, bounded in memory and time, and never a panic.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millrace_client::Plan;
use millrace_runs::{Run, run};
use millrace_stats::Verdict;

use crate::stub::{HELLO, StubServer, check, counted, measure, serve};

/// Every request ends as `kind`.
fn all_end_as(kind: &str, plan: &Plan) -> Run {
    let run = measure(plan);
    assert_eq!(
        run.errors.count(kind),
        run.accounting.issued,
        "{:?}",
        run.errors
    );
    assert_eq!((run.accounting.good, run.verdict), (0, Verdict::Invalid));
    run
}

fn short(plan: Plan) -> Plan {
    plan.with(|plan| plan.request.timeout = Duration::from_millis(200))
}

/// Answers the first request with `bytes` and closes in good order once the client has.
fn answer_and_wait(bytes: &'static [u8]) -> StubServer {
    StubServer::start(move |mut stream| {
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(bytes);
        while stream.read(&mut request).is_ok_and(|count| count > 0) {}
    })
}

#[test]
fn a_refused_connection_is_counted_and_ends_a_counted_run() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for keep_alive in [true, false] {
        let run = all_end_as(
            "connect_refused",
            &counted(format!("http://{address}/"), 4, 20)
                .with(|plan| plan.request.keep_alive = keep_alive),
        );
        assert_eq!(
            (run.accounting.failed, run.connections.established),
            (20, 0)
        );
        assert!(
            run.reasons
                .iter()
                .any(|why| why.contains("4 of 4 connections were never established")),
            "{run:?}"
        );
    }
}

#[test]
fn a_close_in_the_middle_of_a_body_is_counted() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"",
    ] {
        let server = StubServer::start(move |stream| serve_once(&stream, answer));
        all_end_as("closed_early", &counted(server.url("/"), 2, 10));
    }
}

fn serve_once(mut stream: &TcpStream, answer: &[u8]) {
    let mut request = [0; 1024];
    let _ = stream.read(&mut request);
    let _ = stream.write_all(answer);
}

#[test]
fn garbage_is_counted_and_reported() {
    for answer in [
        &b"220 mail.example ESMTP\r\n"[..],
        b"\x16\x03\x03\x00\x02\x02\x50",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let server = answer_and_wait(answer);
        let run = all_end_as("bad_response", &counted(server.url("/"), 2, 6));
        assert!(!run.error_examples["bad_response"].is_empty());
    }
}

#[test]
fn no_answer_is_a_timeout() {
    let server = answer_and_wait(b"");
    all_end_as("timeout", &short(counted(server.url("/"), 2, 4)));
    let server = answer_and_wait(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell");
    all_end_as(
        "timeout",
        &short(counted(server.url("/"), 1, 6).with(|plan| plan.load.depth = 3)),
    );
}

#[test]
fn a_listener_that_never_accepts_is_a_timeout() {
    // The kernel completes the handshake for the backlog, and no program answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    all_end_as("timeout", &short(counted(url, 2, 4)));
}

/// Writes `first`, and then `again` until the client has had enough.
fn endless(first: &'static [u8], again: &'static [u8]) -> StubServer {
    StubServer::start(move |mut stream| {
        let mut request = [0; 1024];
        let _ = stream.read(&mut request);
        let mut written = stream.write_all(first);
        while written.is_ok() {
            written = stream.write_all(again);
        }
    })
}

#[test]
fn endless_heads_end() {
    for (first, again) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"X: y\r\n"[..]),
        (
            b"HTTP/1.1 200 OK\r\nX: ",
            b"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
        ),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"Trailer: x\r\n",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;",
            b"extension extension extension",
        ),
    ] {
        let server = endless(first, again);
        all_end_as("bad_response", &counted(server.url("/"), 2, 4));
    }
}

#[test]
fn endless_bodies_end_with_the_timeout() {
    static PIECE: [u8; 65536] = [b'x'; 65536];
    for first in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n",
    ] {
        let server = endless(first, &PIECE);
        all_end_as("timeout", &short(counted(server.url("/"), 2, 2)));
    }
}

#[test]
fn unsolicited_bytes_are_noticed() {
    let server = StubServer::fixed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more");
    let run = measure(&counted(server.url("/"), 1, 10));
    assert_eq!(run.requests + run.accounting.failed, 10);
    assert!(
        run.errors.count("unsolicited") + run.errors.count("bad_response") > 0,
        "{:?}",
        run.errors
    );
}

#[test]
fn a_banner_before_the_request_is_noticed() {
    let server = StubServer::start(|mut stream| {
        let _ = stream.write_all(HELLO);
        let _ = stream.read(&mut [0; 1024]);
    });
    let run = measure(&counted(server.url("/"), 1, 10));
    assert_eq!(run.requests + run.accounting.failed, 10);
    assert_ne!(run.verdict, Verdict::Valid);
}

#[test]
fn one_bad_connection_does_not_spoil_the_others() {
    let first = AtomicBool::new(true);
    let server = StubServer::start(move |stream| {
        let bad = first.swap(false, Ordering::Relaxed);
        serve(&stream, |_, _| (!bad).then(|| HELLO.to_vec()));
    });
    // One thread sends a request on every connection before it reads any response.
    let run = measure(&counted(server.url("/"), 4, 400).with(|plan| plan.load.threads = 1));
    assert_eq!(
        (run.accounting.good, run.errors.count("closed_early")),
        (399, 1),
        "{:?}",
        run.errors
    );
    assert_eq!(
        (run.connections.established, run.verdict == Verdict::Invalid),
        (4, false)
    );
}

#[test]
fn a_server_that_dies_is_counted_to_the_end() {
    let server = StubServer::fixed(HELLO);
    let (stop, url) = (AtomicBool::new(false), server.url("/"));
    let mut server = Some(server);
    // The stub's connections stay open; a plan without keep-alive needs new ones, which are not
    // accepted any more.
    let mut progress = |progress: &millrace_client::Progress| {
        if progress.finished > 0 {
            drop(server.take());
        }
        if progress.errors > 0 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let plan = short(counted(url, 2, u64::MAX)).with(|plan| plan.request.keep_alive = false);
    let run = run(&plan, Some(&mut progress), &stop).unwrap();
    check(&run);
    assert!(
        run.accounting.good > 0 && run.errors.total() > 0,
        "{:?}",
        run.errors
    );
}
