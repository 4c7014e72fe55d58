//! Bytes after the preface of an HTTP/2 connection: no panic, no loop, bounded memory, and output
//! that is well-formed and within the windows of the client.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_torture::Choices;

use crate::h2::frame::{
    ACK, END_HEADERS, END_STREAM, FRAME_HEAD, FrameHead, FrameKind, PREFACE, number_31, push_frame,
};
use crate::h2::tests::support::{GET, POST, TestClient, block, frames_of, peer};
use crate::h2::{ErrorCode, SessionEvent, StreamId};
use crate::limits::HTTP2_STREAMS;
use crate::{Limits, Response};

const KINDS: [FrameKind; 12] = [
    FrameKind::Headers,
    FrameKind::Data,
    FrameKind::Headers,
    FrameKind::Data,
    FrameKind::WindowUpdate,
    FrameKind::RstStream,
    FrameKind::Settings,
    FrameKind::Continuation,
    FrameKind::Ping,
    FrameKind::Priority,
    FrameKind::PriorityUpdate,
    FrameKind::Unknown,
];

/// A frame that may be anything, but is well-formed more often than not.
fn write_frame(choices: &mut Choices<'_>, next_stream: &mut u32) -> Vec<u8> {
    if choices.chance(5) {
        return choices.bytes(40);
    }
    let kind = choices.pick(&KINDS).copied().unwrap_or(FrameKind::Headers);
    let mut stream = u32::try_from(choices.below(12)).unwrap_or_default();
    let mut flags = *choices
        .pick(&[END_HEADERS | END_STREAM, 0, END_STREAM, END_HEADERS])
        .unwrap_or(&0);
    if choices.chance(10) {
        flags = choices.byte();
    }
    let payload = match kind {
        FrameKind::Headers => {
            if choices.chance(80) {
                stream = *next_stream;
                *next_stream += 2;
            }
            let mut list = block(if choices.chance(50) { &POST } else { &GET });
            if choices.chance(20) {
                list.extend(choices.bytes(30));
            }
            list
        }
        FrameKind::WindowUpdate | FrameKind::RstStream => {
            let number = choices.below(1 << 17);
            u32::try_from(number)
                .unwrap_or_default()
                .to_be_bytes()
                .to_vec()
        }
        FrameKind::Settings => {
            let value = u32::try_from(choices.below(1 << 17)).unwrap_or_default();
            let name = choices.byte() % 10;
            stream = 0;
            flags &= !1;
            [&[0, name][..], &value.to_be_bytes()].concat()
        }
        FrameKind::Data => vec![choices.byte(); choices.below(2000)],
        FrameKind::Ping => choices.bytes(8),
        _ => choices.bytes(20),
    };
    let mut bytes = Vec::new();
    push_frame(&mut bytes, kind, flags, stream, &payload);
    bytes
}

/// Account of a client's windows: a second one, to compare.
#[derive(Default)]
struct WindowAccount {
    connection: i64,
    initial: i64,
    /// Bytes that were granted to a stream beside the initial window, less those that it has
    /// received.
    streams: BTreeMap<u32, i64>,
    /// The part of a frame that was sent.
    partial: Vec<u8>,
}

impl WindowAccount {
    /// Takes in the bytes that the client has sent.
    fn client_sent(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let sent = std::mem::take(&mut self.partial);
        let mut rest = &sent[..];
        while let Some((head, behind)) = rest.split_first_chunk::<FRAME_HEAD>()
            && let head = FrameHead::parse(head)
            && let Some((payload, behind)) = behind.split_at_checked(head.len as usize)
        {
            self.client_sent_frame(head, payload);
            rest = behind;
        }
        self.partial = rest.to_vec();
    }

    fn client_sent_frame(&mut self, head: FrameHead, payload: &[u8]) {
        let number = |bytes: &[u8]| number_31(bytes).map_or(0, i64::from);
        match head.kind {
            FrameKind::WindowUpdate if head.stream == 0 => self.connection += number(payload),
            FrameKind::WindowUpdate => {
                *self.streams.entry(head.stream).or_default() += number(payload);
            }
            FrameKind::Settings if !head.has(ACK) => {
                for setting in payload.chunks_exact(6) {
                    if setting[..2] == [0, 4] {
                        self.initial = self.initial.max(number(&setting[2..]));
                    }
                }
            }
            _ => {}
        }
    }

