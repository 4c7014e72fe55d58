//! How a server ends.

use std::time::Duration;

use lab_testkit::PATIENCE;
use lab_testkit::http2::{DATA, Frames, GO_AWAY, PING, WINDOW};
use millpond_http::{Limits, Network, Proxies};

use crate::support::{Server, ServiceCall};

#[test]
fn a_request_in_flight_is_finished() {
    let mut server = Server::start(Limits::default());
    let mut client = server.connect();
    client.post("/later", "x");
    assert_eq!(server.next_seen(), ServiceCall::Waiting);
    let mut idle = server.connect();
    idle.get("/a");
    assert_eq!(idle.response().text(), "/a");
    server.shared.shutdown();
    assert!(idle.is_at_end(), "idle connections are closed first");
    server.gate.add_permits(1);
    let answer = client.response();
    assert_eq!(
        (&*answer.text(), answer.field("connection")),
        ("x", Some("close"))
    );
    assert!(client.is_at_end());
    drop((client, idle));
    server.join();
    assert_eq!(server.shared.open(), 0);
}

#[test]
fn a_request_that_does_not_end_is_cut_off() {
    let mut server = Server::start(Limits {
        drain_timeout: Duration::from_millis(50),
        ..Limits::default()
    });
    let mut client = server.connect();
    client.get("/later");
    assert_eq!(server.next_seen(), ServiceCall::Waiting);
    server.shared.shutdown();
    server.join();
    assert!(client.is_at_end());
    assert_eq!(server.shared.open(), 0);
}

#[test]
fn a_half_sent_request_may_be_finished() {
    let mut server = Server::start(Limits::default());
    let mut client = server.connect();
    client.send(
        "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    );
    assert_eq!(client.response().status, 100);
    server.shared.shutdown();
    client.send("abc");
    let answer = client.response();
    assert_eq!(
        (&*answer.text(), answer.field("connection")),
        ("abc", Some("close"))
    );
    drop(client);
    server.join();
}

/// *Counterexample*: on a slow network each upgrade lost those that had 100 ms for the rest.
#[test]
fn what_began_before_its_first_request_is_served_in_a_drain() {
    let mut server = Server::start(Limits {
        head_timeout: PATIENCE * 10,
        drain_timeout: PATIENCE * 10,
        proxies: Proxies {
            protocol: Network::loopback(),
            ..Proxies::default()
        },
        ..Limits::default()
    });
    let begin = |bytes: &str| {
        let mut client = server.connect();
        client.send(bytes);
        client
    };
    let mut http1 = begin("PROXY TCP4 203.0.113.9");
    let mut proxied = begin("PROXY TCP4 203.0.113.9");
    let mut half = begin("PROXY UNKNOWN\r\nGET /half HTTP/1.1\r\n");
    let mut idle = begin("PROXY UNKNOWN\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(idle.response().text(), "/a");
    let mut silent = begin("");
    server.shared.shutdown();
    assert!(idle.is_at_end() && silent.is_at_end());
    for (client, rest, text) in [
        (&mut half, "Host: a\r\n\r\n", "/half"),
        (
            &mut http1,
            " 203.0.113.9 1 2\r\nGET /late HTTP/1.1\r\nHost: a\r\n\r\n",
            "/late",
        ),
    ] {
        client.send(rest);
        let answer = client.response();
        assert_eq!(
            (&*answer.text(), answer.field("connection")),
            (text, Some("close"))
        );
        assert!(client.is_at_end());
    }
    proxied.send(" 203.0.113.9 1 2\r\n");
    let mut http2 = Frames::open(proxied.stream().try_clone().unwrap(), &[]).unwrap();
    let kinds_until = |http2: &mut Frames, last| {
        let mut kinds = Vec::new();
        while kinds.last() != Some(&last) {
            kinds.push(http2.receive().unwrap().unwrap().kind);
        }
        kinds
    };
    kinds_until(&mut http2, WINDOW);
    http2.send(PING, 0, 0, &[0; 8]).unwrap();
    let before = kinds_until(&mut http2, PING);
    assert!(!before.contains(&GO_AWAY), "{before:?}");
    http2.get(1, "/late").unwrap();
    let after = kinds_until(&mut http2, DATA);
    assert!(after.contains(&GO_AWAY), "{after:?}");
    drop((half, http1, http2, proxied));
    server.join();
}

#[test]
fn a_shutdown_before_the_start_is_not_missed() {
    let mut server = Server::start(Limits::default());
    server.shared.shutdown();
    server.join();
    assert!(server.shared.is_shutdown());
}

#[test]
fn a_response_that_is_cut_off_is_told_of() {
    let mut server = Server::start(Limits {
        drain_timeout: Duration::from_millis(50),
        ..Limits::default()
    });
    let mut client = server.connect();
    client.get("/big");
    client.head();
    server.shared.shutdown();
    server.join();
    let ServiceCall::Done { body_bytes, .. } = server.next_seen() else {
        panic!("not told of");
    };
    assert!((1..32 << 20).contains(&body_bytes), "{body_bytes}");
}

#[test]
fn one_who_asks_again_at_once_is_waited_for_awake() {
    for spins in [true, false] {
        let limits = Limits {
            spins,
            ..Limits::default()
        };
        let mut server = Server::start(limits);
        let mut client = server.connect();
        // A machine that is busy with other things may interrupt each wait for a while.
        for asked in 0..200_000 {
            client.get("/a");
            assert_eq!(client.response().text(), "/a");
            let is_over = if spins {
                server.shared.stats().waits_awake > 0
            } else {
                asked == 100
            };
            if is_over {
                break;
            }
        }
        assert_eq!(server.shared.stats().waits_awake > 0, spins);
        server.shared.shutdown();
        drop(client);
        server.join();
    }
}
