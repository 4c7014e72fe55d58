//! What a client does to exhaust the server, and where it ends.

use super::super::frame::{END_HEADERS, END_STREAM, FrameKind, PADDED};
use super::super::{ErrorCode, ReceiveContext, SessionEvent, StreamId};
use super::support::{GET, POST, TestClient, block, ok};

/// Repeats what a client does until the connection ends; after how often.
#[track_caller]
fn spend(limit: u32, mut waste: impl FnMut(&mut TestClient, u32)) -> u32 {
    let mut client = TestClient::new();
    for number in 0..limit {
        waste(&mut client, 1 + 2 * number);
        while let Some(stream) = client.ended.pop() {
            client.buffers.give_back(stream);
        }
        if client.session.error() == Some(ErrorCode::EnhanceYourCalm) {
            assert_eq!(client.connection_error(), Some(ErrorCode::EnhanceYourCalm));
            return number;
        }
        assert_eq!(client.session.error(), None);
        client.frames();
    }
    panic!("the budget is never spent");
}

/// CVE-2023-44487.
#[test]
fn rapid_reset() {
    let resets = spend(1000, |client, stream| {
        client.get(stream);
        client.frame(FrameKind::RstStream, 0, stream, &[0, 0, 0, 8]);
        client.session.handler_is_gone(StreamId(stream));
    });
    assert!((400..600).contains(&resets), "{resets}");
}

/// CVE-2025-8671: the client makes the server reset.
#[test]
fn made_you_reset() {
    let provocations: [fn(&mut TestClient, u32); 5] = [
        |client, stream| {
            client.window(stream, 0);
        },
        |client, stream| {
            client.window(stream, (1 << 31) - 1);
        },
        |client, stream| {
            client.data(stream, 0, &[0; 1000]);
        },
        |client, stream| {
            let itself = [&stream.to_be_bytes()[..], &[0]].concat();
            client.frame(FrameKind::Priority, 0, stream, &itself);
        },
        |client, stream| {
            client.frame(FrameKind::Priority, 0, stream, &[0; 4]);
        },
    ];
    for provoke in provocations {
        let resets = spend(1000, |client, stream| {
            assert_eq!(client.get(stream).len(), 1);
            provoke(client, stream);
            client.session.handler_is_gone(StreamId(stream));
        });
        assert!(resets < 300, "{resets}");
    }
    let malformed = spend(1000, |client, stream| {
        client.head(stream, END_STREAM, &GET[1..]);
    });
    assert!(malformed < 300, "{malformed}");
}

#[test]
fn floods_of_frames_that_bring_nothing_forward() {
    let floods: [fn(&mut TestClient, u32); 10] = [
        |client, _| {
            client.frame(FrameKind::Ping, 0, 0, &[0; 8]);
        },
        |client, _| {
            client.frame(FrameKind::Ping, 1, 0, &[0; 8]);
        },
        |client, _| {
            client.settings(&[]);
        },
        |client, _| {
            client.frame(FrameKind::Unknown, 0, 0, &[0; 1000]);
        },
        |client, _| {
            client.frame(FrameKind::Priority, 0, 99, &[0; 5]);
        },
        |client, _| {
            client.frame(FrameKind::PriorityUpdate, 0, 0, &[0, 0, 0, 99, b'u']);
        },
        |client, _| {
            client.window(0, 1);
        },
        |client, _| {
            client.frame(FrameKind::GoAway, 0, 0, &[0; 8]);
        },
        |client, stream| {
            if stream == 1 {
                client.post(1);
            }
            client.data(1, 0, b"");
        },
        |client, stream| {
            if stream == 1 {
                client.post(1);
            }
            client.data(1, PADDED, &[254; 255]);
        },
    ];
    for flood in floods {
        let frames = spend(5000, flood);
        assert!((900..2100).contains(&frames), "{frames}");
    }
}

/// More streams than may be open, whose heads are decoded all the same.
#[test]
fn a_flood_of_refused_streams() {
    let streams = spend(2000, |client, stream| {
        client.get(stream);
    });
    assert!((500..700).contains(&streams), "{streams}");
}

#[test]
fn completed_responses_fill_the_budget() {
    let mut client = TestClient::new();
    for number in 0..10_000 {
        let stream = 1 + 4 * number;
        client.get(stream);
        client.respond(stream, &ok(b"x"));
        client.frames();
        client.window(0, 1);
        client.get(stream + 2);
        client.frame(FrameKind::RstStream, 0, stream + 2, &[0, 0, 0, 8]);
        client.session.handler_is_gone(StreamId(stream + 2));
        assert_eq!(client.session.error(), None);
    }
}

/// CVE-2024-27316 and others.
#[test]
fn a_head_without_an_end() {
    for payload in [&[][..], &[0; 100], &[0; 16_384]] {
        let mut client = TestClient::new();
        client.frame(FrameKind::Headers, 0, 1, payload);
        let mut frames = 0;
        while client.session.error().is_none() {
            client.frame(FrameKind::Continuation, 0, 1, payload);
            assert!(client.session.memory() < 300 << 10);
            frames += 1;
        }
        assert!(frames <= 1001, "{frames}");
        assert_eq!(client.connection_error(), Some(ErrorCode::EnhanceYourCalm));
    }
}

