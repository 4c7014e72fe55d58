//! The end of a connection (RFC 9113 section 6.8).

use std::time::Duration;

use super::super::frame::{ACK, END_STREAM, FrameKind, MAX_31_BITS, PREFACE, number_31};
use super::super::{ErrorCode, SessionEvent, StreamId};
use super::support::{SeenFrame, TestClient, ok};
use crate::Limits;

#[track_caller]
fn assert_go_away(frame: &SeenFrame, last: u32, error: ErrorCode) {
    assert_eq!((frame.kind, frame.stream), (FrameKind::GoAway, 0));
    assert_eq!(number_31(&frame.payload), Some(last));
    assert_eq!(number_31(&frame.payload[4..]), Some(error as u32));
}

/// RFC 9113 section 6.8.
#[test]
fn the_end_comes_in_two_steps() {
    let mut client = TestClient::new();
    client.get(1);
    client.session.shut_down(client.now);
    client.session.shut_down(client.now);
    let frames = client.frames();
    assert_eq!(frames.len(), 2);
    assert_go_away(&frames[0], MAX_31_BITS, ErrorCode::NoError);
    assert_eq!((frames[1].kind, frames[1].flags), (FrameKind::Ping, 0));
    // This one was on its way.
    assert_eq!(client.get(3), [SessionEvent::Request(StreamId(3))]);
    client.frame(FrameKind::Ping, ACK, 0, b"\0other\0\0");
    assert_eq!(client.frames(), []);
    client.frame(FrameKind::Ping, ACK, 0, &frames[1].payload);
    let frames = client.frames();
    assert_go_away(&frames[0], 3, ErrorCode::NoError);
    // Those that come now are ignored, with all that belongs to them.
    assert_eq!(client.post(5), []);
    assert_eq!(client.data(5, END_STREAM, b"x"), []);
    assert_eq!(client.frames(), []);
    assert!(!client.session.is_over());
    for stream in [1, 3] {
        client.respond(stream, &ok(b"x"));
    }
    assert!(!client.session.is_over());
    assert_eq!(client.frames().len(), 4);
    assert!(client.session.is_over());
}

#[test]
fn the_second_step_does_not_wait_for_ever() {
    let mut client = TestClient::new();
    client.session.shut_down(client.now);
    client.frames();
    assert!(!client.session.is_over());
    let deadline = client.session.deadline(&client.limits);
    assert_eq!(deadline, client.now.plus(Duration::from_secs(1)));
    client.now = deadline;
    assert_eq!(client.session.expire(&client.limits, client.now), None);
    assert_go_away(&client.frames()[0], 0, ErrorCode::NoError);
    assert!(client.session.is_over());
}

/// RFC 9113 section 5.4.1.
#[test]
fn after_an_error_nothing_is_read() {
    let mut client = TestClient::new();
    client.get(1);
    client.post(3);
    client.session.close(ErrorCode::InternalError);
    assert_eq!(client.get(5), []);
    let frames = client.frames();
    assert_go_away(&frames[0], 3, ErrorCode::InternalError);
    assert_eq!(frames.len(), 1);
    assert!(client.session.is_over());
    // The stream without a handler has ended; the other ends with its handler, or with all.
    assert_eq!(client.ended.len(), 1);
    client.session.abandon();
    assert_eq!(client.frames(), []);
    assert_eq!(client.ended.len(), 2);
    assert_eq!(client.session.stream_count(), 0);
}

/// A frame, a head or a preface that never ends.
#[test]
fn what_stays_incomplete_ends_the_connection() {
    let begin: [fn(&mut TestClient); 4] = [
        |client| {
            client.send(&[0, 0, 5]);
        },
        |client| {
            client.send(&[0, 0, 5, 2, 0, 0, 0, 0, 1, 0]);
        },
        |client| {
            client.frame(FrameKind::Headers, 0, 1, &[0x82]);
        },
        |client| {
            client.post(1);
            client.frame(FrameKind::RstStream, 0, 1, &[0; 4]);
            client.send(&[0, 0, 5, 0, 0, 0, 0, 0, 1, 0]);
        },
    ];
    for begin in begin {
        let mut client = TestClient::new();
        begin(&mut client);
        assert!(!client.session.is_idle() || client.session.error().is_some());
        client.wait(client.limits.head_timeout);
        let _ = client.session.expire(&client.limits, client.now);
        assert!(client.session.has_failed());
    }
    let mut client = TestClient::unopened(Limits::default());
    client.send(&PREFACE[..10]);
    client.wait(Duration::from_secs(9));
    assert_eq!(client.session.expire(&client.limits, client.now), None);
    assert!(!client.session.has_failed());
    client.wait(Duration::from_secs(1));
    assert_eq!(client.session.expire(&client.limits, client.now), None);
    assert!(client.session.has_failed());
    // A connection that rests is the driver's.
    let client = TestClient::new();
    assert!(client.session.is_idle());
    let deadline = client.session.deadline(&client.limits);
    assert_eq!(deadline, base_clock::Boottime::NEVER);
}

/// RFC 9113 section 6.8: the client goes away, and its requests are still answered.
#[test]
fn a_client_that_goes_away_gets_its_responses() {
    let mut client = TestClient::new();
    client.get(1);
    client.frame(FrameKind::GoAway, 0, 0, &[0; 12]);
    client.respond(1, &ok(b"x"));
    assert_eq!(client.frames().len(), 2);
}

/// A handler that is gone without a response.
#[test]
fn a_lost_handler_resets_its_stream() {
    let mut client = TestClient::new();
    client.get(1);
    client.session.handler_is_gone(StreamId(1));
    super::support::assert_reset(&client.frames(), 1, ErrorCode::InternalError);
    client.session.handler_is_gone(StreamId(1));
    assert_eq!(client.frames(), []);
}
