//! Requests that do not end, through TLS and on streams of HTTP/2: bounded together with those of
//! HTTP/1.1, and complete requests are served.

use std::io::Write as _;

use lab_testkit::http2::{
    DATA, END_HEADERS, END_STREAM, Frame, Frames, GO_AWAY, HEADERS, PING, RESET, WINDOW, head,
};
use lab_torture::secure::SecureTarget;
use millpond_http::Limits;

use crate::http2::{Http2Client, run};
use crate::secure::{SecureClient, SecureServer};
use crate::support::{Server, ServiceCall};

const MIB: usize = 1 << 20;
/// Bytes of one stream that a client may send at first.
const STREAM_WINDOW: usize = 256 << 10;

fn large_bodies() -> Limits {
    Limits {
        body: 100 * MIB,
        ..Limits::default()
    }
}

fn open(server: &SecureServer) -> Frames {
    open_with(server, &[])
}

fn open_with(server: &SecureServer, settings: &[(u16, u32)]) -> Frames {
    let target = SecureTarget::localhost(server.server.addr);
    Frames::open(target.connect(b"h2").unwrap(), settings).unwrap()
}

/// Begins a POST, and sends `len` bytes of its body.
fn begin_post(frames: &mut Frames, stream: u32, len: usize) {
    let head = head("POST", "/echo");
    frames.send(HEADERS, END_HEADERS, stream, &head).unwrap();
    for part in vec![b'x'; len].chunks(16 << 10) {
        frames.send(DATA, 0, stream, part).unwrap();
    }
}

/// Waits until the server has taken all that was sent; the frames that came meanwhile.
fn settle(frames: &mut Frames) -> Vec<Frame> {
    frames.send(PING, 0, 0, b"arrived?").unwrap();
    let mut seen = Vec::new();
    loop {
        let frame = frames.receive().unwrap().expect("a frame");
        if frame.kind == PING {
            return seen;
        }
        seen.push(frame);
    }
}

/// A form of `len` bytes on a connection of its own.
fn post_small(server: &SecureServer, len: usize) -> u16 {
    let mut frames = open(server);
    begin_post(&mut frames, 1, len);
    frames.send(DATA, END_STREAM, 1, &[]).unwrap();
    frames.response(1).unwrap().0
}

#[test]
fn a_large_body_goes_to_a_file_beside_small_forms() {
    const LEN: usize = 40 * MIB;
    let server = Server::start(large_bodies());
    let body: Vec<u8> = (0..LEN).map(|at| (at / 7) as u8).collect();
    run(async {
        let client = Http2Client::connect(&server).await;
        let other = Http2Client::connect(&server).await;
        let mut large = Box::pin(client.ask("POST", "/echo", &body));
        let mut small = 0;
        loop {
            // The same connection, and another one.
            for client in [&client, &other] {
                let form = client.ask("POST", "/echo", b"a=b");
                let answer = tokio::select! {
                    biased;
                    answer = &mut large => Err(answer),
                    form = form => Ok(form),
                };
                match answer {
                    Ok((status, body)) => {
                        assert!(status == 200 && body == b"a=b");
                        small += 1;
                    }
                    Err(answer) => {
                        assert!(small > 0, "no form came between");
                        assert_eq!(answer.0, 200);
                        assert!(answer.1 == body);
                        return;
                    }
                }
            }
        }
    });
    let stats = server.shared.stats();
    assert_eq!((stats.bodies_in_files, stats.bodies_ended), (1, 0));
}

#[test]
fn many_large_bodies_of_one_connection_arrive_whole() {
    let server = Server::start(large_bodies());
    run(async {
        let client = Http2Client::connect(&server).await;
        let bodies: Vec<_> = (0..20_u8).map(|number| vec![number; 3 * MIB]).collect();
        for body in bodies.chunks(4) {
            let asked = body.iter().map(|body| client.ask("POST", "/echo", body));
            for (answer, body) in crate::http2::futures_of(asked).await.into_iter().zip(body) {
                assert_eq!(answer.0, 200);
                assert!(answer.1 == *body);
            }
        }
        let (status, _) = client.ask("POST", "/echo", &vec![b'x'; MIB]).await;
        assert_eq!(status, 200);
    });
    assert_eq!(server.shared.stats().bodies_in_files, 20);
}

#[test]
fn small_forms_pass_while_streams_of_a_few_connections_hold_bodies() {
    let server = SecureServer::start(Limits::default());
    // 250 streams with 250 KiB each are more than the memory for all.
    let mut held: Vec<Frames> = (0..10).map(|_| open(&server)).collect();
    for frames in &mut held {
        for stream in 0..25 {
            // The window of the connection is open again when the server has taken a body.
            begin_post(frames, 1 + 2 * stream, STREAM_WINDOW - (6 << 10));
            settle(frames);
        }
    }
    for len in [1, 40, 2 << 10, 64 << 10] {
        assert_eq!(post_small(&server, len), 200, "{len} bytes");
    }
    let stats = server.server.shared.stats();
    assert_eq!(stats.bodies_ended, 0);
    assert!(stats.bodies_in_files > 100, "{stats:?}");
    // What is held is still taken.
    for frames in &mut held {
        frames.send(DATA, END_STREAM, 1, b"end").unwrap();
        assert_eq!(frames.response(1).unwrap().0, 200);
    }
}

