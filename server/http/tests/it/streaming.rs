//! Bodies that the service takes as they arrive.

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use millpond_http::{BodyReceiver, Limits, Reply, Request, Response};
use tokio::sync::Semaphore;

use crate::http2::Http2Client;
use crate::support::{Client, Server, ServiceCall};

const MIB: usize = 1 << 20;
/// Bytes that a permit of the gate gives room for.
const ROOM: u64 = 64 << 10;

/// Counts the bytes of a body. `/stream-gated` has room for [`ROOM`] per permit of the gate,
/// `/stream-fails` ends after [`ROOM`], `/stream-panics` panics then.
pub(crate) struct BodyTaker {
    path: String,
    gate: Arc<Semaphore>,
    seen: Sender<ServiceCall>,
    permit: Option<Pin<Box<dyn Future<Output = ()>>>>,
    room: u64,
    taken: u64,
    sum: u64,
    is_finished: bool,
}

impl BodyTaker {
    pub(crate) fn new(
        request: &Request<'_>,
        gate: &Arc<Semaphore>,
        seen: &Sender<ServiceCall>,
    ) -> Self {
        Self {
            path: request.path.to_owned(),
            gate: Arc::clone(gate),
            seen: seen.clone(),
            permit: None,
            room: if request.path == "/stream-gated" {
                0
            } else {
                u64::MAX
            },
            taken: 0,
            sum: 0,
            is_finished: false,
        }
    }
}

impl BodyReceiver for BodyTaker {
    fn limit(&self) -> u64 {
        64 * MIB as u64
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.taken >= self.room {
            let gate = &self.gate;
            let permit = self.permit.get_or_insert_with(|| {
                let gate = Arc::clone(gate);
                Box::pin(async move { gate.acquire().await.unwrap().forget() })
            });
            std::task::ready!(permit.as_mut().poll(context));
            self.permit = None;
            self.room += ROOM;
        }
        Poll::Ready(())
    }

    fn receive(&mut self, piece: &[u8]) -> Result<(), Response> {
        self.taken += piece.len() as u64;
        self.sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        if self.room != u64::MAX {
            // A buffer, or the window of a stream, beyond the room.
            assert!(self.taken <= self.room + (256 << 10) + (16 << 10));
        }
        if self.taken > ROOM {
            match &*self.path {
                "/stream-fails" => return Err(Response::text(415, "wrong")),
                "/stream-panics" => panic!("asked for"),
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, request: &Request<'_>) -> Reply {
        assert!(request.body.is_empty() && request.path == self.path);
        self.is_finished = true;
        let text = format!("{} {}", self.taken, self.sum);
        match &*self.path {
            "/stream-later" => Reply::later(async move {
                tokio::task::yield_now().await;
                Response::text(200, &text)
            }),
            _ => Response::text(200, &text).into(),
        }
    }
}

impl Drop for BodyTaker {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.seen.send(ServiceCall::Dropped);
        }
    }
}

fn body(len: usize) -> (Vec<u8>, String) {
    let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
    (body, format!("{len} {sum}"))
}

fn head(path: &str, framing: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n")
}

