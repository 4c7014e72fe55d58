//! The states of streams (RFC 9113 section 5.1).

use super::super::frame::{END_STREAM, FrameKind};
use super::super::{ErrorCode, SessionEvent, StreamId};
use super::support::{GET, TestClient, assert_reset, ok};

const RESET: [u8; 4] = (ErrorCode::Cancel as u32).to_be_bytes();

#[track_caller]
fn check_connection_error(client: &mut TestClient, error: ErrorCode) {
    assert_eq!(client.connection_error(), Some(error));
}

/// RFC 9113 section 5.1, idle.
#[test]
fn an_idle_stream_has_only_headers_and_priority() {
    for (kind, payload) in [
        (FrameKind::Data, &[0; 4][..]),
        (FrameKind::RstStream, &RESET),
        (FrameKind::WindowUpdate, &[0, 0, 16, 0]),
    ] {
        for stream in [1, 2, 7] {
            let mut client = TestClient::new();
            client.frame(kind, 0, stream, payload);
            check_connection_error(&mut client, ErrorCode::ProtocolError);
        }
    }
    let mut client = TestClient::new();
    client.frame(FrameKind::Priority, 0, 7, &[0, 0, 0, 3, 0]);
    assert_eq!(client.get(1), [SessionEvent::Request(StreamId(1))]);
}

/// RFC 9113 section 5.1, half-closed (remote).
#[test]
fn after_its_end_a_request_has_no_more_of_it() {
    for kind in [FrameKind::Data, FrameKind::Headers] {
        let mut client = TestClient::new();
        client.get(1);
        let payload = super::support::block(&GET);
        let events = client.frame(kind, END_STREAM | 0x4, 1, &payload);
        assert_eq!(events, [SessionEvent::Reset(StreamId(1))]);
        assert_reset(&client.frames(), 1, ErrorCode::StreamClosed);
    }
    let mut client = TestClient::new();
    client.get(1);
    client.window(1, 5000);
    client.frame(FrameKind::Priority, 0, 1, &[0, 0, 0, 3, 0]);
    assert_eq!(client.frames(), []);
}

/// RFC 9113 section 5.1, closed by END_STREAM of both sides.
#[test]
fn a_stream_that_has_ended_takes_no_data_and_no_headers() {
    let ended = || {
        let mut client = TestClient::new();
        client.get(1);
        client.respond(1, &ok(b"x"));
        client.frames();
        client
    };
    let mut client = ended();
    client.data(1, END_STREAM, b"x");
    check_connection_error(&mut client, ErrorCode::StreamClosed);
    let mut client = ended();
    client.get(1);
    check_connection_error(&mut client, ErrorCode::StreamClosed);
    // Whether an error is one does not depend on when the response was written.
    for (kind, payload, error) in [
        (FrameKind::Priority, &[0; 4][..], ErrorCode::FrameSizeError),
        (
            FrameKind::Priority,
            &[0, 0, 0, 1, 0],
            ErrorCode::ProtocolError,
        ),
        (FrameKind::WindowUpdate, &[0; 4], ErrorCode::ProtocolError),
    ] {
        let mut client = ended();
        client.frame(kind, 0, 1, payload);
        assert_reset(&client.frames(), 1, error);
    }
    // These may have been on their way.
    let mut client = ended();
    client.window(1, 5000);
    client.frame(FrameKind::RstStream, 0, 1, &RESET);
    client.frame(FrameKind::Priority, 0, 1, &[0, 0, 0, 3, 0]);
    assert_eq!(client.frames(), []);
    assert_eq!(client.get(3), [SessionEvent::Request(StreamId(3))]);
}

/// RFC 9113 section 5.1, closed by RST_STREAM of the client.
#[test]
fn after_its_reset_a_stream_takes_no_data_and_no_headers() {
    for kind in [FrameKind::Data, FrameKind::Headers] {
        let mut client = TestClient::new();
        client.post(1);
        assert_eq!(client.frame(FrameKind::RstStream, 0, 1, &RESET), []);
        client.frame(kind, 0x4, 1, &super::support::block(&GET));
        assert_reset(&client.frames(), 1, ErrorCode::StreamClosed);
    }
}

/// RFC 9113 section 5.1, closed by RST_STREAM of ours: what was on its way is ignored, and counts
/// for the window of the connection.
#[test]
fn after_our_reset_what_was_on_its_way_is_ignored() {
    let mut client = TestClient::new();
    client.post(1);
    client.session.reset(StreamId(1), ErrorCode::Cancel);
    assert_reset(&client.frames(), 1, ErrorCode::Cancel);
    for _ in 0..40 {
        client.data(1, 0, &[0; 16384]);
    }
    client.data(1, END_STREAM, b"");
    client.head(1, END_STREAM, &[("x", "y")]);
    let kinds: Vec<_> = client.frames().iter().map(|f| (f.kind, f.stream)).collect();
    assert_eq!(kinds, [(FrameKind::WindowUpdate, 0)]);
}

/// RFC 9113 section 5.1.1.
#[test]
fn numbers_of_streams_are_odd_and_rise() {
    let mut client = TestClient::new();
    client.get(2);
    check_connection_error(&mut client, ErrorCode::ProtocolError);
    let mut client = TestClient::new();
    client.get(5);
    client.get(3);
    check_connection_error(&mut client, ErrorCode::ProtocolError);
    let mut client = TestClient::new();
    assert_eq!(
        client.get((1 << 31) - 1),
        [SessionEvent::Request(StreamId((1 << 31) - 1))]
    );
}