#[test]
fn small_forms_pass_while_two_hundred_connections_hold_bodies_through_tls() {
    let server = SecureServer::start(Limits::default());
    let post = |len: usize, sent: usize| -> SecureClient {
        let mut client = server.connect();
        let head =
            format!("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n\r\n");
        client.0.write_all(head.as_bytes()).unwrap();
        client.0.write_all(&vec![b'x'; sent]).unwrap();
        client
    };
    let mut held: Vec<SecureClient> = (0..200).map(|_| post(MIB, MIB - 1024)).collect();
    for len in [1, 40, 2 << 10, 64 << 10] {
        let mut client = post(len, len / 2);
        assert_eq!(server.connect().get("/ok"), "/ok");
        client.0.write_all(&vec![b'x'; len - len / 2]).unwrap();
        assert_eq!(client.response().len(), len);
    }
    for client in &mut held {
        client.0.write_all(&[b'x'; 1024]).unwrap();
        assert_eq!(client.response().len(), MIB);
    }
    let stats = server.server.shared.stats();
    assert_eq!(stats.bodies_ended, 0);
    assert!(stats.bodies_in_files > 100, "{stats:?}");
}

#[test]
fn of_many_streams_the_slowest_bodies_end_and_the_connection_stays() {
    // Files for 20 bodies.
    let limits = Limits {
        connections: 320,
        body: 8 * MIB,
        ..Limits::default()
    };
    let server = SecureServer::start(limits);
    let mut frames = open(&server);
    let mut seen = Vec::new();
    // Two connections with as many bodies as they may have: half of them have no file, and are more
    // than the memory for all.
    let mut other = open(&server);
    for number in 0..99 {
        for frames in [&mut frames, &mut other] {
            begin_post(frames, 1 + 2 * number, STREAM_WINDOW);
            seen.extend(settle(frames));
        }
    }
    let refused = |frame: &&Frame| frame.kind == HEADERS;
    let refused = seen.iter().filter(refused).count() as u64;
    let ended = server.server.shared.stats().bodies_ended;
    assert!((20..150).contains(&ended), "{ended}");
    assert!(refused > 0 && refused <= ended, "{refused} of {ended}");
    assert!(seen.iter().all(|frame| frame.kind != GO_AWAY));
    assert_eq!(post_small(&server, 64 << 10), 200);
    frames.get(199, "/still").unwrap();
    assert_eq!(frames.response(199).unwrap().1, b"/still");
}

#[test]
fn responses_that_are_not_read_take_bounded_memory() {
    let server = SecureServer::start(Limits::default());
    // Each response of 200 KiB is made for its request, and no window opens.
    let mut held: Vec<Frames> = (0..4)
        .map(|_| {
            let mut frames = open_with(&server, &[(4, 0)]);
            for number in 0..100 {
                let _ = frames.get(1 + 2 * number, "/medium");
            }
            frames
        })
        .collect();
    while server.server.shared.stats().heads_ended == 0 {
        assert_eq!(server.connect().get("/ok"), "/ok");
    }
    let mut told = 0;
    for frames in &mut held {
        let _ = frames.send(PING, 0, 0, b"arrived?");
        while let Ok(Some(frame)) = frames.receive() {
            if frame.kind == PING {
                break;
            }
            if frame.error() == Some(11) {
                told += 1;
            }
        }
    }
    assert!(told > 0);
    assert_eq!(server.connect().get("/ok"), "/ok");
    let is_refusal = |call| matches!(call, ServiceCall::Refused(_));
    assert!(!server.server.seen.try_iter().any(is_refusal));
}

/// RFC 9113 section 5.2.2: frames are read as soon as they arrive.
#[test]
fn a_client_that_reads_nothing_is_heard() {
    let server = SecureServer::with(Limits::default(), None, Some(16 << 10));
    // INITIAL_WINDOW_SIZE
    let mut frames = open_with(&server, &[(4, 1 << 30)]);
    frames
        .send(WINDOW, 0, 0, &(1_u32 << 30).to_be_bytes())
        .unwrap();
    let ask = |frames: &mut Frames, stream, path| {
        let head = head("GET", path);
        frames.send(HEADERS, END_HEADERS | END_STREAM, stream, &head)
    };
    ask(&mut frames, 1, "/big").unwrap();
    assert_eq!(server.connect().get("/ok"), "/ok");
    ask(&mut frames, 3, "/later").unwrap();
    while server.server.next_seen() != ServiceCall::Waiting {}
    // What is given up meanwhile is not held until the client reads.
    ask(&mut frames, 5, "/ok?5").unwrap();
    frames.send(RESET, 0, 5, &8_u32.to_be_bytes()).unwrap();
    let is_over = |call| matches!(call, ServiceCall::Done { target, .. } if target == "/ok?5");
    while !is_over(server.server.next_seen()) {}
    // What is given up is not sent, and what was asked for meanwhile is.
    frames.send(RESET, 0, 1, &8_u32.to_be_bytes()).unwrap();
    server.server.gate.add_permits(1);
    let (status, _) = frames.response(3).unwrap();
    assert_eq!(status, 200);
}
