//! The client of the crate `h2` as an oracle: its requests arrive, and their responses come back.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::super::{Session, SessionEvent, SharedBuffers, StreamId};
use super::pipe::MemoryPipe;
use super::support::{Files, TestClient};
use crate::{Limits, OwnedRequest, Request, Response};

/// A request, and what its client does with it.
#[derive(Clone, Debug)]
struct PlannedRequest {
    method: &'static str,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    has_trailers: bool,
    /// The client gives it up at once.
    is_given_up: bool,
}

/// How both sides behave.
#[derive(Clone, Debug)]
struct Conditions {
    window: u32,
    max_frame: u32,
    table: u32,
    /// Bytes that arrive at a time.
    piece: usize,
    /// Bytes that are written at a time.
    room: usize,
    /// Responses are given in the opposite order.
    is_reversed: bool,
}

/// All of a request, as text, in which two of them can be compared.
fn shown(request: &Request<'_>) -> Vec<u8> {
    let mut fields: Vec<_> = request
        .fields
        .iter()
        .map(|(name, value)| format!("{name}: {}\n", value.escape_ascii()))
        .collect();
    fields.sort();
    let head = format!("{} {}\n{}", request.method, request.target, fields.concat());
    [head.as_bytes(), &request.body].concat()
}

impl PlannedRequest {
    /// Returns the request that the server should see.
    fn expected(&self) -> Vec<u8> {
        let mut request = OwnedRequest::new(self.method, &self.target).field("host", "a.example");
        let cookies: Vec<_> = self.values("cookie");
        if !cookies.is_empty() {
            request = request.field("cookie", cookies.join(&b"; "[..]));
        }
        for (name, value) in &self.fields {
            if name != "cookie" {
                request = request.field(name, value);
            }
        }
        shown(&request.body(self.body.clone()).as_request())
    }

    fn values(&self, name: &str) -> Vec<&[u8]> {
        let fields = self.fields.iter().filter(|(field, _)| field == name);
        fields.map(|(_, value)| &value[..]).collect()
    }

    fn send(&self, sender: &mut SendRequest<Bytes>) -> PendingStream {
        let uri = format!("https://a.example{}", self.target);
        let mut request = http::Request::builder().method(self.method).uri(uri);
        for (name, value) in &self.fields {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            let value = HeaderValue::from_bytes(value).expect("a value");
            request = request.header(name, value);
        }
        let request = request.body(()).expect("a request");
        let ends = self.body.is_empty() && !self.has_trailers;
        let (response, mut stream) = sender.send_request(request, ends).expect("a stream");
        if !ends {
            let body = Bytes::from(self.body.clone());
            stream.send_data(body, !self.has_trailers).expect("data");
        }
        if self.has_trailers {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-trailer", HeaderValue::from_static("y"));
            stream.send_trailers(trailers).expect("trailers");
        }
        if self.is_given_up {
            stream.send_reset(Reason::CANCEL);
        }
        PendingStream {
            expected: self.expected(),
            is_given_up: self.is_given_up,
            response: Some(response),
            body: None,
            received: Vec::new(),
            _stream: stream,
        }
    }
}

/// A stream of the client.
struct PendingStream {
    expected: Vec<u8>,
    is_given_up: bool,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    received: Vec<u8>,
    _stream: SendStream<Bytes>,
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl PendingStream {
    /// True when the response is complete, and right.
    fn poll(&mut self) -> bool {
        if self.is_given_up {
            return true;
        }
        if let Some(response) = &mut self.response {
            let Poll::Ready(response) = Pin::new(response).poll(&mut context()) else {
                return false;
            };
            let response = response.expect("a response");
            assert_eq!(response.status(), 200);
            let fields = response.headers();
            assert_eq!(fields["x-a"], "b");
            assert_eq!(fields["content-length"], self.expected.len().to_string());
            self.body = Some(response.into_body());
            self.response = None;
        }
        let Some(body) = &mut self.body else {
            return false;
        };
        while let Poll::Ready(data) = body.poll_data(&mut context()) {
            let Some(data) = data else {
                assert_eq!(
                    self.received.escape_ascii().to_string(),
                    self.expected.escape_ascii().to_string()
                );
                return true;
            };
            let data = data.expect("data");
            let _ = body.flow_control().release_capacity(data.len());
            self.received.extend_from_slice(&data);
        }
        false
    }
}

/// The server: every request is echoed.
struct EchoServer {
    client: TestClient,
    waiting: Vec<StreamId>,
}

impl EchoServer {
    fn receive(&mut self, bytes: &[u8]) {
        for event in self.client.send(bytes) {
            match event {
                SessionEvent::Request(id) => self.waiting.push(id),
                SessionEvent::Reset(id) => {
                    self.waiting.retain(|waiting| *waiting != id);
                    self.client.session.handler_is_gone(id);
                }
                SessionEvent::Refused(..) | SessionEvent::Repeated(..) | SessionEvent::Body(_) => {
                    panic!("{event:?}")
                }
            }
        }
    }

    fn respond(&mut self, is_reversed: bool) {
        let mut waiting = std::mem::take(&mut self.waiting);
        if is_reversed {
            waiting.reverse();
        }
        for id in waiting {
            let body = shown(&self.client.request(id.0).as_request());
            let response = Response::builder(200).field("X-A", "b").body(body);
            self.client.respond(id.0, &response);
        }
    }

