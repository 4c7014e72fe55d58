//! Who a client is, and what one client may do on all of its connections, beside others.

use std::io::Write as _;
use std::net::Shutdown;
use std::time::Duration;

use millpond_http::{ClientLimits, Limits, Network, Proxies};

use crate::http2::{Http2Client, run};
use crate::secure::SecureServer;
use crate::support::{Client, Server};

/// Clients are named by headers of the PROXY protocol from this machine, and by X-Forwarded-For
/// from 198.51.100.0/24; without a header the client is the proxy, which has no limits.
fn limits(client: ClientLimits) -> Limits {
    let network = |text: &str| text.parse::<Network>().unwrap();
    Limits {
        client,
        proxies: Proxies {
            protocol: vec![network("127.0.0.1")],
            forwarded: Vec::new(),
            x_forwarded: vec![network("198.51.100.0/24")],
        },
        ..Limits::default()
    }
}

fn start(client: ClientLimits) -> Server {
    Server::start(limits(client))
}

fn line(address: &str) -> String {
    let family = if address.contains(':') {
        "TCP6"
    } else {
        "TCP4"
    };
    format!("PROXY {family} {address} {address} 4711 80\r\n")
}

/// A connection of the client with this address.
fn connect(server: &Server, address: &str) -> Client {
    let mut client = server.connect();
    client.send(line(address));
    client
}

/// The server still answers another client.
#[track_caller]
fn check_serves_another(server: &Server) {
    let mut other = connect(server, "203.0.113.200");
    other.get("/ok");
    assert_eq!(other.response().text(), "/ok");
}

/// The server counts this number of connections that have ended.
fn wait_for_open(server: &Server, open: usize) {
    while server.shared.open() != open {
        std::thread::yield_now();
    }
}

const NO_LIMITS: ClientLimits = ClientLimits {
    connections: 0,
    requests: 0,
    writes: 0,
    bytes: 0,
    exempt: Vec::new(),
};

const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\x05later";
const V6: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24\
    \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\0\x07\0\x50";

/// A header as long as may be, most of which is a TLV.
fn with_certificate() -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
    let len = (16 << 10) - 16;
    header.extend(u16::to_be_bytes(len));
    header.extend([203, 0, 113, 9, 127, 0, 0, 1, 0, 7, 0, 80, 0x20]);
    header.extend(u16::to_be_bytes(len - 15));
    header.resize(16 << 10, 0xca);
    header
}

#[test]
fn a_header_of_a_proxy_names_the_client_of_a_connection() {
    let server = start(NO_LIMITS);
    let get = b"GET /client HTTP/1.1\r\nHost: a\r\n\r\n";
    for (header, expected) in [
        (
            line("203.0.113.9").into_bytes(),
            "203.0.113.9 203.0.113.9:4711 false",
        ),
        (V6.to_vec(), "2001:db8::1 [2001:db8::1]:7 false"),
        (with_certificate(), "203.0.113.9 203.0.113.9:7 false"),
    ] {
        let mut client = server.connect();
        client.send([&header[..], get].concat());
        assert_eq!(client.response().text(), expected);
        client.send(get);
        assert_eq!(
            client.response().text(),
            expected,
            "the connection stays that client's"
        );
        // In pieces, at first byte by byte: each may be read by itself.
        let mut client = server.connect();
        let whole = [&header[..], get].concat();
        for piece in whole.chunks(1 + whole.len() / 500) {
            client.send(piece);
        }
        assert_eq!(client.response().text(), expected);
    }
    let mut client = server.connect();
    client.send([LOCAL, get].concat());
    assert!(client.response().text().starts_with("127.0.0.1 127.0.0.1:"));
}

#[test]
fn a_header_of_a_proxy_comes_before_tls() {
    let server = SecureServer::start(limits(NO_LIMITS));
    let mut client = server.connect_behind(&line("203.0.113.9"));
    assert_eq!(client.get("/client"), "203.0.113.9 203.0.113.9:4711 true");
}

#[test]
fn a_proxy_without_a_header_is_closed() {
    let server = Server::start(Limits {
        head_timeout: Duration::from_millis(50),
        ..limits(NO_LIMITS)
    });
    for (number, input) in (1..).zip([
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"PROXY TCP4 203.0.113.9 203.0.113.9 1 2\nGET",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0",
        // The rest does not come.
        b"PROXY TCP4 203.0.113.9",
        b"",
    ]) {
        let mut client = server.connect();
        client.send(input);
        assert!(client.is_at_end(), "{number}");
        assert_eq!(server.shared.stats().proxy_headers_missing, number);
    }
    // The end of the connection comes in the middle.
    let mut client = server.connect();
    client.send("PROXY");
    client.stream().shutdown(Shutdown::Write).unwrap();
    assert!(client.is_at_end());
    check_serves_another(&server);
}

