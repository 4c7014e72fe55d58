//! Requests that do not end, by the hundred: they are bounded together, and a client that sends a
//! complete request is served.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use millpond_http::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::support::{Client, Server, ServiceCall};

const MIB: usize = 1 << 20;

/// Files for 20 bodies: one for 16 connections.
fn few_files() -> Limits {
    Limits {
        connections: 320,
        body: 8 * MIB,
        ..Limits::default()
    }
}

/// A POST with a body of `len` bytes, of which `sent` are sent as far as the server takes them.
fn post(server: &Server, path: &str, len: usize, sent: usize) -> Client {
    let mut client = server.connect();
    client.send(format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n"
    ));
    let _ = client.stream().write_all(&vec![b'x'; sent]);
    client
}

/// Sends what is missing of a body.
fn finish(client: &mut Client, missing: usize) -> u16 {
    let _ = client.stream().write_all(&vec![b'x'; missing]);
    client.response().status
}

fn waits(server: &Server) -> bool {
    loop {
        match server.next_seen() {
            ServiceCall::Waiting => return true,
            ServiceCall::Refused(503) | ServiceCall::Done { status: 503, .. } => return false,
            _ => {}
        }
    }
}

/// Complete bodies of a MiB whose responses wait for the gate, until one is refused. None of them
/// can be ended.
fn fill_with_complete_bodies(server: &Server) -> Vec<Client> {
    let mut held = Vec::new();
    loop {
        let client = post(server, "/later", MIB, MIB);
        if !waits(server) {
            break held;
        }
        held.push(client);
        assert!(held.len() < 100, "more than memory and files allow");
    }
}

/// Returns the status of a body for which there is no room while those are held.
fn too_large(server: &Server) -> u16 {
    let len = 4 * MIB;
    post(server, "/echo", len, len).response().status
}

fn check_served(server: &Server, clients: Vec<Client>) {
    server.gate.add_permits(clients.len());
    for mut client in clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn small_forms_pass_while_two_hundred_connections_hold_bodies() {
    let server = Server::start(Limits::default());
    let hold = |_| post(&server, "/echo", MIB, MIB - 1024);
    let mut held: Vec<Client> = (0..200).map(hold).collect();
    for len in [1, 40, 2 << 10, 64 << 10] {
        for in_two in [false, true] {
            let first = if in_two { len / 2 } else { len };
            let mut client = post(&server, "/echo", len, first);
            server.check_serves();
            assert_eq!(finish(&mut client, len - first), 200, "{len} bytes");
        }
    }
    for client in &mut held {
        assert_eq!(finish(client, 1024), 200);
    }
    let stats = server.shared.stats();
    assert_eq!(stats.bodies_ended, 0);
    assert!(stats.bodies_in_files > 100, "{stats:?}");
}

#[test]
fn a_large_body_arrives_whole_with_and_without_a_length() {
    const LEN: usize = 5 * MIB + 3;
    let server = Server::start(few_files());
    let body: Vec<u8> = (0..LEN).map(|at| (at / 7) as u8).collect();
    let mut client = server.connect();
    for _ in 0..2 {
        client.send(format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {LEN}\r\n\r\n"
        ));
        client.send(&body);
        assert!(client.response().body == body);
        client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(100_003) {
            client.send(format!("{:x}\r\n", chunk.len()));
            client.send(chunk);
            client.send("\r\n");
        }
        server.check_serves();
        client.send("0\r\n\r\n");
        assert!(client.response().body == body);
    }
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    // One byte more than the limit, in chunks of which each is permitted.
    let _ = client.stream().write_all(b"800000\r\n");
    let _ = client.stream().write_all(&vec![b'x'; 8 * MIB]);
    let _ = client.stream().write_all(b"\r\n1\r\n");
    assert_eq!(client.response().status, 413);
    assert_eq!(server.shared.stats().bodies_in_files, 5);
}

/// A connection from another address of this machine.
fn connect_from(address: Ipv4Addr, server: &Server) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&server.addr.into()).unwrap();
    socket.into()
}

#[test]
fn the_client_that_holds_most_makes_room_for_another() {
    let server = Server::start(few_files());
    let mut held: Vec<Client> = (0..20)
        .map(|_| {
            let client = post(&server, "/echo", 4 * MIB, 2 * MIB);
            server.check_serves();
            client
        })
        .collect();
    while server.shared.stats().bodies_in_files < 20 {
        std::thread::yield_now();
    }
    let mut other = connect_from(Ipv4Addr::new(127, 0, 0, 2), &server);
    write!(
        other,
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        3 * MIB
    )
    .unwrap();
    other.write_all(&vec![b'y'; 3 * MIB]).unwrap();
    let mut response = Vec::new();
    other.read_to_end(&mut response).unwrap();
    assert!(response.starts_with(b"HTTP/1.1 200"));
    let ended = server.shared.stats().bodies_ended;
    assert!((1..=5).contains(&ended), "{ended}");
    let statuses = held.iter_mut().map(|client| finish(client, 2 * MIB));
    let refused = statuses.filter(|status| *status == 503).count() as u64;
    assert_eq!(refused, ended, "the rest is served");
}

