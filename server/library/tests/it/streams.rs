//! Answers that are made while they are sent.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};

use lab_testkit::PATIENCE;
use millpond::{Bytes, Request, Response, Routes, Shown, Stream, blocking, quick};

use crate::support::{Gate, connect, get, serve, settings};

/// Lines without end; says when it is dropped.
struct Endless {
    made: Arc<AtomicUsize>,
    dropped: Sender<()>,
}

impl Iterator for Endless {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.made.fetch_add(1, Ordering::SeqCst);
        Some(vec![b'e'; 8 << 10])
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.dropped.send(());
    }
}

fn numbers(n: u32) -> impl Iterator<Item = String> + Send {
    (0..n).map(|n| format!("{n}\n"))
}

fn kinds(gate: &Gate) -> Routes {
    let mut routes = Routes::new();
    let text = "text/plain";
    let gate = gate.clone();
    routes
        .get(
            "/quick/{n}",
            quick(move |_: &Request, n: u32| Response::stream(text, Stream::quick(numbers(n)))),
        )
        .get(
            "/blocking/{n}",
            quick(move |_: &Request, n: u32| Response::stream(text, Stream::blocking(numbers(n)))),
        )
        .get(
            "/from-blocking/{n}",
            blocking(move |_: &Request, n: u32| {
                Response::stream(text, Stream::blocking(numbers(n)))
            }),
        )
        .get(
            "/writer/{n}",
            quick(move |_: &Request, n: u32| {
                Response::stream(
                    text,
                    Stream::writer(move |out| {
                        numbers(n).try_for_each(|line| write!(out, "{line}"))
                    }),
                )
            }),
        )
        .get(
            "/slow-writer",
            quick(move |_: &Request| {
                let gate = gate.clone();
                let write = move |out: &mut millpond::StreamWriter| {
                    out.write_all(b"first")?;
                    out.flush()?;
                    gate.pass();
                    out.write_all(b", last")
                };
                Response::stream(text, Stream::writer(write))
            }),
        );
    routes
}

#[test]
fn every_kind_of_stream_gives_all_of_it() {
    let server = serve(kinds(&Gate::default()));
    let mut client = connect(&server);
    for n in [0, 1, 7, 100_000] {
        let expected: String = numbers(n).collect();
        for kind in ["quick", "blocking", "from-blocking", "writer"] {
            let response = client.get(&format!("/{kind}/{n}"));
            // What is short and at hand is not streamed.
            let is_whole = kind == "quick" && n < 1000;
            let coding = (!is_whole).then_some("chunked");
            assert_eq!(response.field("transfer-encoding"), coding, "{kind} {n}");
            assert!(response.text() == expected, "{kind} {n}");
        }
    }
}

