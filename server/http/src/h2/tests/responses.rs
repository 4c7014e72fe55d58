//! Responses and their order (RFC 9113 sections 8.1 to 8.3, RFC 9218).

use std::io::Write;
use std::sync::Arc;

use super::super::frame::{END_HEADERS, END_STREAM, FrameKind};
use super::super::{ErrorCode, StreamId, encode_fields};
use super::support::{GET, TestClient, assert_reset, data_of, ok};
use crate::Response;

static LONG: [u8; 100_000] = [b'x'; 100_000];

fn text(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let fields = fields.iter();
    fields
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

/// RFC 9113 sections 8.2, 8.2.2 and 8.3.2.
#[test]
fn a_response_has_lower_case_names_and_no_fields_of_the_connection() {
    let mut client = TestClient::new();
    client.get(1);
    let response = Response::builder(404)
        .field("Content-Type", "text/html; charset=utf-8")
        .field("Connection", "close")
        .field("Keep-Alive", "timeout=5")
        .field("Transfer-Encoding", "chunked")
        .field("Upgrade", "h2c")
        .field("Date", "yesterday")
        .field("X-A", "b: c")
        .extra("Set-Cookie: a=b\r\n".into())
        .body("none");
    let date = encode_fields("date: Sun, 06 Nov 1994 08:49:37 GMT");
    client.session.respond_with(StreamId(1), &response, &date);
    let frames = client.frames();
    let fields = client.fields(&frames[0].payload);
    let expected = [
        (":status", "404"),
        ("content-type", "text/html; charset=utf-8"),
        ("x-a", "b: c"),
        ("content-length", "4"),
        ("set-cookie", "a=b"),
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    assert_eq!(fields, text(&expected));
    assert_eq!(frames[0].flags, END_HEADERS);
    assert_eq!(
        (frames[1].kind, frames[1].flags),
        (FrameKind::Data, END_STREAM)
    );
    assert_eq!(frames[1].payload, b"none");
    let ended = client.ended.pop().expect("a stream that has ended");
    assert_eq!((ended.status(), ended.body_bytes()), (Some(404), 4));
}

/// RFC 9110 section 9.3.2, RFC 9113 section 8.1.1.
#[test]
fn without_content_the_head_is_the_end() {
    let mut head = GET;
    head[0].1 = "HEAD";
    for (fields, response) in [
        (head, ok(b"not sent")),
        (GET, Response::builder(304).body("not sent")),
        (GET, Response::builder(204).empty()),
        (GET, Response::builder(200).empty()),
    ] {
        let mut client = TestClient::new();
        client.head(1, END_STREAM, &fields);
        client.respond(1, &response);
        let frames = client.frames();
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0].flags, END_HEADERS | END_STREAM);
    }
}

/// RFC 9113 sections 4.2 and 6.10.
#[test]
fn a_long_head_is_continued() {
    let mut client = TestClient::new();
    client.get(1);
    let long = "\u{1}".repeat(40_000).replace('\u{1}', "~");
    client.respond(1, &Response::builder(200).field("x", &long).empty());
    let frames = client.frames();
    assert!(frames.len() > 2);
    assert_eq!(frames[0].flags, END_STREAM);
    assert!(
        frames[1..]
            .iter()
            .all(|frame| frame.kind == FrameKind::Continuation)
    );
    assert_eq!(frames.last().expect("a frame").flags, END_HEADERS);
    let block: Vec<u8> = frames.into_iter().flat_map(|frame| frame.payload).collect();
    assert_eq!(client.fields(&block)[1].1, long);
}

/// RFC 7541 section 4.2.
#[test]
fn a_smaller_table_of_the_client_is_acknowledged_in_the_next_block() {
    let mut client = TestClient::new();
    client.settings(&[(0x1, 0)]);
    client.frames();
    for (stream, first) in [(1, 0x20), (3, 0x88)] {
        client.get(stream);
        client.respond(stream, &ok(b"x"));
        assert_eq!(client.frames()[0].payload[0], first);
    }
    client.settings(&[(0x1, 100)]);
    client.get(5);
    client.respond(5, &ok(b"x"));
    assert_eq!(client.frames()[1].payload[0], 0x88);
}

#[test]
fn files_are_read_by_the_driver() {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&LONG).expect("a written file");
    let file = Arc::new(file);
    let mut client = TestClient::new();
    client.window(0, 1 << 20);
    client.settings(&[(0x4, 1 << 20)]);
    client.frames();
    client.get(1);
    client.respond(
        1,
        &Response::builder(200).file(Arc::clone(&file), 10, 50_000),
    );
    let frames = client.frames();
    assert_eq!(data_of(&frames, 1), LONG[..50_000]);
    assert_eq!(frames.last().expect("a frame").flags, END_STREAM);
    // Shorter than was said.
    client.get(3);
    client.respond(3, &Response::builder(200).file(file, 90_000, 20_000));
    let frames = client.frames();
    assert_eq!(data_of(&frames, 3).len(), 10_000);
    assert_reset(&frames[frames.len() - 1..], 3, ErrorCode::InternalError);
}

