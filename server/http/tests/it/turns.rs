//! Responses of one turn of the event loop: sent together, in order, and none behind what may take
//! long.

use std::io::Write as _;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_http::Limits;

use crate::support::{Client, Server, ServiceCall};

/// Stops the worker in the middle of a request: what is sent until the gate lets it go on is ready
/// in one turn.
fn hold(server: &Server) -> Client {
    let mut client = server.connect();
    client.get("/block");
    skip_to_waiting(server);
    client
}

fn skip_to_waiting(server: &Server) {
    while server.next_seen() != ServiceCall::Waiting {}
}

#[test]
fn more_connections_than_one_send_takes_each_get_their_answers_in_order() {
    let server = Server::start(Limits::default());
    let mut clients: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.get("/ok");
        assert_eq!(client.response().text(), "/ok");
    }
    let mut held = hold(&server);
    for (n, client) in clients.iter_mut().enumerate() {
        // The last of three is half a request for every third client, which must not hold back the
        // first two.
        client.get(&format!("/{n}/1"));
        client.get(&format!("/{n}/2"));
        client.send(if n % 3 == 0 { "GET /" } else { "" });
    }
    server.gate.add_permits(1);
    assert_eq!(held.response().text(), "blocked");
    for (n, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().text(), format!("/{n}/1"));
        assert_eq!(client.response().text(), format!("/{n}/2"));
        client.send(if n % 3 == 0 {
            "3 HTTP/1.1\r\nHost: a\r\n\r\n"
        } else {
            "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n"
        });
        assert_eq!(client.response().text(), "/3");
    }
}

/// Sends the request of one of many clients while the worker is held, with the response that it is
/// to get.
fn say(client: &mut Client, n: usize, padding: &str) {
    match n % 6 {
        0 => client.get("/kept"),
        1 => client.get(&format!("/{n}")),
        2 => client.send("GET /ke"),
        3 => client
            .send("GET /kept HTTP/1.1\r\nHost: a\r\n\r\nGET /large HTTP/1.1\r\nHost: a\r\n\r\n"),
        4 => client.post("/echo", padding),
        _ => client.send("\r\nGET /kept HTTP/1.1\r\nHost: a\r\n\r\n"),
    }
}

