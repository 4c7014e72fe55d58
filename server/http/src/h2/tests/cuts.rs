//! How the bytes are cut never changes what comes of them.

use proptest::prelude::*;

use super::super::frame::{
    END_HEADERS, END_STREAM, FrameKind, PADDED, PREFACE, WITH_PRIORITY, push_frame,
};
use super::super::{ErrorCode, SessionEvent};
use super::support::{GET, POST, TestClient, block, ok, peer};
use crate::Limits;

/// All that can be seen of a session.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<String>,
    output: Vec<u8>,
    error: Option<ErrorCode>,
    streams: usize,
}

fn run(pieces: &[&[u8]], limits: &Limits) -> Outcome {
    let mut client = TestClient::unopened(limits.clone());
    let mut events = Vec::new();
    for piece in pieces {
        for event in client.send(piece) {
            let shown = match event {
                SessionEvent::Request(id) => {
                    let request = client.session.request(id, &peer(), client.now);
                    format!("{event:?} {request:?}")
                }
                _ => format!("{event:?}"),
            };
            events.push(shown);
        }
    }
    Outcome {
        events,
        error: client.session.error(),
        streams: client.session.stream_count(),
        output: client.output(),
    }
}

/// Frames of all kinds, good and bad, on a few streams.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(block(&GET)),
        Just(block(&POST)),
        Just(block(&GET)[..3].to_vec()),
        Just(vec![0x40, 1, b'x', 1, b'y']),
        Just(vec![0xbe]),
        Just(vec![0, 0, 0, 8]),
        Just(vec![0, 0, 0, 1, 0]),
        Just(vec![3, b'a', b'b', 0, 0, 0]),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let kind = prop_oneof![
        4 => Just(FrameKind::Headers),
        4 => Just(FrameKind::Data),
        1 => Just(FrameKind::Continuation),
        1 => Just(FrameKind::RstStream),
        1 => Just(FrameKind::WindowUpdate),
        1 => Just(FrameKind::Settings),
        1 => Just(FrameKind::Ping),
        1 => Just(FrameKind::Priority),
        1 => Just(FrameKind::PriorityUpdate),
        1 => Just(FrameKind::Unknown),
    ];
    let flags = prop_oneof![
        Just(0),
        Just(END_HEADERS),
        Just(END_STREAM),
        Just(END_HEADERS | END_STREAM),
        Just(PADDED | END_HEADERS),
        Just(WITH_PRIORITY | END_HEADERS),
    ];
    let frame = (kind, flags, prop_oneof![Just(0_u32), 1..12_u32], payload);
    proptest::collection::vec(frame, 0..20).prop_map(|frames| {
        let mut bytes = PREFACE.to_vec();
        push_frame(&mut bytes, FrameKind::Settings, 0, 0, &[]);
        for (kind, flags, stream, payload) in frames {
            push_frame(&mut bytes, kind, flags, stream, &payload);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_cut_of_frames_never_matters(
        bytes in frames(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let limits = Limits { body: 60, head: 400, ..Limits::default() };
        let whole = run(&[&bytes], &limits);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(run(&pieces, &limits), whole);
    }
}

#[test]
fn requests_arrive_byte_by_byte() {
    let mut bytes = PREFACE.to_vec();
    push_frame(&mut bytes, FrameKind::Settings, 0, 0, &[0, 4, 0, 0, 0, 9]);
    let list = block(&POST);
    push_frame(&mut bytes, FrameKind::Headers, 0, 1, &list[..5]);
    push_frame(
        &mut bytes,
        FrameKind::Continuation,
        END_HEADERS,
        1,
        &list[5..],
    );
    push_frame(
        &mut bytes,
        FrameKind::Data,
        PADDED,
        1,
        &[2, b'a', b'b', 0, 0],
    );
    push_frame(&mut bytes, FrameKind::Data, END_STREAM, 1, b"c");
    push_frame(
        &mut bytes,
        FrameKind::Headers,
        END_HEADERS | END_STREAM,
        3,
        &block(&GET),
    );
    let single: Vec<_> = bytes.chunks(1).collect();
    let limits = Limits::default();
    let outcome = run(&single, &limits);
    assert_eq!(outcome.events.len(), 2);
    assert_eq!(outcome, run(&[&bytes], &limits));
    let mut client = TestClient::unopened(limits);
    for piece in single {
        for event in client.send(piece) {
            if let SessionEvent::Request(id) = event {
                client.respond(id.0, &ok(b"x"));
            }
        }
        client.frames();
    }
    assert!(client.session.is_idle());
}