#[test]
fn what_is_flushed_arrives_before_the_rest_is_made() {
    let gate = Gate::default();
    let server = serve(kinds(&gate));
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
        .write_all(b"GET /slow-writer HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut received = Vec::new();
    let mut read_until = |end: &[u8]| {
        while !received.ends_with(end) {
            let mut bytes = [0; 1000];
            let len = client.read(&mut bytes).unwrap();
            assert!(len > 0, "it ends before");
            received.extend_from_slice(&bytes[..len]);
        }
    };
    read_until(b"\r\n\r\n5\r\nfirst");
    gate.wait_for(1);
    gate.open(1);
    read_until(b"first\r\n6\r\n, last\r\n0\r\n\r\n");
}

/// One thread that may block, and a hundred clients that read nothing.
#[test]
fn slow_readers_hold_no_thread_and_little_memory() {
    let (dropped, drops) = mpsc::channel();
    let made = Arc::<AtomicUsize>::default();
    let mut routes = kinds(&Gate::default());
    for (path, is_quick) in [("/endless-quick", true), ("/endless-blocking", false)] {
        let (made, dropped) = (Arc::clone(&made), dropped.clone());
        routes.get(
            path,
            quick(move |_: &Request| {
                let endless = Endless {
                    made: Arc::clone(&made),
                    dropped: dropped.clone(),
                };
                let stream = match is_quick {
                    true => Stream::quick(endless),
                    false => Stream::blocking(endless),
                };
                Response::stream("text/plain", stream)
            }),
        );
    }
    let server = settings().blocking_threads(1).serve(routes).unwrap();
    let mut clients = Vec::new();
    for _ in 0..50 {
        for path in ["/endless-quick", "/endless-blocking"] {
            let mut client = connect(&server);
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            client.receive_head();
            clients.push(client);
        }
    }
    // The thread has time for others, and the iterators stand still.
    let expected: String = numbers(10_000).collect();
    for _ in 0..3 {
        assert!(get(&server, "/from-blocking/10000").text() == expected);
    }
    let begun = std::time::Instant::now();
    let mut before = usize::MAX;
    while before != made.load(Ordering::SeqCst) {
        assert!(begun.elapsed() < PATIENCE, "they do not stand still");
        before = made.load(Ordering::SeqCst);
        (0..20).for_each(|_| drop(get(&server, "/quick/1")));
    }
    // As much as sockets take, of 8 KiB each.
    assert!(before < 100 * 1500, "{before} pieces");
    drop(clients);
    (0..100).for_each(|_| drops.recv_timeout(PATIENCE).unwrap());
}

#[test]
fn a_writer_whose_client_goes_learns_it() {
    let (told, tells) = mpsc::channel();
    let mut routes = Routes::new();
    routes.get(
        "/",
        quick(move |_: &Request| {
            let told = told.clone();
            let write = move |out: &mut millpond::StreamWriter| {
                let written = loop {
                    if let Err(error) = out.write_all(&[b'w'; 1000]) {
                        break error;
                    }
                };
                told.send(written.kind()).unwrap();
                Err(written)
            };
            Response::stream("text/plain", Stream::writer(write))
        }),
    );
    let server = serve(routes);
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.stream().read_exact(&mut vec![0; 1 << 20]).unwrap();
    drop(client);
    assert_eq!(
        tells.recv_timeout(PATIENCE).unwrap(),
        std::io::ErrorKind::BrokenPipe
    );
    // The end of the server.
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.receive_head();
    let reader = std::thread::spawn(move || client.stream().read_to_end(&mut Vec::new()));
    drop(server);
    assert_eq!(
        tells.recv_timeout(PATIENCE).unwrap(),
        std::io::ErrorKind::BrokenPipe
    );
    let _ = reader.join();
}

#[test]
fn a_stream_that_fails_is_seen_to_be_incomplete() {
    let mut routes = Routes::new();
    let piece = |n: u32| match n {
        3 => Err("no more"),
        n => Ok(n.to_string()),
    };
    let panics = |n: u32| match n {
        3 => panic!("asked for"),
        n => n.to_string(),
    };
    routes
        .get(
            "/quick",
            quick(move |_: &Request| Response::stream("a/b", Stream::quick((0..9).map(piece)))),
        )
        .get(
            "/blocking",
            quick(move |_: &Request| Response::stream("a/b", Stream::blocking((0..9).map(panics)))),
        )
        .get(
            "/writer",
            quick(move |_: &Request| {
                let write = |out: &mut millpond::StreamWriter| {
                    out.write_all(b"012")?;
                    Err(std::io::ErrorKind::Other.into())
                };
                Response::stream("a/b", Stream::writer(write))
            }),
        );
    for (path, from) in [("/late-error", 3000), ("/late-panic", 3000), ("/early", 3)] {
        let panics = path == "/late-panic";
        let line = move |n: u32| match n {
            n if n < from => Ok(format!("{n:9}\n")),
            _ if panics => panic!("asked for"),
            _ => Err("no more"),
        };
        let quick =
            quick(move |_: &Request| Response::stream("a/b", Stream::quick((0..).map(line))));
        routes.get(path, quick);
    }
    let server = serve(routes);
    for path in ["/late-error", "/late-panic", "/blocking", "/writer"] {
        let mut client = connect(&server);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut bytes = Vec::new();
        client.stream().read_to_end(&mut bytes).unwrap();
        assert!(!bytes.ends_with(b"0\r\n\r\n"), "{path}");
    }
    assert_eq!(get(&server, "/early").status, 500);
    assert_eq!(get(&server, "/quick").status, 500);
}

/// Copies large pieces only if something stands beside them; the order is kept.
#[test]
fn pieces_of_all_kinds_come_in_their_order() {
    let piece = |n: u32| {
        let large = "x".repeat(if n.is_multiple_of(3) { 5000 } else { 3 });
        let shown = Some(n).filter(|n| n.is_multiple_of(2)).map(Shown);
        (shown, (Bytes::from(large), "-"), Ok::<_, ()>(vec![b'\n']))
    };
    let expected: String = (0..40_u32)
        .map(|n| {
            let shown = Some(n)
                .filter(|n| n.is_multiple_of(2))
                .map(|n| n.to_string());
            let large = "x".repeat(if n.is_multiple_of(3) { 5000 } else { 3 });
            format!("{}{large}-\n", shown.unwrap_or_default())
        })
        .collect();
    let mut routes = Routes::new();
    routes
        .get(
            "/quick",
            quick(move |_: &Request| Response::stream("a/b", Stream::quick((0..40).map(piece)))),
        )
        .get(
            "/blocking",
            quick(move |_: &Request| Response::stream("a/b", Stream::blocking((0..40).map(piece)))),
        );
    let server = serve(routes);
    for path in ["/quick", "/blocking"] {
        assert!(get(&server, path).text() == expected, "{path}");
    }
}

/// Clients that read nothing of what is written for them.
#[test]
fn writers_leave_threads_for_others() {
    let mut routes = kinds(&Gate::default());
    let endless = |_: &Request| {
        let write = |out: &mut millpond::StreamWriter| loop {
            out.write_all(&[b'w'; 1000])?;
        };
        Response::stream("text/plain", Stream::writer(write))
    };
    routes.get("/endless-writer", quick(endless));
    let server = settings().blocking_threads(4).serve(routes).unwrap();
    let mut clients: Vec<_> = (0..2).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.send("GET /endless-writer HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.receive_head().status, 200);
    }
    let refused = get(&server, "/endless-writer");
    assert_eq!(
        (refused.status, refused.field("retry-after")),
        (503, Some("1"))
    );
    let expected: String = numbers(10_000).collect();
    assert!(get(&server, "/from-blocking/10000").text() == expected);
    // Once one goes, there is room again.
    clients.pop();
    let begun = std::time::Instant::now();
    while get(&server, "/writer/10").status != 200 {
        assert!(begun.elapsed() < PATIENCE, "the permit does not come back");
    }
}
