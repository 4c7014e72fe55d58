//! Bodies that a handler reads while they arrive.

use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::mpsc;

use lab_testkit::PATIENCE;
use millpond::{BodyReader, Failure, Request, Response, Routes, blocking, quick, reading};

use crate::support::{Gate, connect, get, serve, settings};

const MIB: usize = 1 << 20;

fn sum(mut body: BodyReader) -> std::io::Result<String> {
    let (mut len, mut sum) = (0_u64, 0_u64);
    loop {
        let piece = body.fill_buf()?;
        if piece.is_empty() {
            return Ok(format!("{len} {sum}"));
        }
        len += piece.len() as u64;
        sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let taken = piece.len();
        body.consume(taken);
    }
}

fn post(path: &str, framing: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n")
}

#[test]
fn a_long_body_is_read_in_bounded_memory_and_a_short_one_too() {
    let mut routes = Routes::new();
    routes.post(
        "/sum/{factor}",
        reading(
            64 * MIB as u64,
            |_: &Request, body: BodyReader, factor: u8| {
                let sum = sum(body).map_err(|error| Failure::new(400, error.to_string()))?;
                Ok::<_, Failure>(format!("{sum} {factor}"))
            },
        ),
    );
    let server = serve(routes);
    let mut client = connect(&server);
    let body: Vec<u8> = (0..20 * MIB).map(|at| (at % 251) as u8).collect();
    for len in [1, 100, 16 << 10, (16 << 10) + 1, MIB, 20 * MIB] {
        let body = &body[..len];
        let total: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        client.send(post("/sum/3", &format!("Content-Length: {len}")));
        client.send(body);
        assert_eq!(client.receive().text(), format!("{len} {total} 3"));
        client.send(post("/sum/4", "Transfer-Encoding: chunked"));
        client.send(format!("{len:x}\r\n"));
        client.send(body);
        client.send("\r\n0\r\n\r\n");
        assert_eq!(client.receive().text(), format!("{len} {total} 4"));
    }
    client.send(post("/sum/5", "Content-Length: 0"));
    assert_eq!(client.receive().text(), "0 0 5");
    let mut client = connect(&server);
    client.send(post("/sum/256", "Content-Length: 9"));
    assert_eq!(client.receive().status, 404);
    let mut client = connect(&server);
    client.send(post("/sum/1", &format!("Content-Length: {}", 64 * MIB + 1)));
    assert_eq!(client.receive().status, 413);
}

#[test]
fn a_handler_that_answers_early_ends_the_body() {
    let mut routes = Routes::new();
    routes.post(
        "/first",
        reading(u64::MAX, |_: &Request, mut body: BodyReader| {
            let mut first = [0; 4];
            match body.read_exact(&mut first) {
                Ok(()) => Response::text(first.to_vec()).with_status(400),
                Err(_) => Response::empty(204),
            }
        }),
    );
    let server = serve(routes);
    let mut client = connect(&server);
    client.send(post("/first", "Transfer-Encoding: chunked"));
    let mut stream = client.stream().try_clone().unwrap();
    // Without end: only the answer ends it.
    let sender = std::thread::spawn(move || {
        let piece = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
        while stream.write_all(&piece).is_ok() {}
    });
    let response = client.receive();
    assert_eq!((response.status, &*response.text()), (400, "xxxx"));
    drop(client);
    sender.join().unwrap();
}

#[test]
fn the_reader_learns_that_its_client_went() {
    let (told, tells) = mpsc::channel();
    let mut routes = Routes::new();
    routes.post(
        "/",
        reading(u64::MAX, move |_: &Request, mut body: BodyReader| {
            let end = body.read_to_end(&mut Vec::new());
            told.send(end.map_err(|error| error.kind())).unwrap();
        }),
    );
    let server = serve(routes);
    let mut client = connect(&server);
    client.send(post("/", "Content-Length: 1000000"));
    client.send(vec![b'x'; 100_000]);
    drop(client);
    let end = tells.recv_timeout(PATIENCE).unwrap();
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionAborted));
}

/// Half of the threads may wait for clients; the others are there for those who do not send slowly.
#[test]
fn slow_senders_do_not_take_all_threads() {
    let mut routes = Routes::new();
    routes
        .post(
            "/read",
            reading(u64::MAX, |_: &Request, body: BodyReader| {
                sum(body).unwrap_or_default()
            }),
        )
        .get("/block", blocking(|_: &Request| "well"))
        .get("/quick", quick(|_: &Request| "quick"));
    let server = settings().blocking_threads(4).serve(routes).unwrap();
    let mut slow: Vec<_> = (0..10).map(|_| connect(&server)).collect();
    for client in &mut slow {
        client.send(post("/read", "Content-Length: 100000"));
        client.send(vec![0; 50_000]);
    }
    // Eight of them are refused; the two that hold threads are not answered.
    let mut left = Vec::new();
    let mut refused = 0;
    for client in slow {
        client
            .stream()
            .set_read_timeout(Some(std::time::Duration::from_secs(1)))
            .unwrap();
        let mut client = client;
        let mut first = [0; 12];
        match client.stream().peek(&mut first) {
            Ok(12) => {
                assert_eq!(client.receive().status, 503);
                refused += 1;
            }
            _ => left.push(client),
        }
    }
    assert_eq!((refused, left.len()), (8, 2));
    assert_eq!(get(&server, "/block").text(), "well");
    // A short body, and one that is slow to begin, hold no thread.
    let mut client = connect(&server);
    client.send(post("/read", "Content-Length: 2"));
    client.send("\x01");
    assert_eq!(get(&server, "/quick").text(), "quick");
    client.send("\x01");
    assert_eq!(client.receive().text(), "2 2");
    for mut client in left {
        client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
        client.send(vec![0; 50_000]);
        assert_eq!(client.receive().text(), "100000 0");
    }
}