    fn server_sent(&mut self, stream: u32, data: usize) {
        let data = i64::try_from(data).unwrap_or(i64::MAX);
        self.connection -= data;
        let window = self.streams.entry(stream).or_default();
        *window -= data;
        assert!(self.connection >= 0, "more than the connection's window");
        assert!(
            *window + self.initial >= 0,
            "more than the window of {stream}"
        );
    }
}

/// One connection, whose driver answers now or later.
struct FuzzedConnection {
    client: TestClient,
    waiting: Vec<StreamId>,
    account: WindowAccount,
    ended_by: Option<ErrorCode>,
}

impl FuzzedConnection {
    fn receive(&mut self, bytes: &[u8]) {
        for event in self.client.send(bytes) {
            match event {
                SessionEvent::Request(id) => {
                    let now = self.client.now;
                    let request = self.client.session.request(id, &peer(), now);
                    let request = request.expect("a request");
                    assert!(request.target.starts_with('/') && request.host().is_some());
                    assert!(
                        request
                            .fields
                            .iter()
                            .all(|(name, _)| !name.starts_with(':'))
                    );
                    self.waiting.push(id);
                }
                SessionEvent::Refused(id, _) => self.waiting.push(id),
                SessionEvent::Reset(id) => {
                    assert!(self.waiting.contains(&id));
                    self.waiting.retain(|waiting| *waiting != id);
                    self.client.session.handler_is_gone(id);
                }
                SessionEvent::Repeated(..) | SessionEvent::Body(_) => {
                    panic!("nothing is known or announced")
                }
            }
        }
        assert!(self.client.session.stream_count() <= HTTP2_STREAMS);
        let memory = self.client.session.memory();
        assert!(memory < 512 << 10, "{memory}");
    }

    fn answer(&mut self, choices: &mut Choices<'_>) {
        while !self.waiting.is_empty() && choices.chance(80) {
            let id = self.waiting.swap_remove(choices.below(self.waiting.len()));
            let response = Response::builder(200).body(vec![b'x'; choices.below(100_000)]);
            self.client.respond(id.number(), &response);
        }
    }

    fn write(&mut self) {
        let is_over = self.ended_by.is_some();
        self.ended_by = self.client.session.error();
        let out = self.client.output();
        for frame in frames_of(&out) {
            assert!(!is_over, "{frame:?} after the end");
            match frame.kind {
                FrameKind::Data => self.account.server_sent(frame.stream, frame.payload.len()),
                FrameKind::Headers => assert!(!self.client.fields(&frame.payload).is_empty()),
                _ => {}
            }
        }
        while let Some(stream) = self.client.ended.pop() {
            self.client.buffers.give_back(stream);
        }
    }
}

#[test]
fn http2_connections() {
    let limits = Limits {
        head: 2000,
        body: 3000,
        ..Limits::default()
    };
    bolero::check!(name = "http2_connections")
        .with_max_len(2048)
        .for_each(|engine: &[u8]| {
            let mut choices = Choices::of(engine);
            let mut connection = FuzzedConnection {
                client: TestClient::unopened(limits.clone()),
                waiting: Vec::new(),
                account: WindowAccount {
                    connection: 65_535,
                    initial: 65_535,
                    ..WindowAccount::default()
                },
                ended_by: None,
            };
            let mut next_stream = 1;
            connection.receive(PREFACE);
            connection.receive(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
            for _ in 0..40 {
                let bytes = write_frame(&mut choices, &mut next_stream);
                connection.account.client_sent(&bytes);
                let cut = choices.below(bytes.len() + 1);
                connection.receive(&bytes[..cut]);
                connection.receive(&bytes[cut..]);
                connection.answer(&mut choices);
                connection.client.room = 10 + choices.below(60_000);
                connection.write();
                if choices.chance(5) {
                    connection.client.wait(Duration::from_secs(20));
                    let TestClient {
                        session,
                        limits,
                        now,
                        ..
                    } = &mut connection.client;
                    while let Some(event) = session.expire(limits, *now) {
                        match event {
                            SessionEvent::Refused(id, _) => connection.waiting.push(id),
                            _ => panic!("{event:?}"),
                        }
                    }
                }
            }
            connection.receive(engine);
            connection.client.session.abandon();
            connection.write();
            assert_eq!(connection.client.session.stream_count(), 0);
        });
}