#[test]
fn bodies_whose_answers_take_long_are_bounded_with_them() {
    let server = Server::start(few_files());
    let held = fill_with_complete_bodies(&server);
    assert!((35..=70).contains(&held.len()), "{}", held.len());
    let refused = post(&server, "/echo", 4 * MIB, 4 * MIB).response();
    assert_eq!(
        (refused.status, refused.field("retry-after")),
        (503, Some("1"))
    );
    // A small one passes.
    let mut small = post(&server, "/echo", 64 << 10, 64 << 10);
    assert_eq!(small.response().body.len(), 64 << 10);
    check_served(&server, held);
    assert_eq!(post(&server, "/echo", MIB, MIB).response().status, 200);
}

#[test]
fn a_body_is_counted_no_longer_than_somebody_needs_it() {
    let server = Server::start(few_files());
    let held = fill_with_complete_bodies(&server);
    let count = held.len();
    drop(held);
    server.gate.add_permits(count);
    // Their clients are gone.
    for _ in 0..count {
        while !matches!(server.next_seen(), ServiceCall::Done { target, .. } if target == "/later")
        {
        }
    }
    // What an answer does not need is not counted while it is made.
    let careless: Vec<Client> = (0..count)
        .map(|_| {
            let client = post(&server, "/careless", MIB, MIB);
            assert!(waits(&server));
            client
        })
        .collect();
    let again = fill_with_complete_bodies(&server);
    assert!(again.len() + 2 >= count, "{} of {count}", again.len());
    server.gate.add_permits(careless.len());
    check_served(&server, again);
    for mut client in careless {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_panic_does_not_lose_count_of_the_bodies_of_others() {
    let server = Server::start(few_files());
    let mut client = server.connect();
    for _ in 0..3 {
        client.get("/kept");
        assert_eq!(client.response().status, 200);
    }
    client.send("POST /set HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\npanic");
    assert_eq!(client.response().text(), "panic");
    let held = fill_with_complete_bodies(&server);
    client.get("/kept");
    assert!(client.is_at_end());
    // The connection is closed while the panic unwinds, and the panic is counted after that.
    while server.shared.stats().panics == 0 {
        std::thread::yield_now();
    }
    assert_eq!(too_large(&server), 503);
    check_served(&server, held);
    assert_eq!(post(&server, "/echo", MIB, MIB).response().status, 200);
}

/// As many descriptors as the process may have.
fn raise_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |current| current as usize)
}

#[test]
fn heads_without_an_end_are_bounded_together() {
    const HEAD: usize = 63_000;
    // A descriptor at each end of a connection.
    let count = 1_500.min((raise_descriptors() - 400) / 2);
    let server = Server::start(Limits::default());
    let line = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}", "a".repeat(HEAD));
    let clients: Vec<Client> = (0..count)
        .map(|at| {
            let client = server.connect();
            let _ = client.stream().write_all(line.as_bytes());
            if at % 50 == 0 {
                server.check_serves();
            }
            client
        })
        .collect();
    server.check_serves();
    let ended = server.shared.stats().heads_ended as usize;
    let held = count - ended;
    assert!(held * HEAD <= 33 << 20, "{held} heads are held");
    // Each that was ended knows why.
    let mut refused = 0;
    for mut client in clients {
        let _ = client.stream().write_all(b"\r\n\r\n");
        let status = client.response().status;
        assert!(matches!(status, 200 | 408), "{status}");
        refused += usize::from(status == 408);
    }
    assert!(refused >= ended);
    server.check_serves();
}

/// Responses of 20 KiB that `count` clients get, which pipeline 400 requests each and read nothing,
/// before a client has its one response that asked after them.
fn responses_before_another_client(count: usize) -> usize {
    let server = Server::start(Limits::default());
    let mut blocker = server.connect();
    let mut greedy: Vec<Client> = (0..count).map(|_| server.connect()).collect();
    let mut modest = server.connect();
    // So that the worker knows all of them before it is held up.
    for client in greedy.iter_mut().chain([&mut modest]) {
        client.get("/known");
        assert_eq!(client.response().status, 200);
    }
    blocker.get("/block");
    while server.next_seen() != ServiceCall::Waiting {}
    let many = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n".repeat(400);
    for client in &mut greedy {
        client.send(&many);
    }
    modest.get("/modest");
    server.gate.add_permits(1);
    let mut before = 0;
    loop {
        match server.next_seen() {
            ServiceCall::Done { target, .. } if target == "/modest" => break,
            ServiceCall::Done { target, .. } if target == "/large" => before += 1,
            _ => {}
        }
    }
    for client in &mut greedy {
        for _ in 0..400 {
            assert_eq!(client.response().body.len(), 20 << 10);
        }
    }
    before
}

#[test]
fn a_pipeline_that_is_not_read_lets_others_have_their_turn() {
    let of_one = responses_before_another_client(1);
    assert!(of_one <= 16, "{of_one} are more than 256 KiB and one more");
    let of_many = responses_before_another_client(40);
    assert!(
        of_many <= 40 * 4,
        "{of_many} are more than 32 KiB each and one more"
    );
}
