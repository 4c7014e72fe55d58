//! Idle connections: open without requests.
//!
//! Each sends one request, so that the server does all its work for a new client, and is then left
//! idle. The connections are closed by a reset: ten thousand connections that are closed cleanly
//! would hold their source ports for a minute.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Stream};

use millrace_client::limits;
use millrace_client::response::Parser;
use millrace_client::sink::Discard;

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Open connections, which are reset when dropped. Of a connection over TLS only the socket is
/// left: the server keeps its side, and nothing more is said.
#[derive(Debug)]
pub(super) struct Idle(Vec<TcpStream>);

impl Idle {
    /// Opens `count` connections to the server at `port` and requests `path` on each, over TLS if
    /// there is a configuration for it. `beside` is the number of other connections of this
    /// process. `None` if `stop` was set before all were open.
    pub(super) fn open(
        port: u16,
        path: &str,
        tls: Option<&Arc<ClientConfig>>,
        count: usize,
        beside: usize,
        stop: &AtomicBool,
    ) -> Result<Option<Self>, String> {
        let enough =
            limits::descriptors(count + beside).and_then(|()| limits::source_ports(count + beside));
        enough.map_err(|error| error.to_string())?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        let mut open = Vec::with_capacity(count);
        while open.len() < count {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let one = open_one(port, tls, request.as_bytes()).map_err(|error| {
                let number = open.len() + 1;
                format!("idle connection {number} of {count}: {error}")
            })?;
            open.push(one);
        }
        Ok(Some(Self(open)))
    }

    /// Number of connections that the server has closed.
    pub(super) fn closed(&self) -> usize {
        let is_closed = |stream: &&TcpStream| {
            let waits = stream
                .set_nonblocking(true)
                .and_then(|()| stream.peek(&mut [0]));
            !matches!(waits, Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        self.0.iter().filter(is_closed).count()
    }
}

/// Opens a connection and waits for a good response to one request.
fn open_one(
    port: u16,
    tls: Option<&Arc<ClientConfig>>,
    request: &[u8],
) -> Result<TcpStream, String> {
    let words = |error: std::io::Error| error.to_string();
    let mut socket = TcpStream::connect(("127.0.0.1", port)).map_err(words)?;
    set_socket_linger(&socket, Some(Duration::ZERO)).map_err(|error| words(error.into()))?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(words)?;
    match tls {
        None => ask(&mut socket, request)?,
        Some(config) => {
            let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
            let mut session = ClientConnection::new(Arc::clone(config), name)
                .map_err(|error| error.to_string())?;
            ask(&mut Stream::new(&mut session, &mut socket), request)?;
        }
    }
    Ok(socket)
}

/// Sends a request and waits for a good response.
fn ask(stream: &mut (impl Read + Write), request: &[u8]) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    stream.write_all(request).map_err(words)?;
    let mut parser = Parser::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut chunk).map_err(words)?;
        if read == 0 {
            return Err("it is closed before its answer is complete".to_owned());
        }
        let (_, answer) = parser
            .feed(&chunk[..read], false, &mut Discard)
            .map_err(|malformed| malformed.0.to_owned())?;
        match answer {
            None => {}
            Some(answer) if (200..400).contains(&answer.status) && answer.reusable => {
                return Ok(());
            }
            Some(answer) if !answer.reusable => {
                return Err("the server does not keep it open".to_owned());
            }
            Some(answer) => return Err(format!("it is answered with {}", answer.status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that answers one request on each of `count` connections, and returns them.
    fn server(answer: &'static str, count: usize) -> (u16, thread::JoinHandle<Vec<TcpStream>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            let one = |_| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let read = stream.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /a HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
                stream
            };
            (0..count).map(one).collect()
        };
        (port, thread::spawn(serve))
    }

    #[test]
    fn idle_connections_are_open_until_the_server_closes_them() {
        let (port, serving) = server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 5);
        let stop = AtomicBool::new(false);
        let idle = Idle::open(port, "/a", None, 5, 1, &stop).unwrap().unwrap();
        let mut streams = serving.join().unwrap();
        assert_eq!(idle.closed(), 0);
        drop(streams.split_off(3));
        assert_eq!(idle.closed(), 2);
        drop(idle);
        let end = streams[0].read(&mut [0; 1]).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_connection_that_does_not_stay_open_is_an_error() {
        let stop = AtomicBool::new(false);
        for (answer, sentence) in [
            (
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                "does not keep",
            ),
            (
                "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
                "answered with 503",
            ),
        ] {
            let (port, serving) = server(answer, 1);
            let error = Idle::open(port, "/a", None, 1, 1, &stop).unwrap_err();
            assert!(
                error.contains("1 of 1") && error.contains(sentence),
                "{error}"
            );
            serving.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        assert!(Idle::open(1, "/a", None, 1, 1, &stop).unwrap().is_none());
    }
}
