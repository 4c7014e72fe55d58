//! A client made of bytes, with the session at the other end.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use base_clock::Boottime;

use super::super::frame::{
    ACK, DEFAULT_FRAME, END_HEADERS, END_STREAM, FRAME_HEAD, FrameHead, FrameKind, PREFACE,
    number_31, push_frame,
};
use super::super::hpack::encoder::push_field;
use super::super::hpack::{FieldSink, HpackDecoder};
use super::super::stream::Http2Stream;
use super::super::{
    ErrorCode, FileReader, ReceiveContext, Session, SessionEvent, SharedBuffers, StreamId,
};
use crate::peer::Peer;
use crate::{Limits, OwnedRequest, Response};

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenFrame {
    pub(crate) kind: FrameKind,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A session with a client of the test.
pub(crate) struct TestClient {
    pub(crate) session: Session,
    pub(crate) buffers: SharedBuffers,
    pub(crate) limits: Limits,
    pub(crate) now: Boottime,
    pub(crate) room: usize,
    #[allow(clippy::vec_box, reason = "the session gives boxes")]
    pub(crate) ended: Vec<Box<Http2Stream>>,
    decoder: HpackDecoder,
}

/// Reads files at once.
pub(crate) struct Files;

impl FileReader for Files {
    fn read(
        &mut self,
        file: &File,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let start = out.len();
        out.resize(start + len, 0);
        file.read_at(&mut out[start..], offset)
    }
}

pub(crate) fn peer() -> Peer {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()
}

impl TestClient {
    /// A connection whose settings are exchanged.
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let mut client = Self::unopened(limits);
        assert_eq!(client.send(PREFACE), []);
        assert_eq!(client.frame(FrameKind::Settings, 0, 0, &[]), []);
        assert_eq!(client.frame(FrameKind::Settings, ACK, 0, &[]), []);
        let kinds: Vec<_> = client.frames().iter().map(|frame| frame.kind).collect();
        let expected = [
            FrameKind::Settings,
            FrameKind::WindowUpdate,
            FrameKind::Settings,
        ];
        assert_eq!(kinds, expected);
        client
    }

    /// A connection on which nothing was sent.
    pub(crate) fn unopened(limits: Limits) -> Self {
        let now = Boottime::from_nanos(1_000_000_000);
        Self {
            session: Session::new(&limits, true, now),
            buffers: SharedBuffers::default(),
            limits,
            now,
            room: usize::MAX >> 1,
            ended: Vec::new(),
            decoder: HpackDecoder::new(),
        }
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now = self.now.plus(time);
    }

    /// Gives bytes to the session; the events.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Vec<SessionEvent> {
        let mut context = ReceiveContext {
            now: self.now,
            limits: &self.limits,
            buffers: &mut self.buffers,
        };
        let mut events = Vec::new();
        while !bytes.is_empty() {
            self.session.begin_turn();
            while let Some(event) = self.session.receive(&mut bytes, &mut context) {
                events.push(event);
            }
        }
        events
    }

    pub(crate) fn frame(
        &mut self,
        kind: FrameKind,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> Vec<SessionEvent> {
        self.send(&frame(kind, flags, stream, payload))
    }

    /// A request without a body.
    pub(crate) fn get(&mut self, stream: u32) -> Vec<SessionEvent> {
        self.head(stream, END_STREAM, &GET)
    }

    /// A request whose body follows.
    pub(crate) fn post(&mut self, stream: u32) -> Vec<SessionEvent> {
        self.head(stream, 0, &POST)
    }

    pub(crate) fn head(
        &mut self,
        stream: u32,
        flags: u8,
        fields: &[(&str, &str)],
    ) -> Vec<SessionEvent> {
        let block = block(fields);
        let mut parts = block.chunks(DEFAULT_FRAME as usize).peekable();
        let (mut kind, mut flags) = (FrameKind::Headers, flags);
        let mut bytes = Vec::new();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                flags |= END_HEADERS;
            }
            push_frame(&mut bytes, kind, flags, stream, part);
            (kind, flags) = (FrameKind::Continuation, 0);
        }
        self.send(&bytes)
    }

    pub(crate) fn data(&mut self, stream: u32, flags: u8, payload: &[u8]) -> Vec<SessionEvent> {
        self.frame(FrameKind::Data, flags, stream, payload)
    }

    pub(crate) fn window(&mut self, stream: u32, increment: u32) -> Vec<SessionEvent> {
        let payload = increment.to_be_bytes();
        self.frame(FrameKind::WindowUpdate, 0, stream, &payload)
    }

    pub(crate) fn settings(&mut self, settings: &[(u16, u32)]) -> Vec<SessionEvent> {
        let settings = settings
            .iter()
            .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
        let payload: Vec<u8> = settings.collect();
        self.frame(FrameKind::Settings, 0, 0, &payload)
    }

    /// A request that an event has announced.
    pub(crate) fn request(&mut self, stream: u32) -> OwnedRequest {
        let request = self.session.request(StreamId(stream), &peer(), self.now);
        request.expect("a request").to_owned()
    }

    pub(crate) fn respond(&mut self, stream: u32, response: &Response) {
        self.session.respond_with(StreamId(stream), response, &[]);
    }

    /// The bytes that the session writes.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.session
            .write(&mut out, self.room, &mut Files, self.now);
        while let Some(stream) = self.session.next_ended() {
            self.ended.push(stream);
        }
        out
    }

    /// The frames that the session writes.
    pub(crate) fn frames(&mut self) -> Vec<SeenFrame> {
        let out = self.output();
        frames_of(&out)
    }

    /// The error that ended the connection, if GOAWAY says so.
    pub(crate) fn connection_error(&mut self) -> Option<ErrorCode> {
        let error = self.session.error();
        let last = self.frames().pop();
        if let Some(error) = error {
            let last = last.expect("a frame");
            assert_eq!(last.kind, FrameKind::GoAway);
            assert_eq!(last.payload[4..], (error as u32).to_be_bytes());
            assert!(self.session.is_over());
        }
        error
    }

    /// The fields of a header block of the server.
    pub(crate) fn fields(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = AllFields(Vec::new());
        let decoded = self
            .decoder
            .decode(block, 1 << 20, &mut Vec::new(), &mut fields);
        decoded.expect("a header block");
        fields.0
    }
}