    fn write(&mut self, room: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let TestClient {
            session,
            buffers,
            now,
            ..
        } = &mut self.client;
        session.write(&mut out, room, &mut Files, *now);
        give_back(session, buffers);
        out
    }
}

fn give_back(session: &mut Session, buffers: &mut SharedBuffers) {
    while let Some(stream) = session.next_ended() {
        buffers.give_back(stream);
    }
}

fn connect(
    pipe: &MemoryPipe,
    conditions: &Conditions,
) -> (SendRequest<Bytes>, Connection<MemoryPipe, Bytes>) {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(conditions.window)
        .max_frame_size(conditions.max_frame)
        .header_table_size(conditions.table)
        .enable_push(false);
    let handshake = pin!(builder.handshake::<_, Bytes>(pipe.clone()));
    let Poll::Ready(Ok(connected)) = handshake.poll(&mut context()) else {
        panic!("no handshake");
    };
    connected
}

fn run(requests: &[PlannedRequest], conditions: &Conditions) {
    let pipe = MemoryPipe::default();
    let (mut sender, mut connection) = connect(&pipe, conditions);
    let mut server = EchoServer {
        client: TestClient::unopened(Limits::default()),
        waiting: Vec::new(),
    };
    let mut left = requests.iter();
    let mut streams: Vec<PendingStream> = Vec::new();
    let mut quiet_rounds = 0;
    for _ in 0..1_000_000 {
        while let Poll::Ready(ready) = sender.poll_ready(&mut context()) {
            ready.expect("a connection");
            let Some(request) = left.next() else {
                break;
            };
            streams.push(request.send(&mut sender));
        }
        let polled = Pin::new(&mut connection).poll(&mut context());
        assert!(
            polled.is_pending(),
            "{polled:?} {:?}",
            server.client.session.error()
        );
        streams.retain_mut(|stream| !stream.poll());
        let sent = pipe.written();
        for piece in sent.chunks(conditions.piece) {
            server.receive(piece);
        }
        server.respond(conditions.is_reversed);
        let written = server.write(conditions.room);
        for piece in written.chunks(conditions.piece) {
            pipe.feed(piece);
        }
        assert_eq!(server.client.session.error(), None);
        // What a stream gives back of its window is written when the connection is polled again.
        let is_quiet = sent.is_empty() && written.is_empty();
        quiet_rounds = if is_quiet { quiet_rounds + 1 } else { 0 };
        if quiet_rounds == 3 {
            break;
        }
    }
    assert_eq!(left.len(), 0);
    assert!(streams.is_empty(), "{} without a response", streams.len());
    assert_eq!(server.client.session.stream_count(), 0);
    assert_eq!(server.client.session.body_bytes_held(), 0);
    assert!(server.client.session.is_idle());
}

fn requests() -> impl Strategy<Value = Vec<PlannedRequest>> {
    let field = (
        prop_oneof![
            "[a-z][a-z0-9-]{0,12}".prop_map(|name| format!("x-{name}")),
            Just("cookie".to_owned()),
            Just("accept".to_owned()),
            Just("user-agent".to_owned()),
        ],
        prop_oneof![
            "[!-~]{0,60}".prop_map(String::into_bytes),
            "[!-~][ -~]{0,200}[!-~]".prop_map(String::into_bytes),
            proptest::collection::vec(0x80..=0xff_u8, 1..30),
        ],
    );
    let priority = prop_oneof![
        Just(None),
        (0..9_u8, any::<bool>()).prop_map(|(urgency, is_incremental)| {
            let value = format!("u={urgency}{}", if is_incremental { ", i" } else { "" });
            Some(("priority".to_owned(), value.into_bytes()))
        }),
    ];
    let body = prop_oneof![
        2 => Just(Vec::new()),
        2 => proptest::collection::vec(any::<u8>(), 1..200),
        1 => (any::<u8>(), 0..400_000_usize).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let request = (
        prop::sample::select(vec!["GET", "POST", "PUT", "DELETE", "M-SEARCH", "OPTIONS"]),
        "/[a-z0-9%/._~-]{0,30}(\\?[a-z=&?/]{0,20})?",
        proptest::collection::vec(field, 0..8),
        priority,
        body,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    );
    let request = request.prop_map(
        |(method, target, mut fields, priority, body, has_trailers, is_given_up)| {
            fields.extend(priority);
            PlannedRequest {
                method,
                target,
                fields,
                body,
                has_trailers,
                is_given_up,
            }
        },
    );
    proptest::collection::vec(request, 1..40)
}

fn conditions() -> impl Strategy<Value = Conditions> {
    (
        // The client opens a window again by half of it, and steps below 1 KiB are charged.
        prop_oneof![Just(65_535), 2048..100_000_u32, Just(1 << 20)],
        prop_oneof![Just(16_384), 16_384..100_000_u32],
        prop_oneof![Just(4096), 0..10_000_u32],
        prop_oneof![Just(usize::MAX), 1..3000_usize],
        prop_oneof![Just(1 << 20), 100..50_000_usize],
        any::<bool>(),
    )
        .prop_map(
            |(window, max_frame, table, piece, room, is_reversed)| Conditions {
                window,
                max_frame,
                table,
                piece,
                room,
                is_reversed,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_another_client_asks_is_echoed(requests in requests(), conditions in conditions()) {
        run(&requests, &conditions);
    }
}