#[test]
fn a_reader_that_waits_holds_up_the_client_and_no_other() {
    let gate = Gate::default();
    let mut routes = Routes::new();
    let passed = gate.clone();
    routes
        .post(
            "/gated",
            reading(u64::MAX, move |_: &Request, body: BodyReader| {
                passed.pass();
                sum(body).unwrap_or_default()
            }),
        )
        .get("/quick", quick(|_: &Request| "quick"));
    let server = serve(routes);
    let mut client = connect(&server);
    client.send(post("/gated", &format!("Content-Length: {}", 8 * MIB)));
    let mut stream = client.stream().try_clone().unwrap();
    let sender = std::thread::spawn(move || stream.write_all(&vec![1; 8 * MIB]).unwrap());
    gate.wait_for(1);
    assert_eq!(get(&server, "/quick").text(), "quick");
    gate.open(1);
    assert_eq!(client.receive().text(), format!("{0} {0}", 8 * MIB));
    sender.join().unwrap();
    assert!(server.stats().bytes_in >= 8 * MIB as u64);
}

#[test]
fn one_handler_takes_json_and_forms() {
    let mut routes = Routes::new();
    routes.post(
        "/orders",
        quick(|request: &Request| {
            let order = request.body_values()?;
            let (article, count) = (order.get::<String>("article")?, order.get::<u8>("count")?);
            Ok::<_, Failure>(format!("{count} of {article}"))
        }),
    );
    let server = serve(routes);
    let mut client = connect(&server);
    let mut ask = |media_type: &str, body: &str| {
        let framing = format!(
            "Content-Type: {media_type}\r\nContent-Length: {}",
            body.len()
        );
        client.send(post("/orders", &framing));
        client.send(body);
        let answer = client.receive();
        (answer.status, answer.text())
    };
    let form = "application/x-www-form-urlencoded";
    for (media_type, body, status, text) in [
        (form, "article=tea&count=2", 200, "2 of tea"),
        (
            "application/json",
            r#"{"article": "tea", "count": 2}"#,
            200,
            "2 of tea",
        ),
        (
            "Application/LD+JSON; charset=utf-8",
            r#"{"count": "2", "article": "tea"}"#,
            200,
            "2 of tea",
        ),
        (
            "application/json",
            r#"{"article": "tea", "count": 256}"#,
            400,
            "count: \"256\" is not a whole number from 0 to 255",
        ),
        (
            form,
            "article=tea",
            400,
            "count is missing (a whole number from 0 to 255)",
        ),
        (
            "application/json",
            "article=tea",
            400,
            "the body must be one JSON object",
        ),
        (
            "text/plain",
            "article=tea",
            415,
            "the body must be application/json or application/x-www-form-urlencoded",
        ),
        (
            "",
            "article=tea",
            415,
            "the body must be application/json or application/x-www-form-urlencoded",
        ),
    ] {
        let (found, said) = ask(media_type, body);
        assert_eq!((found, said.trim()), (status, text), "{media_type} {body}");
    }
    client.send(post("/orders", "Content-Type: a/b\r\nContent-Length: 1"));
    client.send("x");
    let taken = "application/json, application/x-www-form-urlencoded";
    assert_eq!(client.receive().field("accept"), Some(taken));
}

#[test]
fn a_line_without_an_end_is_refused_before_the_rest_of_it_has_arrived() {
    let mut routes = Routes::new();
    routes.post(
        "/lines",
        reading(1 << 30, |_: &Request, body: BodyReader| {
            let mut count = 0;
            for line in body.lines_up_to(1000) {
                count += usize::from(line?.len() <= 1000);
            }
            Ok::<_, Failure>(format!("{count} lines"))
        }),
    );
    let server = serve(routes);
    let mut client = connect(&server);
    let lines = format!("{}\r\n", "x".repeat(1000)).repeat(100);
    client.send(post("/lines", &format!("Content-Length: {}", lines.len())));
    client.send(lines);
    assert_eq!(client.receive().text(), "100 lines");
    // The line has no end, nor has the body: only the answer ends it.
    client.send(post("/lines", "Transfer-Encoding: chunked"));
    client.send("2\r\na\n\r\n");
    let mut stream = client.stream().try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let piece = [&b"10000\r\n"[..], &[b'x'; 0x10000], b"\r\n"].concat();
        while stream.write_all(&piece).is_ok() {}
    });
    let answer = client.receive();
    assert_eq!(answer.status, 400);
    assert_eq!(answer.text().trim(), "line 2 is longer than 1000 bytes");
    drop(client);
    sender.join().unwrap();
}
