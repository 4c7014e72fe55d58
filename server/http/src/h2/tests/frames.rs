//! Frames and what is wrong with them (RFC 9113 sections 3.4, 4, 5.5 and 6).

use super::super::ErrorCode;
use super::super::frame::{
    ACK, DEFAULT_FRAME, END_HEADERS, END_STREAM, FrameKind, PADDED, PREFACE, WITH_PRIORITY,
};
use super::support::{GET, TestClient, assert_reset, block, frame};
use crate::Limits;

/// Checks that `send` is a connection error.
#[track_caller]
fn check(error: ErrorCode, send: impl FnOnce(&mut TestClient)) {
    let mut client = TestClient::new();
    client.get(1);
    client.post(3);
    client.frames();
    send(&mut client);
    assert_eq!(client.connection_error(), Some(error));
}

/// RFC 9113 section 3.4.
#[test]
fn a_connection_begins_with_the_preface_and_settings() {
    let headers = frame(
        FrameKind::Headers,
        END_STREAM | END_HEADERS,
        1,
        &block(&GET),
    );
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        [PREFACE, &headers].concat(),
        [PREFACE, &frame(FrameKind::Settings, ACK, 0, &[])].concat(),
        [PREFACE, &frame(FrameKind::Ping, 0, 0, &[0; 8])].concat(),
    ] {
        let mut client = TestClient::unopened(Limits::default());
        assert_eq!(client.send(&bytes), []);
        assert_eq!(client.connection_error(), Some(ErrorCode::ProtocolError));
    }
}

/// RFC 9113 section 4.2.
#[test]
fn a_frame_that_is_too_long_is_an_error() {
    let long = vec![0; DEFAULT_FRAME as usize + 1];
    for kind in [FrameKind::Headers, FrameKind::Settings, FrameKind::Unknown] {
        check(ErrorCode::FrameSizeError, |client| {
            client.frame(kind, 0, 0, &long);
        });
    }
    check(ErrorCode::FrameSizeError, |client| {
        client.data(3, 0, &long);
    });
    let mut client = TestClient::new();
    client.post(1);
    client.data(1, END_STREAM, &long[1..]);
    assert_eq!(client.request(1).as_request().body, long[1..]);
}

/// RFC 9113 section 4.3.
#[test]
fn a_block_that_cannot_be_decoded_ends_the_connection() {
    check(ErrorCode::CompressionError, |client| {
        client.frame(FrameKind::Headers, END_HEADERS, 5, &[0x80]);
    });
    // Also on a stream that is closed already.
    check(ErrorCode::CompressionError, |client| {
        client.frame(FrameKind::RstStream, 0, 3, &[0; 4]);
        client.frame(FrameKind::Headers, END_HEADERS, 3, &[0x80]);
    });
}

/// RFC 9113 sections 4.3 and 6.10.
#[test]
fn nothing_comes_between_the_frames_of_a_block() {
    let block = block(&GET);
    let begin = |client: &mut TestClient| {
        client.frame(FrameKind::Headers, END_STREAM, 5, &block[..2]);
    };
    for (kind, stream, payload) in [
        (FrameKind::Data, 3, &[][..]),
        (FrameKind::Headers, 7, &block[..]),
        (FrameKind::Ping, 0, &[0; 8]),
        (FrameKind::Unknown, 0, &[]),
        (FrameKind::Continuation, 3, &block[2..]),
    ] {
        check(ErrorCode::ProtocolError, |client| {
            begin(client);
            client.frame(kind, 0, stream, payload);
        });
    }
    check(ErrorCode::ProtocolError, |client| {
        client.frame(FrameKind::Continuation, END_HEADERS, 3, &block);
    });
    let mut client = TestClient::new();
    client.frame(FrameKind::Headers, END_STREAM, 1, &block[..2]);
    client.frame(FrameKind::Continuation, 0, 1, &[]);
    client.frame(FrameKind::Continuation, 0, 1, &block[2..5]);
    let events = client.frame(FrameKind::Continuation, END_HEADERS, 1, &block[5..]);
    assert_eq!(events.len(), 1);
    assert_eq!(client.request(1).as_request().path, "/");
}