fn hear(client: &mut Client, n: usize, padding: &str) {
    match n % 6 {
        0 | 5 => assert_eq!(client.response().text(), "text"),
        1 => assert_eq!(client.response().text(), format!("/{n}")),
        2 => {
            client.send("pt HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.response().text(), "text");
        }
        3 => {
            assert_eq!(client.response().text(), "text");
            assert_eq!(client.response().body, vec![b'l'; 20 << 10]);
        }
        _ => assert_eq!(client.response().text(), padding),
    }
}

#[test]
fn all_that_is_read_in_one_turn_gets_its_own_answer() {
    let server = Server::untold();
    let mut clients: Vec<Client> = (0..60).map(|_| server.connect()).collect();
    clients[0].post("/set", "text");
    assert_eq!(clients[0].response().text(), "text");
    for round in 0..10 {
        // Longer than one read, the last times.
        let padding = "p".repeat(4000 * round);
        let mut held = hold(&server);
        // One client leaves without a byte, and one in the middle of a request.
        let (gone, mut broken) = (server.connect(), server.connect());
        drop(gone);
        for (n, client) in clients.iter_mut().enumerate() {
            say(client, n, &padding);
        }
        broken.send("GET /");
        drop(broken);
        server.gate.add_permits(1);
        assert_eq!(held.response().text(), "blocked");
        for (n, client) in clients.iter_mut().enumerate() {
            hear(client, n, &padding);
        }
    }
}

#[test]
fn what_was_kept_is_not_given_to_whoever_asked_after_a_change_in_the_same_turn() {
    let server = Server::untold();
    let mut clients: Vec<Client> = (0..24).map(|_| server.connect()).collect();
    let mut in_order = 0;
    for round in 0..20 {
        let (before, after) = (format!("before {round}"), format!("after {round}"));
        clients[0].post("/set", &before);
        clients[0].response();
        for client in &mut clients {
            for _ in 0..3 {
                client.get("/kept");
                assert_eq!(client.response().text(), before);
            }
        }
        let mut held = hold(&server);
        for (n, client) in clients.iter_mut().enumerate() {
            if n == 7 {
                client.post("/set", &after);
            } else {
                client.get("/kept");
            }
        }
        server.gate.add_permits(1);
        held.response();
        let answers: Vec<_> = clients.iter_mut().map(Client::response).collect();
        for answer in &answers {
            assert!([&before[..], &after].contains(&&*answer.text()));
        }
        let is_after = answers[7..].iter().all(|answer| answer.text() == after);
        in_order += usize::from(is_after);
    }
    // The kernel need not tell of them in the order in which they were sent, though it nearly
    // always does.
    assert!(in_order >= 10, "{in_order}");
}

#[test]
fn a_panic_is_500_for_one_of_those_who_were_read_together() {
    let server = Server::untold();
    let mut clients: Vec<Client> = (0..12).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.get("/none");
        client.head();
    }
    let mut held = hold(&server);
    clients[0].get("/panic");
    for client in &mut clients[1..] {
        client.get("/kept");
    }
    server.gate.add_permits(1);
    assert_eq!(held.response().text(), "blocked");
    assert_eq!(clients[0].response().status, 500);
    for client in &mut clients[1..] {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn what_is_ready_does_not_wait_for_what_takes_long() {
    let server = Server::start(Limits::default());
    let (mut quick, mut slow) = (server.connect(), server.connect());
    for client in [&mut quick, &mut slow] {
        client.get("/ok");
        assert_eq!(client.response().text(), "/ok");
    }
    let held = hold(&server);
    quick.get("/quick");
    slow.get("/block-later");
    server.gate.add_permits(1);
    skip_to_waiting(&server);
    // The worker stands still again, in the same turn, and the quick one's answer is there.
    assert_eq!(quick.response().text(), "/quick");
    server.gate.add_permits(1);
    assert_eq!(slow.response().text(), "blocked");
    drop(held);
}

#[test]
fn who_was_read_first_does_not_wait_for_what_takes_long_elsewhere() {
    let server = Server::untold();
    let (mut quick, mut slow) = (server.connect(), server.connect());
    for _ in 0..3 {
        quick.get("/kept");
        assert_eq!(quick.response().status, 200);
    }
    // In the middle of a request, so no idle connection, whose turn may take long.
    slow.send("POST /block-later HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n");
    server.check_serves();
    let held = hold(&server);
    quick.get("/kept");
    slow.send("body");
    server.gate.add_permits(1);
    skip_to_waiting(&server);
    // The worker stands still again.
    assert_eq!(quick.response().status, 200);
    server.gate.add_permits(1);
    assert_eq!(slow.response().text(), "blocked");
    drop(held);
}

#[test]
fn a_request_behind_an_answer_that_the_socket_does_not_take_waits_its_turn() {
    let server = Server::with_small_sockets();
    let mut client = server.connect();
    client.get("/medium");
    // Another connection has had its turn, so this one's is over, and the rest of its answer is
    // back with it.
    server.check_serves();
    client.get("/after");
    server.check_serves();
    client.get("/medium");
    assert_eq!(client.response().body.len(), 200 << 10);
    assert_eq!(client.response().text(), "/after");
    assert_eq!(client.response().body.len(), 200 << 10);
    let seen = |target: &str, body_bytes| ServiceCall::Done {
        target: target.to_owned(),
        status: 200,
        body_bytes,
    };
    // The notification follows the sending, so perhaps the arrival too.
    let mut told = Vec::new();
    while told.len() < 2 {
        told.extend(Some(server.next_seen()).filter(|done| *done != seen("/ok", 3)));
    }
    assert_eq!(told, [seen("/medium", 200 << 10), seen("/after", 6)]);
}

#[test]
fn a_client_that_has_said_its_last_word_gets_the_whole_answer() {
    let server = Server::with_small_sockets();
    let mut client = server.connect();
    client.get("/ok");
    assert_eq!(client.response().text(), "/ok");
    // The end is there in the very turn in which the request is answered.
    let held = hold(&server);
    client.get("/medium");
    client.stream().shutdown(Shutdown::Write).unwrap();
    server.gate.add_permits(1);
    server.check_serves();
    assert_eq!(client.response().body.len(), 200 << 10);
    assert!(client.is_at_end());
    drop(held);
}

#[test]
fn a_pipeline_without_end_leaves_others_their_turn() {
    // Heads so long that a read never has more than a turn of them.
    leave_others_their_turn(&Server::start(Limits::default()), "/ok", 300);
}

#[test]
fn a_pipeline_of_files_without_end_leaves_others_their_turn() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"f").unwrap();
    // A read is filled by exactly one turn of requests, each of which is sent before the next is
    // looked at.
    let head = "GET /file HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
    let server = Server::with_file(Limits::default(), Some(file));
    leave_others_their_turn(&server, "/file", 256 - head.len());
}

/// A client sends requests with a field of `padding` bytes without end, and others are served.
fn leave_others_their_turn(server: &Server, target: &str, padding: usize) {
    let mut endless = server.connect();
    let padding = "x".repeat(padding);
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX: {padding}\r\n\r\n");
    let burst = request.repeat(256);
    let reader = endless.stream().try_clone().unwrap();
    let reading = std::thread::spawn(move || std::io::copy(&mut &reader, &mut std::io::sink()));
    let stop = Arc::new(AtomicBool::new(false));
    let writing = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                endless.send(&burst);
            }
            endless.stream().shutdown(Shutdown::Write).unwrap();
        }
    });
    for _ in 0..50 {
        server.check_serves();
    }
    stop.store(true, Ordering::Relaxed);
    writing.join().unwrap();
    reading.join().unwrap().unwrap();
}