#[test]
fn another_peer_cannot_name_a_client() {
    let server = Server::start(Limits {
        proxies: Proxies {
            protocol: vec!["192.0.2.1".parse().unwrap()],
            ..Proxies::default()
        },
        ..Limits::default()
    });
    let mut client = server.connect();
    client.send(line("203.0.113.9"));
    assert_eq!(client.response().status, 400);
    // Loopback is believed by its fields unless the owner says otherwise.
    let ask = |server: &Server, header: &str, field: &str| {
        let mut client = server.connect();
        client.send(format!(
            "{header}GET /client HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"
        ));
        let text = client.response().text();
        text.split_once(' ').unwrap().0.to_owned()
    };
    let named = "X-Forwarded-For: 1.2.3.4, 203.0.113.9";
    assert_eq!(ask(&server, "", named), "203.0.113.9");
    assert_eq!(ask(&server, "", "Forwarded: for=203.0.113.9"), "127.0.0.1");
    let server = start(NO_LIMITS);
    assert_eq!(ask(&server, &line("192.0.2.7"), named), "192.0.2.7");
    assert_eq!(ask(&server, &line("198.51.100.7"), named), "203.0.113.9");
}

#[test]
fn a_client_has_so_many_connections_and_others_have_theirs() {
    let server = start(ClientLimits {
        connections: 3,
        ..NO_LIMITS
    });
    let mut open: Vec<_> = (0..3).map(|_| connect(&server, "203.0.113.9")).collect();
    for client in &mut open {
        client.get("/ok");
        assert_eq!(client.response().status, 200);
    }
    let mut over = connect(&server, "203.0.113.9");
    let answer = over.response();
    assert_eq!(
        (answer.status, answer.field("retry-after")),
        (503, Some("1"))
    );
    assert!(over.is_at_end());
    assert_eq!(server.shared.stats().over_client_connections, 1);
    check_serves_another(&server);
    drop((open.pop(), over));
    wait_for_open(&server, 2);
    let mut next = connect(&server, "203.0.113.9");
    next.get("/ok");
    assert_eq!(next.response().status, 200);
}

#[test]
fn a_flood_of_slow_connections_leaves_room_for_others() {
    let server = Server::start(Limits {
        connections: 250,
        ..limits(ClientLimits {
            connections: 20,
            ..NO_LIMITS
        })
    });
    // Each begins a head that does not end. Those over the limit are closed.
    let flood: Vec<_> = (0..300)
        .map(|at| {
            // Of a network of 56 bits, which has four shares.
            let client = connect(&server, &format!("2001:db8:0:{:x}::1", at % 200));
            let _ = client.stream().write_all(b"GET / HTTP/1.1\r\n");
            client.stream().set_nonblocking(true).unwrap();
            client
        })
        .collect();
    while server.shared.stats().over_client_connections < 220 {
        std::thread::yield_now();
    }
    check_serves_another(&server);
    wait_for_open(&server, 80);
    drop(flood);
    wait_for_open(&server, 0);
}

#[test]
fn requests_over_the_rate_are_429() {
    let server = start(ClientLimits {
        requests: 1,
        ..NO_LIMITS
    });
    // A response that is repeated, one that is made, and requests of a pipeline.
    for (target, pipelined) in [("/kept", 1), ("/ok", 1), ("/kept", 3)] {
        let address = format!("203.0.113.{}{pipelined}", target.len());
        let mut client = connect(&server, &address);
        let mut good = 0;
        let last = loop {
            let get = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            client.send(get.repeat(pipelined));
            let answers: Vec<_> = (0..pipelined).map(|_| client.response()).collect();
            good += answers.iter().filter(|answer| answer.status == 200).count();
            if let Some(refused) = answers.into_iter().find(|answer| answer.status != 200) {
                break refused;
            }
        };
        assert!(good >= 4, "the burst: {good}");
        assert_eq!((last.status, last.field("retry-after")), (429, Some("1")));
        // The connection goes on, and another one of the client is no way around.
        let mut other = connect(&server, &address);
        let mut statuses = Vec::new();
        for _ in 0..4 {
            for client in [&mut client, &mut other] {
                client.get(target);
                statuses.push(client.response().status);
            }
        }
        assert!(statuses.contains(&429), "{statuses:?}");
        check_serves_another(&server);
    }
    assert!(server.shared.stats().over_client_requests >= 6);
}