/// RFC 9113 sections 4.1 and 5.5.
#[test]
fn unknown_frames_and_flags_are_ignored() {
    let mut client = TestClient::new();
    assert_eq!(client.frame(FrameKind::Unknown, 0xff, 0, b"abc"), []);
    assert_eq!(client.frame(FrameKind::Unknown, 0xff, 99, &[]), []);
    assert_eq!(client.frame(FrameKind::Ping, 0xfe, 0, &[7; 8]).len(), 0);
    let frames = client.frames();
    assert_eq!(
        (frames[0].flags, &frames[0].payload[..]),
        (ACK, &[7; 8][..])
    );
}

/// RFC 9113 section 6: frames of the connection on a stream, and the other way round.
#[test]
fn frames_stand_on_their_own_kind_of_stream() {
    for (kind, payload) in [
        (FrameKind::Data, &[0; 4][..]),
        (FrameKind::Headers, &[0x82]),
        (FrameKind::Priority, &[0; 5]),
        (FrameKind::RstStream, &[0; 4]),
        (FrameKind::Continuation, &[]),
    ] {
        check(ErrorCode::ProtocolError, |client| {
            client.frame(kind, 0, 0, payload);
        });
    }
    for (kind, payload) in [
        (FrameKind::Settings, &[][..]),
        (FrameKind::Ping, &[0; 8]),
        (FrameKind::GoAway, &[0; 8]),
        (FrameKind::PriorityUpdate, &[0, 0, 0, 1]),
    ] {
        check(ErrorCode::ProtocolError, |client| {
            client.frame(kind, 0, 1, payload);
        });
    }
}

/// RFC 9113 section 6: lengths.
#[test]
fn frames_have_their_length() {
    for (kind, flags, stream, payload) in [
        (FrameKind::RstStream, 0, 1, &[0; 3][..]),
        (FrameKind::Settings, 0, 0, &[0; 5]),
        (FrameKind::Settings, ACK, 0, &[0; 6]),
        (FrameKind::Ping, 0, 0, &[0; 7]),
        (FrameKind::GoAway, 0, 0, &[0; 7]),
        (FrameKind::WindowUpdate, 0, 0, &[0; 3]),
        (FrameKind::WindowUpdate, 0, 1, &[0; 5]),
        (FrameKind::PriorityUpdate, 0, 0, &[0; 3]),
        (FrameKind::Data, PADDED, 3, &[]),
        (FrameKind::Headers, PADDED | END_HEADERS, 5, &[]),
        (FrameKind::Headers, WITH_PRIORITY | END_HEADERS, 5, &[0; 4]),
        // On a stream that is not open.
        (FrameKind::Priority, 0, 5, &[0; 4]),
    ] {
        check(ErrorCode::FrameSizeError, |client| {
            client.frame(kind, flags, stream, payload);
        });
    }
    let mut client = TestClient::new();
    client.get(1);
    client.frame(FrameKind::Priority, 0, 1, &[0; 4]);
    assert_reset(&client.frames(), 1, ErrorCode::FrameSizeError);
}

/// RFC 9113 sections 6.1 and 6.2.
#[test]
fn padding_is_dropped_and_never_longer_than_its_frame() {
    for (kind, stream) in [(FrameKind::Data, 3), (FrameKind::Headers, 5)] {
        check(ErrorCode::ProtocolError, |client| {
            client.frame(kind, PADDED | END_HEADERS, stream, &[4, 0x82, 0, 0]);
        });
    }
    let mut client = TestClient::new();
    let padded = [&[3, 0, 0, 0, 0, 9][..], &block(&GET), &[0; 3]].concat();
    client.frame(
        FrameKind::Headers,
        PADDED | WITH_PRIORITY | END_HEADERS,
        1,
        &padded,
    );
    client.data(1, PADDED, &[2, b'a', b'b', 0, 0]);
    client.data(1, PADDED, &[4, 0, 0, 0, 0]);
    client.data(1, PADDED | END_STREAM, &[0, b'c']);
    assert_eq!(client.request(1).as_request().body, &b"abc"[..]);
}