/// RFC 9113 sections 5.1.2 and 8.7: a stream counts until its handler is gone.
#[test]
fn more_streams_than_agreed_are_refused() {
    let mut client = TestClient::new();
    for stream in 0..100 {
        assert_eq!(client.get(1 + 2 * stream).len(), 1);
    }
    assert_eq!(client.get(201), []);
    assert_reset(&client.frames(), 201, ErrorCode::RefusedStream);
    // The client gives one up, and its handler goes on.
    assert_eq!(
        client.frame(FrameKind::RstStream, 0, 1, &RESET),
        [SessionEvent::Reset(StreamId(1))]
    );
    assert_eq!(client.session.stream_count(), 100);
    assert_eq!(client.get(203), []);
    assert_reset(&client.frames(), 203, ErrorCode::RefusedStream);
    client.session.handler_is_gone(StreamId(1));
    assert_eq!(client.get(205), [SessionEvent::Request(StreamId(205))]);
    // A response to a stream that is gone does no harm.
    client.respond(1, &ok(b"x"));
    assert_eq!(client.frames(), []);
    client.respond(3, &ok(b"x"));
    assert_eq!(client.frames().len(), 2);
    assert_eq!(client.get(207), [SessionEvent::Request(StreamId(207))]);
}

/// RFC 9113 section 5.1: the handler of a stream that was reset is told, and its response dropped.
#[test]
fn a_stream_that_was_reset_waits_for_its_handler() {
    let mut client = TestClient::new();
    client.post(1);
    client.data(1, END_STREAM, &[b'x'; 1000]);
    assert_eq!(client.session.body_bytes_held(), 1000);
    assert_eq!(client.request(1).as_request().body.len(), 1000);
    assert_eq!(client.session.body_bytes_held_by(StreamId(1)), 1000);
    client.frame(FrameKind::RstStream, 0, 1, &RESET);
    assert_eq!(client.session.body_bytes_held(), 1000);
    client.respond(1, &ok(b"late"));
    assert_eq!(client.session.body_bytes_held(), 0);
    assert_eq!(client.frames(), []);
    let ended = client.ended.pop().expect("a stream that has ended");
    assert_eq!((ended.id(), ended.status()), (StreamId(1), None));
    assert_eq!(
        ended.request(&super::support::peer(), client.now).method,
        "POST"
    );
}

/// RFC 9113 sections 5.1.2 and 6.9.1: a client that has not seen the limit yet opens many streams,
/// and sends bodies on all of them.
#[test]
fn bodies_of_refused_streams_are_ignored() {
    let mut client = TestClient::new();
    for stream in 0..400 {
        client.post(1 + 2 * stream);
    }
    for stream in 0..400 {
        client.data(1 + 2 * stream, END_STREAM, &[b'x'; 1000]);
    }
    assert_eq!(client.session.error(), None);
    let resets = client.frames().into_iter();
    let resets = resets.filter(|frame| frame.kind == FrameKind::RstStream);
    assert_eq!(resets.count(), 300);
    assert_eq!(client.session.body_bytes_held(), 100_000);
}

/// The buffers of a stream are used again, and nothing of its request is left in them.
#[test]
fn nothing_of_a_request_is_left_for_the_next() {
    let mut client = TestClient::new();
    client.settings(&[(0x4, 1)]);
    let first = [("x", "y"), ("priority", "u=0, i"), ("content-length", "0")];
    client.head(1, END_STREAM, &[&GET[..], &first].concat());
    assert!(client.session.repeatable_text(StreamId(1)).is_some());
    client.respond(1, &ok(b"xyz"));
    client.frames();
    client.wait(std::time::Duration::from_secs(20));
    client.window(1, 100);
    client.frames();
    let stream = client.ended.pop().expect("a stream that has ended");
    client.buffers.give_back(stream);

    client.settings(&[(0x4, 65_535)]);
    assert_eq!(client.post(3), []);
    assert_eq!(client.data(3, END_STREAM, b"abc").len(), 1);
    assert_eq!(client.session.repeatable_text(StreamId(3)), None);
    let request = client.request(3);
    let request = request.as_request();
    assert_eq!((request.method, request.fields.len()), ("POST", 1));
    assert_eq!(request.body, &b"abc"[..]);
    let stream = client.session.streams.get(3).expect("a stream");
    assert_eq!(stream.priority, super::super::priority::Priority::default());
    assert_eq!(stream.status(), None);
    let never = base_clock::Boottime::NEVER;
    assert_eq!(client.session.deadline(&client.limits), never);
    client.respond(3, &ok(b"x"));
    assert_eq!(client.frames().len(), 3);
    // A head that is refused at once has nothing of the last one either.
    let stream = client.ended.pop().expect("a stream that has ended");
    client.buffers.give_back(stream);
    client.head(
        5,
        END_STREAM,
        &[&GET[..], &[("x", &"y".repeat(70_000))]].concat(),
    );
    client.respond(5, &ok(b"x"));
    client.frames();
    let stream = client.ended.pop().expect("a stream that has ended");
    let request = stream.request(&super::support::peer(), client.now);
    assert_eq!((request.method, request.target), ("GET", ""));
}
