//! Windows (RFC 9113 sections 5.2 and 6.9) and how long they may stay shut.

use std::time::Duration;

use super::super::frame::{END_STREAM, FrameKind, MAX_31_BITS, number_31};
use super::super::{ErrorCode, SessionEvent, StreamId};
use super::support::{TestClient, assert_reset, data_of, ok};
use crate::limits::STREAM_WINDOW;

static LONG: [u8; 300_000] = [b'x'; 300_000];

/// A client with this initial window and a long response on each of these streams.
fn waiting(window: u32, streams: &[u32]) -> TestClient {
    let mut client = TestClient::new();
    client.settings(&[(0x4, window)]);
    client.frames();
    for &stream in streams {
        client.get(stream);
        client.respond(stream, &ok(&LONG));
    }
    client
}

/// RFC 9113 sections 5.2.2 and 6.9.
#[test]
fn no_more_is_sent_than_the_windows_allow() {
    let mut client = waiting(10, &[1]);
    let frames = client.frames();
    assert_eq!(frames.len(), 2);
    assert_eq!(data_of(&frames, 1).len(), 10);
    assert_eq!(client.frames(), []);
    client.window(1, 1);
    assert_eq!(data_of(&client.frames(), 1).len(), 1);
    // The rest of the connection's window, which is 65,535 at first.
    client.window(1, 1 << 20);
    assert_eq!(data_of(&client.frames(), 1).len(), 65_535 - 11);
    client.window(0, 5);
    assert_eq!(data_of(&client.frames(), 1).len(), 5);
    client.window(0, 1 << 20);
    let frames = client.frames();
    assert_eq!(data_of(&frames, 1).len(), 300_000 - 65_540);
    assert_eq!(frames.last().expect("a frame").flags, END_STREAM);
    assert!(frames.iter().all(|frame| frame.payload.len() <= 16_384));
    assert!(client.ended[0].is_complete());
}

/// RFC 9113 section 6.9: a response without DATA needs no window.
#[test]
fn heads_need_no_window() {
    let mut client = waiting(0, &[1]);
    client.get(3);
    client.respond(3, &ok(b""));
    let streams: Vec<_> = client.frames().iter().map(|f| (f.kind, f.stream)).collect();
    assert_eq!(streams, [(FrameKind::Headers, 1), (FrameKind::Headers, 3)]);
}

/// RFC 9113 section 6.9.2.
#[test]
fn a_new_initial_window_changes_open_streams() {
    let mut client = waiting(100, &[1]);
    assert_eq!(data_of(&client.frames(), 1).len(), 100);
    client.settings(&[(0x4, 50)]);
    client.window(1, 50);
    assert_eq!(data_of(&client.frames(), 1).len(), 0);
    client.window(1, 7);
    assert_eq!(data_of(&client.frames(), 1).len(), 7);
    client.settings(&[(0x4, 60)]);
    assert_eq!(data_of(&client.frames(), 1).len(), 10);
    // A window may not overflow by it either.
    client.window(1, MAX_31_BITS - 100);
    client.settings(&[(0x4, 1000)]);
    assert_eq!(client.connection_error(), Some(ErrorCode::FlowControlError));
}

/// RFC 9113 sections 6.9 and 6.9.1.
#[test]
fn a_window_is_opened_by_something_and_not_too_far() {
    for (increment, error) in [
        (0, ErrorCode::ProtocolError),
        (MAX_31_BITS, ErrorCode::FlowControlError),
    ] {
        let mut client = waiting(100, &[1]);
        client.frames();
        client.window(1, 5);
        client.window(1, increment);
        assert_reset(&client.frames(), 1, error);
        client.window(0, increment);
        assert_eq!(client.connection_error(), Some(error));
    }
}

/// RFC 9113 section 6.9.1: what the client sends beyond its windows.
#[test]
fn a_client_keeps_to_its_windows() {
    let mut client = TestClient::new();
    client.limits.body = 10 << 20;
    client.post(1);
    let mut granted = u64::from(STREAM_WINDOW);
    let mut sent = 0;
    while sent + 16_384 <= granted {
        assert_eq!(client.data(1, 0, &LONG[..16_384]), []);
        sent += 16_384;
        // Windows are opened in time, in large steps.
        for frame in client.frames() {
            assert_eq!(frame.kind, FrameKind::WindowUpdate);
            let increment = number_31(&frame.payload).expect("an increment");
            assert!(increment >= STREAM_WINDOW / 2);
            if frame.stream == 1 {
                granted += u64::from(increment);
            }
        }
        if sent > 5 << 20 {
            break;
        }
    }
    assert!(sent > 5 << 20);
    // Without reading our updates: more than the window.
    let mut client = TestClient::new();
    client.head(
        1,
        0,
        &[&super::support::POST[..], &[("content-length", "262144")]].concat(),
    );
    for piece in LONG[..STREAM_WINDOW as usize].chunks(16_384) {
        client.data(1, 0, piece);
    }
    let updates = client.frames();
    assert!(
        updates.iter().all(|frame| frame.stream == 0),
        "nothing more is expected: {updates:?}"
    );
    let left = &LONG[STREAM_WINDOW as usize..];
    assert_eq!(client.data(1, 0, &left[..16_384]), []);
    assert_reset(&client.frames(), 1, ErrorCode::FlowControlError);
}

#[test]
fn a_connection_window_that_is_exceeded_ends_the_connection() {
    let mut client = TestClient::new();
    // Nothing is given back of the last half, because the session does not get to write; the
    // window itself is what counts.
    client.session.receive_window = super::super::flow::ReceiveWindow::new(1000);
    client.post(1);
    client.data(1, 0, &LONG[..1001]);
    assert_eq!(client.connection_error(), Some(ErrorCode::FlowControlError));
}

