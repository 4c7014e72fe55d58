//! Bodies that the service makes while they are sent.

use std::future::Future;
use std::io::Read as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};
use std::time::Duration;

use base_clock::Deadline;
use bytes::Bytes;
use lab_testkit::PATIENCE;
use millpond_http::{BodyCut, BodySource, Limits, Reply, Request, Response, StreamedBody};
use tokio::sync::Semaphore;

use crate::http2::{Http2Client, run};
use crate::support::{Server, ServiceCall};

/// Makes a body by its path: `/made` is [`WHOLE`], `/made-gated` the same with a permit of the gate
/// for each piece, `/made-cut` and `/made-panic` end after the first two pieces, `/made-empty` has
/// no piece, `/made-endless` has no end.
pub(crate) struct BodyMaker {
    path: String,
    gate: Arc<Semaphore>,
    permit: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    seen: Sender<ServiceCall>,
    given: usize,
    is_finished: bool,
}

const PIECES: [&str; 5] = ["one, ", "", "two, ", LONG, "three"];
const LONG: &str = match std::str::from_utf8(&[b'x'; 100_000]) {
    Ok(text) => text,
    Err(_) => panic!(),
};

fn whole() -> String {
    PIECES.concat()
}

impl BodyMaker {
    pub(crate) fn reply(
        request: &Request<'_>,
        gate: &Arc<Semaphore>,
        seen: &Sender<ServiceCall>,
    ) -> Reply {
        let maker = Self {
            path: request.path.to_owned(),
            gate: Arc::clone(gate),
            permit: None,
            seen: seen.clone(),
            given: 0,
            is_finished: false,
        };
        let response = Response::builder(200).field("Content-Type", "text/plain");
        let response = response.streamed(StreamedBody::new(maker));
        match request.path.ends_with("later") {
            true => Reply::later(async move { response }),
            false => response.into(),
        }
    }
}

impl BodySource for BodyMaker {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyCut>>> {
        if self.path == "/made-gated" {
            let gate = &self.gate;
            let permit = self.permit.get_or_insert_with(|| {
                let gate = Arc::clone(gate);
                Box::pin(async move { gate.acquire().await.unwrap().forget() })
            });
            std::task::ready!(permit.as_mut().poll(context));
            self.permit = None;
        }
        let at = self.given;
        self.given += 1;
        Poll::Ready(match &*self.path {
            "/made-cut" if at == 3 => Some(Err(BodyCut)),
            "/made-panic" if at == 3 => panic!("asked for"),
            "/made-endless" => Some(Ok(Bytes::from_static(&[b'e'; 8 << 10]))),
            "/made-empty" => {
                self.is_finished = true;
                None
            }
            _ => match PIECES.get(at) {
                Some(piece) => Some(Ok(Bytes::from_static(piece.as_bytes()))),
                None => {
                    self.is_finished = true;
                    None
                }
            },
        })
    }
}

impl Drop for BodyMaker {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.seen.send(ServiceCall::Dropped);
        }
    }
}

fn wait_dropped(server: &Server) {
    while server.next_seen() != ServiceCall::Dropped {}
}

/// Drops the body while the client's connection goes on.
async fn dropped(server: &Server) {
    let deadline = Deadline::after(PATIENCE);
    while server.seen.try_recv() != Ok(ServiceCall::Dropped) {
        assert!(!deadline.is_past(), "the source is still there");
        tokio::task::yield_now().await;
    }
}

fn wait_done(server: &Server, path: &str) -> u64 {
    loop {
        if let ServiceCall::Done {
            target, body_bytes, ..
        } = server.next_seen()
            && target == path
        {
            return body_bytes;
        }
    }
}

#[test]
fn a_made_body_arrives_in_chunks_and_the_connection_goes_on() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    for path in ["/made", "/made-later", "/made-empty"] {
        client.get(path);
        client.get("/ok");
        let response = client.response();
        assert_eq!(response.field("transfer-encoding"), Some("chunked"));
        assert_eq!(response.field("content-length"), None);
        let expected = if path == "/made-empty" {
            String::new()
        } else {
            whole()
        };
        assert_eq!(response.text(), expected, "{path}");
        assert_eq!(client.response().text(), "/ok");
        assert_eq!(wait_done(&server, path), expected.len() as u64);
    }
    client.send("HEAD /made HTTP/1.1\r\nHost: a\r\n\r\nGET /ok HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    assert_eq!(client.response().text(), "/ok");
    // HTTP/1.0 knows no chunks.
    for kept in ["", "Connection: keep-alive\r\n"] {
        let mut client = server.connect();
        client.send(format!("GET /made HTTP/1.0\r\n{kept}\r\n"));
        let mut bytes = String::new();
        client.stream().read_to_string(&mut bytes).unwrap();
        let (head, body) = bytes.split_once("\r\n\r\n").unwrap();
        assert!(
            head.ends_with("Connection: close") && !head.contains("chunked"),
            "{head}"
        );
        assert_eq!(body, whole());
    }
    let mut client = server.connect();
    client.send("GET /made HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().text(), whole());
    assert!(client.is_at_end());
}

#[test]
fn pieces_are_sent_when_they_are_made_and_hold_up_no_other_client() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.get("/made-gated");
    assert_eq!(client.head().status, 200);
    server.check_serves();
    assert_eq!(client.buffered(), 0);
    server.gate.add_permits(1);
    let mut received = [0; 8];
    client.stream().read_exact(&mut received).unwrap();
    assert_eq!(&received, b"5\r\none, ");
    server.check_serves();
    server.gate.add_permits(10);
    let mut rest = Vec::new();
    while !rest.ends_with(b"\r\n0\r\n\r\n") {
        let mut bytes = [0; 4096];
        let len = client.stream().read(&mut bytes).unwrap();
        rest.extend_from_slice(&bytes[..len]);
    }
    assert_eq!(wait_done(&server, "/made-gated"), whole().len() as u64);
}