#[test]
fn writes_over_the_rate_are_429_and_reads_are_not() {
    let server = start(ClientLimits {
        writes: 1,
        ..NO_LIMITS
    });
    let mut client = connect(&server, "203.0.113.9");
    let mut written = 0;
    loop {
        client.post("/echo", "body");
        let answer = client.response();
        if answer.status == 429 {
            assert_eq!(
                answer.field("connection"),
                Some("close"),
                "the body is not read"
            );
            break;
        }
        written += 1;
    }
    assert!(written >= 4, "{written}");
    let mut client = connect(&server, "203.0.113.9");
    loop {
        client.send("DELETE /thing HTTP/1.1\r\nHost: a\r\n\r\n");
        if client.response().status == 429 {
            break;
        }
    }
    client.get("/ok");
    assert_eq!(client.response().status, 200);
    assert!(server.shared.stats().over_client_writes >= 2);
    check_serves_another(&server);
}

#[test]
fn clients_behind_a_proxy_have_rates_of_their_own() {
    let server = start(ClientLimits {
        requests: 1,
        connections: 1,
        ..NO_LIMITS
    });
    // The proxy itself has no limits.
    let mut proxies = [(); 3].map(|()| connect(&server, "198.51.100.1"));
    let mut ask = |at: usize, client: &str| {
        let proxy = &mut proxies[at % 3];
        proxy.send(format!(
            "GET /kept HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n"
        ));
        proxy.response().status
    };
    let refused = (0..).find(|at| ask(*at, "203.0.113.9") == 429).unwrap();
    assert!(refused >= 4, "{refused}");
    assert_eq!(ask(0, "203.0.113.10"), 200);
    assert!(
        (0..100).all(|at| ask(at, "198.51.100.7") == 200),
        "another proxy"
    );
}

/// *Counterexample*: a proxy that names 127.0.0.1, as of its own machine, made clients without
/// limits of all that it names so.
#[test]
fn a_client_that_is_named_loopback_has_limits_and_the_peer_itself_has_none() {
    let server = start(ClientLimits {
        requests: 1,
        exempt: Network::loopback(),
        ..NO_LIMITS
    });
    let is_limited = |header: &[u8], field: &str| {
        let mut client = server.connect();
        client.send(header);
        (0..100).any(|_| {
            client.send(format!("GET /kept HTTP/1.1\r\nHost: a\r\n{field}\r\n"));
            client.response().status == 429
        })
    };
    assert!(is_limited(line("127.0.0.1").as_bytes(), ""));
    assert!(is_limited(line("::1").as_bytes(), ""));
    let proxy = line("198.51.100.1");
    assert!(is_limited(
        proxy.as_bytes(),
        "X-Forwarded-For: 127.0.0.2\r\n"
    ));
    assert!(!is_limited(LOCAL, ""));
    let server = Server::start(Limits {
        client: ClientLimits {
            requests: 1,
            exempt: Network::loopback(),
            ..NO_LIMITS
        },
        ..Limits::default()
    });
    let mut client = server.connect();
    for _ in 0..100 {
        client.get("/kept");
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn streams_of_http2_are_counted_as_requests() {
    let server = start(ClientLimits {
        requests: 1,
        writes: 1,
        ..NO_LIMITS
    });
    run(async {
        for (method, target, body) in [("GET", "/kept", ""), ("POST", "/echo", "x")] {
            let address = format!("203.0.113.{}", method.len());
            let client = Http2Client::behind(server.addr, &line(&address)).await;
            let mut good = 0;
            while client.ask(method, target, body.as_bytes()).await.0 == 200 {
                good += 1;
            }
            assert!(good >= 4, "{method} {good}");
        }
    });
    check_serves_another(&server);
}

#[test]
fn a_client_that_moves_too_much_pauses_and_gets_all() {
    let mut server = start(ClientLimits {
        bytes: 200_000,
        ..NO_LIMITS
    });
    let mut client = connect(&server, "203.0.113.9");
    // Of 200 KiB each: the burst has room for four.
    for _ in 0..5 {
        client.get("/medium");
        assert_eq!(client.response().body.len(), 200 << 10);
    }
    client.post("/echo", &"a".repeat(100 << 10));
    assert_eq!(client.response().body.len(), 100 << 10);
    assert!(server.shared.stats().client_pauses > 0);
    check_serves_another(&server);
    // What pauses does not hold up the end.
    client.get("/medium");
    assert_eq!(client.response().status, 200);
    server.shared.shutdown();
    server.join();
}