/// One byte of a block means four kilobytes of text.
#[test]
fn a_block_that_means_far_more_than_its_length() {
    // An entry of 4,000 bytes, then references to it.
    let bomb = |references: &[u8], count| {
        let mut bomb = block(&GET);
        bomb.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
        bomb.extend([b'v'; 4000]);
        bomb.extend(references.repeat(count));
        bomb
    };
    let flags = END_STREAM | END_HEADERS;
    let mut client = TestClient::new();
    for stream in [1, 3, 5, 7] {
        let events = client.frame(FrameKind::Headers, flags, stream, &bomb(&[0xbe], 40));
        let [SessionEvent::Refused(id, refusal)] = events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(refusal.status(), 431);
        let held = client
            .session
            .streams
            .get(id.number())
            .expect("a head")
            .head
            .text()
            .len();
        assert!(held <= client.limits.head, "{held}");
    }
    // Far more than any list may have, by references.
    let mut client = TestClient::new();
    client.frame(FrameKind::Headers, flags, 1, &bomb(&[0xbe], 12_000));
    assert_eq!(client.connection_error(), Some(ErrorCode::EnhanceYourCalm));
    // By a long name that is copied into the table again and again.
    let mut bomb = vec![0x40, 0x7f, 0xa1, 0x1e];
    bomb.extend([b'n'; 4000]);
    bomb.push(0);
    bomb.extend([0x7e, 0].repeat(6000));
    let mut client = TestClient::new();
    client.frame(FrameKind::Headers, flags, 1, &bomb);
    assert_eq!(client.connection_error(), Some(ErrorCode::EnhanceYourCalm));
    // Cookies are joined, and yet counted one by one.
    let mut crumbs = block(&GET);
    crumbs.extend([0x60, 1, b'a']);
    crumbs.extend([0xbe; 300]);
    let mut client = TestClient::new();
    let events = client.frame(FrameKind::Headers, END_STREAM | END_HEADERS, 1, &crumbs);
    assert!(matches!(events[..], [SessionEvent::Refused(..)]));
}

/// The others have their turn before all of a flood is taken.
#[test]
fn a_flood_is_taken_in_parts() {
    let mut client = TestClient::new();
    let pings = super::support::frame(FrameKind::Ping, 0, 0, &[0; 8]).repeat(160);
    let mut input = &pings[..];
    let mut taken = Vec::new();
    while !input.is_empty() {
        let before = input.len();
        let mut context = ReceiveContext {
            now: client.now,
            limits: &client.limits,
            buffers: &mut client.buffers,
        };
        client.session.begin_turn();
        assert_eq!(client.session.receive(&mut input, &mut context), None);
        taken.push((before - input.len()) / 17);
    }
    assert_eq!(taken, [64, 64, 32]);
}

/// A client that makes the server write and does not read.
#[test]
fn answers_that_are_not_read_are_bounded() {
    let mut client = TestClient::new();
    client.session.waste = super::super::waste::WasteBudget::new(client.now);
    let ping = super::support::frame(FrameKind::Ping, 0, 0, &[0; 8]);
    let mut sent = 0;
    while client.session.error().is_none() {
        client.session.waste.completed();
        client.send(&ping);
        sent += 1;
        assert!(client.session.memory() < 64 << 10);
    }
    assert!((16_384 / 17..1100).contains(&sent), "{sent}");
    assert_eq!(client.connection_error(), Some(ErrorCode::EnhanceYourCalm));
}

#[test]
fn an_idle_connection_is_small() {
    let mut client = TestClient::new();
    for number in 0..500 {
        let stream = 1 + 2 * number;
        client.head(stream, 0, &POST);
        client.data(stream, END_STREAM, &[b'x'; 5000]);
        client.request(stream);
        client.respond(stream, &ok(b"x"));
        client.frames();
        let stream = client.ended.pop().expect("a stream that has ended");
        client.buffers.give_back(stream);
    }
    assert!(client.session.is_idle());
    client.session.shrink();
    // The struct itself, and nothing besides. The dynamic table of a client that uses it comes on
    // top, with up to 4 KiB.
    assert!(
        client.session.memory() <= 640,
        "{}",
        client.session.memory()
    );
    let mut entry = block(&GET);
    for number in 0..150_u8 {
        entry.extend([
            0x40,
            1,
            b'x',
            3,
            b'v',
            b'0' + number / 10,
            number % 10 + b'0',
        ]);
    }
    let flags = END_STREAM | END_HEADERS;
    client.frame(FrameKind::Headers, flags, 1001, &entry);
    client.respond(1001, &ok(b"x"));
    client.frames();
    client.session.shrink();
    let memory = client.session.memory();
    assert!(memory <= 640 + 4096 + 512, "{memory}");
}
