//! Connections of limited bandwidth. Times are compared only with what the limit implies, with a
//! margin.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use millrace_client::{Bandwidth, Plan, Stop, Trust};

use crate::stub::{HELLO, StubServer, counted, measure, once, serve};
use crate::tls_stub::{Authority, TlsStream, start};

fn rate(text: &str) -> Option<Bandwidth> {
    Some(text.parse().unwrap())
}

/// A server whose every response has a body of `size` bytes.
fn answers(size: usize) -> StubServer {
    StubServer::start(move |stream| serve(&stream, |_, _| Some(answer(size))))
}

fn answer(size: usize) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + size, b'x');
    answer
}

fn timed(url: String) -> Plan {
    counted(url, 2, 1).with(|plan| plan.length.stop = Stop::Duration(Duration::from_millis(1_200)))
}

/// Bits a second of one connection.
fn speed(run: &millrace_runs::Run) -> f64 {
    run.bytes as f64 * 8.0 / run.duration_s / run.connections.asked as f64
}

#[test]
fn answers_come_no_faster_than_the_line() {
    for (size, limit) in [(2_000, "400kbit"), (20_000, "1600kbit"), (100_000, "8Mbit")] {
        let server = answers(size);
        let bits = rate(limit).unwrap().bytes_per_second() * 8.0;
        let is_used = |_| {
            let run = measure(
                &timed(server.url("/")).with(|plan| plan.target.throttle_down = rate(limit)),
            );
            let found = speed(&run);
            // The last responses are awaited to their end and add to the total.
            let above = 1.05 + size as f64 * 8.0 / bits / run.duration_s;
            assert!(found < above * bits, "{limit}: {found}");
            // 320 kbit/s is far below the faster lines.
            let conforms = run.connections.conforming == Some(2) || limit == "400kbit";
            found > 0.5 * bits && conforms
        };
        assert!(once(is_used), "{limit}");
    }
}

#[test]
fn a_single_small_answer_takes_its_time() {
    let server = answers(5_000);
    let plan = counted(server.url("/"), 1, 4).with(|plan| plan.target.throttle_down = rate("100K"));
    let service = measure(&plan).latency_us.service.unwrap();
    // 50 ms each: never less.
    assert!(service.mean > 49_000.0, "{service:?}");
}

#[test]
fn a_slow_line_does_not_conform() {
    let server = answers(2_000);
    let run =
        measure(&timed(server.url("/")).with(|plan| plan.target.throttle_down = rate("300kbit")));
    assert_eq!(run.connections.conforming, Some(0), "{}", speed(&run));
    let run = measure(&counted(server.url("/"), 2, 10));
    assert_eq!(run.connections.conforming, None);
}

#[test]
fn a_server_with_errors_has_no_conforming_connections() {
    let server = StubServer::start(|stream| {
        serve(&stream, |number, _| {
            // The first of each connection, however many it has.
            Some(if number % 10 == 0 {
                b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec()
            } else {
                answer(5_000)
            })
        });
    });
    let run = measure(
        &counted(server.url("/"), 2, 60).with(|plan| plan.target.throttle_down = rate("8Mbit")),
    );
    assert_eq!(run.connections.conforming, Some(0), "{run:?}");
}

#[test]
fn the_window_of_tcp_throttles_the_server() {
    const SIZE: usize = 8 << 20;
    let (sender, receiver) = std::sync::mpsc::channel();
    let server = StubServer::start(move |mut stream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        let piece = vec![b'x'; 16 * 1024];
        let mut sent = 0;
        while sent < SIZE && stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        let _ = sender.send(sent);
    });
    let run = measure(&counted(server.url("/"), 1, 1).with(|plan| {
        plan.target.throttle_down = rate("50K");
        plan.request.timeout = Duration::from_millis(500);
    }));
    assert_eq!(run.errors.count("timeout"), 1, "{run:?}");
    // Bytes received at 50 kB/s, plus the content of the kernel's buffers on both sides.
    let sent = receiver.recv().unwrap();
    assert!(sent < SIZE, "{sent}");
}

#[test]
fn requests_leave_no_faster_than_the_line() {
    let server = StubServer::fixed(HELLO);
    let run = measure(&counted(server.url("/"), 1, 5).with(|plan| {
        plan.request.method = "POST".into();
        plan.request.body = vec![b'y'; 10_000];
        plan.target.throttle_up = rate("100K");
    }));
    let service = run.latency_us.service.unwrap();
    assert_eq!(run.accounting.good, 5);
    // 10,000 bytes and a head: 100 ms each, never less.
    assert!(service.mean > 99_000.0, "{service:?}");
}

#[test]
fn a_limited_connection_costs_no_spinning() {
    let server = answers(2_000);
    let run = measure(&timed(server.url("/")).with(|plan| {
        plan.target.throttle_down = rate("400kbit");
        plan.target.throttle_up = rate("400kbit");
    }));
    // CPU time: a busy machine does not add to it.
    assert!(run.client.busiest_thread < 0.5, "{:?}", run.client);
}

#[test]
fn tls_is_paced_as_well() {
    let authority = Authority::new();
    let server = start(authority.usual(), |mut stream: TlsStream| {
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|count| count > 0) {
            if stream.write_all(&answer(20_000)).is_err() {
                return;
            }
        }
    });
    let plan = timed(format!("https://{}/", server.address)).with(|plan| {
        plan.target.trust = Trust::File(authority.root());
        plan.target.throttle_down = rate("1600kbit");
        plan.target.throttle_up = rate("1600kbit");
    });
    assert!(once(|_| {
        let run = measure(&plan);
        let found = speed(&run);
        assert!(found < 1_900e3, "{found}");
        assert_eq!(run.errors.total(), 0, "{:?}", run.errors);
        found > 800e3
    }));
}

#[test]
fn a_peer_that_goes_away_while_the_line_is_busy_is_noticed() {
    let server = StubServer::start(|mut stream| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n");
        let _ = stream.write_all(&[b'x'; 5_000]);
    });
    let run = measure(
        &counted(server.url("/"), 2, 4).with(|plan| plan.target.throttle_down = rate("50K")),
    );
    assert_eq!(run.errors.count("closed_early"), 4, "{run:?}");
}
