//! Every limit of `[limits]`, set small and exceeded on a real socket; afterwards the server still
//! serves.

use std::iter;

use lab_testkit::Client;
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, Server, new_site, serve, site_with};

/// A server with one limit set.
struct Limited {
    server: Server,
    _site: TempDir,
}

impl Limited {
    fn to(limit: &str) -> Self {
        let site = site_with(&format!("[limits]\n{limit}\n"));
        Self {
            server: serve(site.path()),
            _site: site,
        }
    }

    fn connect(&self) -> Connection {
        Connection::open(self.server.address())
    }

    /// Sends `bytes`: the answer has `status`, nothing follows it, and others are served.
    fn refuses(&self, bytes: &str, status: u16) {
        let mut connection = self.connect();
        connection.send(bytes);
        let answer = connection.receive();
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.field("connection"), Some("close"), "{answer:?}");
        assert!(connection.is_closed());
        self.serves();
    }

    /// Sends `bytes`: the answer has `status`, and the connection serves on.
    fn takes(&self, bytes: &str, status: u16) {
        let mut connection = self.connect();
        connection.send(bytes);
        assert_eq!(connection.receive().status, status);
        assert_eq!(connection.get("/").status, 200);
    }

    fn serves(&self) {
        assert_eq!(self.server.get("/").status, 200);
    }
}

/// Fills a text up to `length` bytes, so that the boundary is met to the byte.
fn filled(start: &str, length: usize, end: &str) -> String {
    let missing = length - start.len() - end.len();
    let filling: String = iter::repeat_n('x', missing).collect();
    format!("{start}{filling}{end}")
}

fn post(framing: &str, body: &str) -> String {
    format!(
        "POST /note HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n{framing}\r\n\r\n{body}"
    )
}

fn measured(body: &str) -> String {
    post(&format!("Content-Length: {}", body.len()), body)
}

fn chunked(body: &str) -> String {
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    post("Transfer-Encoding: chunked", &chunks)
}

#[test]
fn target() {
    let limited = Limited::to("target = 64");
    let request = |length| {
        format!(
            "GET {} HTTP/1.1\r\nHost: a\r\n\r\n",
            filled("/?", length, "")
        )
    };
    limited.takes(&request(64), 200);
    limited.refuses(&request(65), 414);
    limited.refuses(&filled("GET /?", 4000, ""), 414);
}

#[test]
fn head() {
    let limited = Limited::to("target = 64\nhead = 1024");
    let request = |length| filled("GET / HTTP/1.1\r\nHost: a\r\nX: ", length, "\r\n\r\n");
    limited.takes(&request(1024), 200);
    limited.refuses(&request(1025), 431);
    limited.refuses(&filled("GET / HTTP/1.1\r\nHost: a\r\nX: ", 4000, ""), 431);
}

#[test]
fn body() {
    let limited = Limited::to("body = 64");
    let form = |length| filled("title=T&body=", length, "");
    limited.takes(&measured(&form(64)), 303);
    limited.refuses(&measured(&form(65)), 413);
    limited.takes(&chunked(&form(64)), 303);
    limited.refuses(&chunked(&form(65)), 413);
    // Refused for what it announces, and for what it is.
    limited.refuses(&post("Content-Length: 1000000", ""), 413);
    limited.refuses(
        &post("Transfer-Encoding: chunked", &filled("41\r\n", 69, "")),
        413,
    );
    // What was refused has written nothing.
    let front = limited.server.get("/").text();
    assert_eq!(
        front.matches("/notes/").count(),
        front_of_a_new_site() + 2,
        "{front}"
    );
}

fn front_of_a_new_site() -> usize {
    let site = new_site();
    let front = serve(site.path()).get("/").text();
    front.matches("/notes/").count()
}

#[test]
fn head_timeout() {
    let limited = Limited::to("head_timeout = \"100ms\"");
    limited.refuses("GET / HTTP/1.1\r\nHo", 408);
    limited.refuses("G", 408);
}

#[test]
fn progress_timeout() {
    let limited = Limited::to("progress_timeout = \"100ms\"");
    limited.refuses(&post("Content-Length: 1000", "title=T"), 408);
    limited.refuses(&post("Transfer-Encoding: chunked", "7\r\ntitle=T"), 408);
}

#[test]
fn idle_timeout() {
    let limited = Limited::to("idle_timeout = \"1s\"");
    let mut silent = limited.connect();
    assert!(silent.is_closed());
    // A client that is slower than the limit finds its connection closed, and connects again.
    let mut served = loop {
        let mut client = Client::open(limited.server.address(), PATIENCE).unwrap();
        if let Ok(answer) = client.get("/", &[]) {
            assert_eq!(answer.status, 200);
            break client;
        }
    };
    assert!(served.is_closed());
}

#[test]
fn connections() {
    let limited = Limited::to("connections = 2");
    let (mut first, mut second) = (limited.connect(), limited.connect());
    for connection in [&mut first, &mut second] {
        assert_eq!(connection.get("/").status, 200);
    }
    let mut third = limited.connect();
    let refused = third.get("/");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.field("retry-after").is_some(), "{refused:?}");
    assert!(third.is_closed());
    assert_eq!(first.get("/").status, 200);
    assert_eq!(second.get("/").status, 200);
    drop(first);
    // Until the server has seen that it is gone, it refuses.
    while limited.server.get("/").status != 200 {}
    assert_eq!(second.get("/").status, 200);
}