struct AllFields(Vec<(String, String)>);

impl FieldSink for AllFields {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

pub(crate) const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/"),
    (":authority", "a.example"),
];

pub(crate) const POST: [(&str, &str); 4] = [
    (":method", "POST"),
    (":scheme", "https"),
    (":path", "/"),
    (":authority", "a.example"),
];

/// A header block that changes no table.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        push_field(&mut block, name.as_bytes(), value.as_bytes());
    }
    block
}

pub(crate) fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame(&mut out, kind, flags, stream, payload);
    out
}

pub(crate) fn frames_of(mut out: &[u8]) -> Vec<SeenFrame> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = out.split_first_chunk::<FRAME_HEAD>() {
        let head = FrameHead::parse(head);
        let (payload, rest) = rest.split_at(head.len as usize);
        frames.push(SeenFrame {
            kind: head.kind,
            flags: head.flags,
            stream: head.stream,
            payload: payload.to_vec(),
        });
        out = rest;
    }
    assert!(out.is_empty(), "a frame that is cut off");
    frames
}

/// The frames are RST_STREAM of one stream.
#[track_caller]
pub(crate) fn assert_reset(frames: &[SeenFrame], stream: u32, error: ErrorCode) {
    let [frame] = frames else {
        panic!("not one frame: {frames:?}");
    };
    assert_eq!((frame.kind, frame.stream), (FrameKind::RstStream, stream));
    assert_eq!(number_31(&frame.payload), Some(error as u32));
}

pub(crate) fn ok(body: &'static [u8]) -> Response {
    Response::builder(200)
        .field("Content-Type", "text/plain")
        .body(body)
}

/// Bytes of DATA of a stream among the frames.
pub(crate) fn data_of(frames: &[SeenFrame], stream: u32) -> Vec<u8> {
    let data = frames
        .iter()
        .filter(|frame| frame.kind == FrameKind::Data && frame.stream == stream);
    data.flat_map(|frame| frame.payload.clone()).collect()
}