#[test]
fn a_body_without_end_holds_up_no_other_and_ends_with_its_client() {
    let server = Server::start(Limits::default());
    let mut client = server.connect();
    client.get("/made-endless");
    let mut bytes = vec![0; 1 << 20];
    for _ in 0..20 {
        client.stream().read_exact(&mut bytes).unwrap();
        server.check_serves();
    }
    drop(client);
    wait_dropped(&server);
    assert!(wait_done(&server, "/made-endless") >= 20 << 20);
    // A client that does not read.
    let limits = Limits {
        progress_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = Server::start(limits);
    let mut client = server.connect();
    client.get("/made-endless");
    wait_dropped(&server);
    assert_eq!(server.shared.stats().write_timeouts, 1);
    drop(client);
    // The end of the server, in the middle and while it waits for a piece.
    let limits = Limits {
        drain_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let mut server = Server::start(limits);
    let mut clients = [server.connect(), server.connect()];
    clients[0].get("/made-endless");
    clients[1].get("/made-gated");
    assert_eq!(clients[0].head().status, 200);
    assert_eq!(clients[1].head().status, 200);
    server.shared.shutdown();
    wait_dropped(&server);
    wait_dropped(&server);
    server.join();
}

#[test]
fn a_body_that_cannot_be_made_is_seen_to_be_incomplete() {
    let server = Server::start(Limits::default());
    for (path, panics) in [("/made-cut", 0), ("/made-panic", 1)] {
        let mut client = server.connect();
        client.get(path);
        let mut bytes = Vec::new();
        client.stream().read_to_end(&mut bytes).unwrap();
        assert!(!bytes.ends_with(b"0\r\n\r\n"), "{path}");
        wait_dropped(&server);
        assert_eq!(server.shared.stats().panics, panics);
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
        let error = client.stream().read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        wait_dropped(&server);
    }
    server.check_serves();
}

#[test]
fn the_same_over_http2() {
    let server = Server::start(Limits::default());
    run(async {
        let mut builder = h2::client::Builder::new();
        // More than that of a stream, so that one that is not read holds up no other.
        builder.initial_connection_window_size(1 << 20);
        let client = Http2Client::with(server.addr, &builder).await;
        for path in ["/made", "/made-later", "/made-empty"] {
            let (status, body) = client.ask("GET", path, b"").await;
            let expected = if path == "/made-empty" {
                String::new()
            } else {
                whole()
            };
            assert_eq!((status.as_u16(), &*body), (200, expected.as_bytes()));
            assert_eq!(wait_done(&server, path), expected.len() as u64);
        }
        assert!(client.ask("HEAD", "/made", b"").await.1.is_empty());
        server.gate.add_permits(100);
        assert_eq!(
            client.ask("GET", "/made-gated", b"").await.1,
            whole().as_bytes()
        );
        for path in ["/made-cut", "/made-panic", "/made-endless"] {
            let request = http::Request::get(format!("http://localhost{path}"));
            let mut requests = client.requests.clone().ready().await.unwrap();
            let sent = requests.send_request(request.body(()).unwrap(), true);
            let mut body = sent.unwrap().0.await.unwrap().into_body();
            let first = body.data().await.unwrap();
            if path == "/made-endless" {
                // The client takes no more than the window, and other streams go on.
                assert!(!first.unwrap().is_empty());
                assert_eq!(client.ask("GET", "/made", b"").await.1, whole().as_bytes());
                drop(body);
            } else {
                let mut ended = first;
                while ended.is_ok() {
                    ended = body.data().await.expect("it is not the end of the body");
                }
                assert!(ended.unwrap_err().is_reset());
            }
            dropped(&server).await;
        }
        assert_eq!(client.ask("GET", "/ok", b"").await.1, b"/ok");
    });
    assert_eq!(server.shared.stats().panics, 1);
}

#[test]
fn the_connection_of_http2_ends_with_its_sources() {
    let limits = Limits {
        progress_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = Server::start(limits);
    run(async {
        let client = Http2Client::connect(&server).await;
        let request = http::Request::get("http://localhost/made-endless");
        let mut requests = client.requests.clone().ready().await.unwrap();
        let sent = requests.send_request(request.body(()).unwrap(), true);
        let body = sent.unwrap().0.await.unwrap().into_body();
        // A window that stays shut.
        dropped(&server).await;
        drop(body);
        let request = http::Request::get("http://localhost/made-gated");
        let sent = requests.send_request(request.body(()).unwrap(), true);
        let body = sent.unwrap().0.await.unwrap().into_body();
        client.abort();
        dropped(&server).await;
        drop(body);
    });
}