/// The streams of the DATA frames, in order.
fn order(client: &mut TestClient) -> Vec<u32> {
    let frames = client.frames();
    let data = frames.iter().filter(|frame| frame.kind == FrameKind::Data);
    data.map(|frame| frame.stream).collect()
}

fn wide() -> TestClient {
    let mut client = TestClient::new();
    client.settings(&[(0x4, 1 << 20)]);
    client.window(0, 1 << 24);
    client.frames();
    client
}

/// Requests with these priorities on streams 1, 3 and so on, each answered with `frames` frames.
fn requests(client: &mut TestClient, priorities: &[&str], frames: usize) {
    for (at, priority) in (0..).zip(priorities) {
        let stream = 1 + 2 * at;
        let fields = [&GET[..], &[("priority", priority)]].concat();
        client.head(stream, END_STREAM, &fields);
        client.respond(stream, &ok(&LONG[..16_384 * frames]));
    }
}

/// RFC 9218 section 10.
#[test]
fn the_most_urgent_is_sent_first() {
    let mut client = wide();
    requests(&mut client, &["u=5", "u=0", "", "u=2"], 2);
    assert_eq!(order(&mut client), [3, 3, 7, 7, 5, 5, 1, 1]);
}

/// RFC 9218 section 10.
#[test]
fn incremental_streams_take_turns_and_others_do_not() {
    let mut client = wide();
    requests(&mut client, &["i", "i", "i"], 3);
    assert_eq!(order(&mut client), [1, 3, 5, 1, 3, 5, 1, 3, 5]);
    let mut client = wide();
    requests(&mut client, &["", "", ""], 2);
    assert_eq!(order(&mut client), [1, 1, 3, 3, 5, 5]);
    let mut client = wide();
    requests(&mut client, &["i", "", "i", ""], 2);
    assert_eq!(order(&mut client), [1, 5, 3, 1, 5, 3, 7, 7]);
}

/// The turns go on where the last buffer ended.
#[test]
fn turns_are_kept_from_one_buffer_to_the_next() {
    let mut client = wide();
    client.room = 16_384 + 100;
    requests(&mut client, &["i", "i"], 3);
    let turns: Vec<_> = (0..6).flat_map(|_| order(&mut client)).collect();
    assert_eq!(turns, [1, 3, 1, 3, 1, 3]);
}

/// RFC 9218 section 7.1: a frame has the last word, also before its stream is open.
#[test]
fn priorities_are_updated() {
    let mut client = wide();
    let update = |client: &mut TestClient, stream: u32, value: &str| {
        let payload = [&stream.to_be_bytes()[..], value.as_bytes()].concat();
        client.frame(FrameKind::PriorityUpdate, 0, 0, &payload);
    };
    update(&mut client, 5, "u=0");
    requests(&mut client, &["u=1", "u=2", "u=7"], 1);
    update(&mut client, 3, "u=0");
    assert_eq!(order(&mut client), [3, 5, 1]);
    update(&mut client, 3, "u=0");
    assert_eq!(client.frames(), []);
}

#[test]
fn a_buffer_is_filled_as_far_as_its_room_goes() {
    let mut client = wide();
    client.room = 30_000;
    requests(&mut client, &["", ""], 4);
    let (mut total, mut rounds) = (0, 0);
    loop {
        let mut out = Vec::new();
        let more = client
            .session
            .write(&mut out, 30_000, &mut super::support::Files, client.now);
        assert!(
            out.len() <= 30_000 && (out.len() > 28_000 || !more),
            "{}",
            out.len()
        );
        total += out.len();
        rounds += 1;
        if !more {
            break;
        }
    }
    assert!(total > 8 * 16_384 && rounds == 5, "{total} {rounds}");
    assert!(!client.session.wants_write());
}

#[test]
fn small_responses_leave_together_and_each_in_one_piece() {
    let mut client = TestClient::new();
    for stream in [1, 3, 5] {
        client.get(stream);
        client.respond(stream, &ok(b"x"));
    }
    client.frame(FrameKind::Ping, 0, 0, &[0; 8]);
    assert!(client.session.wants_write());
    let seen: Vec<_> = client.frames().iter().map(|f| (f.kind, f.stream)).collect();
    let (head, data) = (FrameKind::Headers, FrameKind::Data);
    let expected = [
        (head, 1),
        (data, 1),
        (head, 3),
        (data, 3),
        (head, 5),
        (data, 5),
    ];
    assert_eq!(seen[0], (FrameKind::Ping, 0));
    assert_eq!(seen[1..], expected);
    assert!(!client.session.wants_write() && client.session.is_idle());
}