/// A stream whose window stays shut is given up after the timeout.
#[test]
fn a_window_that_stays_shut_ends_its_stream() {
    let mut client = waiting(10, &[1, 3]);
    client.frames();
    client.window(3, 1 << 20);
    client.window(0, 1 << 20);
    client.frames();
    let deadline = client.session.deadline(&client.limits);
    assert_eq!(deadline, client.now.plus(client.limits.progress_timeout));
    client.wait(client.limits.progress_timeout);
    assert_eq!(client.session.expire(&client.limits, client.now), None);
    assert_reset(&client.frames(), 1, ErrorCode::Cancel);
    assert_eq!(client.session.stream_count(), 0);
}

/// One byte now and then does not reset the clock.
#[test]
fn a_window_that_is_opened_drop_by_drop_ends_its_stream() {
    let mut client = waiting(0, &[1]);
    client.frames();
    for second in 0..200_u64 {
        client.wait(Duration::from_secs(1));
        assert_eq!(client.session.expire(&client.limits, client.now), None);
        if client.session.stream_count() == 0 {
            assert!((29..33).contains(&second), "{second}");
            return;
        }
        client.window(1, 1);
        client.frames();
    }
    panic!("the stream is still there");
}

/// Opens no window of the connection; then all streams wait.
#[test]
fn a_connection_window_that_stays_shut_ends_the_connection() {
    for increment in [0, 1] {
        let mut client = waiting(MAX_31_BITS >> 1, &[1, 3]);
        client.frames();
        for second in 0..200_u64 {
            client.wait(Duration::from_secs(1));
            assert_eq!(client.session.expire(&client.limits, client.now), None);
            if client.session.has_failed() {
                // 64 KiB went out before, so there are 64 seconds more on the average.
                assert!((29..99).contains(&second), "{second}");
                break;
            }
            if increment > 0 {
                client.window(0, increment);
            }
            client.frames();
        }
        assert_eq!(client.connection_error(), Some(ErrorCode::EnhanceYourCalm));
    }
}

/// A stream that waits for its turn is not given up.
#[test]
fn waiting_for_a_turn_has_no_limit() {
    let mut client = waiting(100_000, &[1, 3]);
    client.window(0, 1 << 30);
    client.room = 1000;
    client.frames();
    client.wait(Duration::from_secs(1000));
    assert_eq!(
        client.session.deadline(&client.limits),
        base_clock::Boottime::NEVER
    );
    assert_eq!(client.session.expire(&client.limits, client.now), None);
    assert_eq!(client.session.stream_count(), 2);
}

/// A body that stands still, or comes byte by byte.
#[test]
fn a_body_that_is_too_slow_is_refused() {
    let mut client = TestClient::new();
    client.post(1);
    let slow = SessionEvent::Refused(StreamId(1), crate::h1::Refusal::TooSlow);
    for second in 0..200_u64 {
        client.wait(Duration::from_secs(1));
        client.data(1, 0, b"x");
        if let Some(event) = client.session.expire(&client.limits, client.now) {
            assert_eq!(event, slow);
            assert!((29..32).contains(&second), "{second}");
            break;
        }
    }
    client.respond(1, &crate::Response::text(408, "slow"));
    let frames = client.frames();
    assert_reset(&frames[2..], 1, ErrorCode::NoError);
}

/// A window that is opened in time stops the clock, although the stream has to wait for its turn
/// then.
#[test]
fn an_open_window_stops_the_clock() {
    let open: [fn(&mut TestClient); 2] = [
        |client| {
            client.window(1, 1 << 20);
        },
        |client| {
            client.settings(&[(0x4, 1 << 20)]);
        },
    ];
    for open in open {
        let mut client = waiting(10, &[1]);
        client.window(0, 1 << 20);
        client.frames();
        assert_ne!(
            client.session.deadline(&client.limits),
            base_clock::Boottime::NEVER
        );
        client.wait(Duration::from_secs(29));
        open(&mut client);
        client.room = 1000;
        client.frames();
        assert_eq!(
            client.session.deadline(&client.limits),
            base_clock::Boottime::NEVER
        );
        client.wait(Duration::from_secs(29));
        assert_eq!(client.session.expire(&client.limits, client.now), None);
        assert_eq!(client.session.stream_count(), 1);
    }
    // The same for the window of the connection.
    let mut client = waiting(1 << 20, &[1]);
    client.frames();
    assert_ne!(
        client.session.deadline(&client.limits),
        base_clock::Boottime::NEVER
    );
    client.window(0, 1 << 20);
    client.room = 1000;
    client.frames();
    assert_eq!(
        client.session.deadline(&client.limits),
        base_clock::Boottime::NEVER
    );
}

/// A stream that was reset is not refused for being slow: only its handler is still there.
#[test]
fn a_stream_that_was_reset_has_no_clock() {
    let mut client = TestClient::new();
    client.limits.body = 10;
    client.post(1);
    let refused = client.data(1, 0, &[0; 11]);
    assert_eq!(refused.len(), 1);
    let reset = client.frame(FrameKind::RstStream, 0, 1, &[0, 0, 0, 8]);
    assert_eq!(reset, [SessionEvent::Reset(StreamId(1))]);
    client.wait(Duration::from_secs(1000));
    assert_eq!(client.session.expire(&client.limits, client.now), None);
    client.session.handler_is_gone(StreamId(1));
    assert!(client.session.is_idle());
}