/// RFC 9113 section 6.3, RFC 7540 section 5.3.1.
#[test]
fn a_stream_does_not_depend_on_itself() {
    let mut client = TestClient::new();
    client.get(1);
    client.frame(FrameKind::Priority, 0, 1, &[0, 0, 0, 1, 0]);
    assert_reset(&client.frames(), 1, ErrorCode::ProtocolError);
    let payload = [&[0x80, 0, 0, 3, 0][..], &block(&GET)].concat();
    let flags = WITH_PRIORITY | END_HEADERS | END_STREAM;
    assert_eq!(client.frame(FrameKind::Headers, flags, 3, &payload), []);
    assert_reset(&client.frames(), 3, ErrorCode::ProtocolError);
    check(ErrorCode::ProtocolError, |client| {
        client.frame(FrameKind::Priority, 0, 5, &[0, 0, 0, 5, 0]);
    });
}

/// RFC 9113 section 6.5.
#[test]
fn settings_are_acknowledged() {
    let mut client = TestClient::new();
    client.settings(&[(0x3, 100), (0x4, 5), (0xabcd, 1)]);
    let frames = client.frames();
    assert_eq!(frames.len(), 1);
    assert_eq!(
        (frames[0].kind, frames[0].flags),
        (FrameKind::Settings, ACK)
    );
    assert!(frames[0].payload.is_empty());
    check(ErrorCode::ProtocolError, |client| {
        client.settings(&[(0x2, 2)]);
    });
    check(ErrorCode::FlowControlError, |client| {
        client.settings(&[(0x4, 1 << 31)]);
    });
}

/// RFC 9113 section 6.6 and 8.4: a client pushes nothing.
#[test]
fn a_push_of_the_client_is_an_error() {
    check(ErrorCode::ProtocolError, |client| {
        client.frame(FrameKind::PushPromise, END_HEADERS, 3, &[0, 0, 0, 2]);
    });
}

/// RFC 9113 section 6.7.
#[test]
fn a_ping_is_answered_and_its_answer_is_not() {
    let mut client = TestClient::new();
    client.frame(FrameKind::Ping, 0, 0, b"12345678");
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (FrameKind::Ping, ACK));
    assert_eq!(frames[0].payload, b"12345678");
    client.frame(FrameKind::Ping, ACK, 0, b"12345678");
    assert_eq!(client.frames(), []);
}

/// RFC 9218 section 7.1.
#[test]
fn priority_updates_are_checked() {
    for payload in [&[0, 0, 0, 0][..], &[0, 0, 0, 2], &[0, 0, 0, 0, b'u']] {
        check(ErrorCode::ProtocolError, |client| {
            client.frame(FrameKind::PriorityUpdate, 0, 0, payload);
        });
    }
    // More than there may be streams.
    check(ErrorCode::ProtocolError, |client| {
        for stream in 0..100_u32 {
            let payload = (5 + 2 * stream).to_be_bytes();
            client.frame(FrameKind::PriorityUpdate, 0, 0, &payload);
        }
    });
}

/// RFC 9218 section 7.1: a priority that came too late for its stream is forgotten.
#[test]
fn early_priorities_do_not_stay_for_ever() {
    let mut client = TestClient::new();
    for round in 0..10_u32 {
        let first = 1 + 200 * round;
        for stream in 0..90 {
            let payload = (first + 2 * stream).to_be_bytes();
            client.frame(FrameKind::PriorityUpdate, 0, 0, &payload);
        }
        client.get(first + 180);
        client.respond(first + 180, &super::support::ok(b"x"));
        client.frames();
    }
    assert_eq!(client.session.error(), None);
}