/// Waits until the receiver of a body that did not end is dropped.
fn wait_dropped(server: &Server) {
    while server.next_seen() != ServiceCall::Dropped {}
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(7_000) {
        out.extend(format!("{:x}\r\n", piece.len()).bytes());
        out.extend(piece);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\n\r\n");
    out
}

#[test]
fn a_body_longer_than_the_limit_of_others_is_taken_as_it_arrives() {
    let server = Server::start(Limits::default());
    let (body, expected) = body(5 * MIB);
    let mut client = server.connect();
    for path in ["/stream", "/stream-later"] {
        client.send(head(path, &format!("Content-Length: {}", body.len())));
        client.send(&body);
        assert_eq!(client.response().text(), expected);
        client.send(head(path, "Transfer-Encoding: chunked"));
        client.send(chunked(&body));
        assert_eq!(client.response().text(), expected);
        // The connection goes on, and other bodies have their limit.
        client.post("/echo", "x");
        assert_eq!(client.response().text(), "x");
    }
    // In one piece with its head, and with the next request.
    let mut both = head("/stream", "Content-Length: 3").into_bytes();
    both.extend(b"\x01\x02\x03");
    both.extend(head("/echo", "Content-Length: 2").bytes());
    both.extend(b"ok");
    client.send(both);
    assert_eq!(client.response().text(), "3 6");
    assert_eq!(client.response().text(), "ok");
}

#[test]
fn a_service_without_room_holds_up_the_client() {
    let server = Server::start(Limits::default());
    let (body, expected) = body(6 * MIB);
    let mut client = server.connect();
    client.send(head(
        "/stream-gated",
        &format!("Content-Length: {}", body.len()),
    ));
    let mut stream = client.stream().try_clone().unwrap();
    let sender = std::thread::spawn({
        let body = body.clone();
        move || stream.write_all(&body).unwrap()
    });
    // The worker goes on meanwhile; the receiver checks that it gets no more than there is room.
    for _ in 0..body.len() as u64 / ROOM {
        server.check_serves();
        server.gate.add_permits(1);
    }
    server.gate.add_permits(2);
    assert_eq!(client.response().text(), expected);
    sender.join().unwrap();
}

#[test]
fn waiting_for_room_is_not_the_slowness_of_the_client() {
    let limits = Limits {
        progress_timeout: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(limits);
    let (body, expected) = body(300 << 10);
    let mut client = server.connect();
    let framing = format!("Content-Length: {}", body.len());
    client.send(head("/stream-gated", &framing));
    client.send(&body[..200 << 10]);
    // A second connection shows that more than the timeout has passed: it is closed by it.
    let mut slow = server.connect();
    slow.send(head("/stream", "Content-Length: 10"));
    assert_eq!(slow.response().status, 408);
    wait_dropped(&server);
    server.gate.add_permits(1000);
    client.send(&body[200 << 10..]);
    assert_eq!(client.response().text(), expected);
}

fn check_closes(mut client: Client, status: u16) {
    assert_eq!(client.response().status, status);
    assert!(client.is_at_end());
}

#[test]
fn a_body_that_is_not_wanted_is_refused_at_its_head() {
    let server = Server::start(Limits::default());
    for framing in ["Content-Length: 9999999", "Transfer-Encoding: chunked"] {
        for more in ["", "\r\nExpect: 100-continue"] {
            let mut client = server.connect();
            client.send(head("/unwanted", &format!("{framing}{more}")));
            check_closes(client, 403);
            let mut client = server.connect();
            client.send(head("/panic-at-body", &format!("{framing}{more}")));
            check_closes(client, 500);
        }
    }
    let mut client = server.connect();
    let too_long = format!("Content-Length: {}", 64 * MIB + 1);
    client.send(head("/stream", &too_long));
    check_closes(client, 413);
    let mut client = server.connect();
    client.send(head("/stream", "Transfer-Encoding: chunked"));
    client.send(format!("{:x}\r\n", 64 * MIB + 1));
    check_closes(client, 413);
    let mut client = server.connect();
    client.send(head("/stream", "Content-Length: 4\r\nExpect: 100-continue"));
    assert_eq!(client.head().status, 100);
    client.send("\0\0\0\x07");
    assert_eq!(client.response().text(), "4 7");
}

#[test]
fn a_refusal_in_the_middle_reaches_a_client_that_sends_on() {
    let server = Server::start(Limits::default());
    for (path, status) in [("/stream-fails", 415), ("/stream-panics", 500)] {
        for framing in ["Content-Length: 6291456", "Transfer-Encoding: chunked"] {
            let mut client = server.connect();
            client.send(head(path, framing));
            let mut stream = client.stream().try_clone().unwrap();
            let sender = std::thread::spawn(move || {
                let (body, _) = body(6 * MIB);
                let body = match framing.starts_with('T') {
                    true => chunked(&body),
                    false => body,
                };
                let _ = stream.write_all(&body);
            });
            assert_eq!(client.response().status, status, "{path} {framing}");
            wait_dropped(&server);
            sender.join().unwrap();
        }
    }
    server.check_serves();
}

#[test]
fn a_receiver_is_dropped_when_the_body_does_not_come() {
    let server = Server::start(Limits::default());
    let begin = |path: &str| {
        let mut client = server.connect();
        client.send(head(path, "Content-Length: 1000000"));
        client.send(vec![0; 100_000]);
        client
    };
    drop(begin("/stream"));
    wait_dropped(&server);
    let mut client = server.connect();
    client.send(head("/stream", "Transfer-Encoding: chunked"));
    client.send("5\r\nabcdeX");
    assert_eq!(client.response().status, 400);
    wait_dropped(&server);
    // The end of the server: also of a body for which there is no room.
    let limits = Limits {
        drain_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start(limits);
    let mut clients = Vec::new();
    for path in ["/stream", "/stream-gated"] {
        let mut client = server.connect();
        client.send(head(path, "Content-Length: 1000000"));
        client.send(vec![0; 100_000]);
        clients.push(client);
    }
    server.check_serves();
    server.shared.shutdown();
    wait_dropped(&server);
    wait_dropped(&server);
    for client in clients {
        let mut rest = Vec::new();
        let _ = client.stream().read_to_end(&mut rest);
    }
}

#[tokio::test]
async fn the_same_over_http2() {
    let server = Server::start(Limits::default());
    let client = Http2Client::connect(&server).await;
    let (long, expected) = body(5 * MIB);
    for path in ["/stream", "/stream-later"] {
        let (status, text) = client.ask("POST", path, &long).await;
        assert_eq!(
            (status, &*String::from_utf8(text).unwrap()),
            (StatusCode::OK, &*expected)
        );
    }
    for (path, status) in [
        ("/unwanted", 403),
        ("/stream-fails", 415),
        ("/stream-panics", 500),
    ] {
        let client = Http2Client::connect(&server).await;
        let found = client.ask("POST", path, &long).await;
        assert_eq!(found.0, status, "{path}");
    }
    let (status, _) = client.ask("POST", "/echo", &long).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_stream_without_room_holds_up_no_other() {
    let limits = Limits {
        progress_timeout: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(limits);
    let client = Http2Client::connect(&server).await;
    let (long, expected) = body(3 * MIB);
    let gated = client.ask("POST", "/stream-gated", &long);
    let others = async {
        for _ in 0..3 {
            let (status, _) = client.ask("POST", "/stream", &long).await;
            assert_eq!(status, StatusCode::OK);
        }
        // Longer than the timeout: a body that does not come ends by it.
        let slow = http::Request::post("http://localhost/stream")
            .body(())
            .unwrap();
        let mut requests = client.requests.clone().ready().await.unwrap();
        let (response, mut sending) = requests.send_request(slow, false).unwrap();
        sending.send_data(Bytes::from_static(b"x"), false).unwrap();
        assert_eq!(response.await.unwrap().status(), 408);
        server.gate.add_permits(1000);
    };
    let ((status, text), ()) = tokio::join!(gated, others);
    assert_eq!(
        (status, &*String::from_utf8(text).unwrap()),
        (StatusCode::OK, &*expected)
    );
}
