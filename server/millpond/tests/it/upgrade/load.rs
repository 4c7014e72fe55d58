//! Clients that ask without a pause, and count what fails.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use lab_testkit::http2::{Http2Connection, head_of};
use lab_testkit::{Client, tls};
use rustls::ClientConfig;

use crate::support::PATIENCE;

/// Clients on threads, until [`Load::stop`].
#[derive(Default)]
pub(super) struct Load {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<(usize, Vec<String>)>>,
}

impl Load {
    /// Asks for `/` on connections that are kept, and on a new one for each request; by HTTP/2; and
    /// sends forms, each on a new connection.
    pub(super) fn on(address: SocketAddr) -> Self {
        let mut load = Self::default();
        let connect = move || Client::open(address, PATIENCE);
        load.add(connect, |client| {
            let answer = client.get("/", &[])?;
            is_status(answer.status, 200)?;
            Ok(answer.field("connection") != Some("close"))
        });
        load.add(connect, |client| {
            is_status(client.get("/", &["Connection: close"])?.status, 200).map(|()| false)
        });
        let connect_http2 = move || {
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Http2Connection::open(stream)
        };
        load.add(connect_http2, |client| {
            let blocks = vec![head_of("http", "GET", "/"); 3];
            let answers = client.send(&blocks)?;
            answers
                .iter()
                .try_for_each(|answer| is_status(answer.status, 200))?;
            Ok(!client.is_ending())
        });
        // The last, so that its count is that of the rows.
        load.add(connect, |client| {
            let form = "title=load&body=x";
            is_status(client.post("/note", form)?.status, 303).map(|()| false)
        });
        load
    }

    /// Asks for `/` by TLS, each time on a new connection.
    pub(super) fn on_tls(address: SocketAddr, config: &Arc<ClientConfig>) -> Self {
        let mut load = Self::default();
        let config = Arc::clone(config);
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        load.add(
            || Ok(()),
            move |()| {
                let (_, answer) = tls::request(address, "localhost", &config, request)?;
                match answer.starts_with("HTTP/1.1 200 ") {
                    true => Ok(false),
                    false => Err(io::Error::other(answer)),
                }
            },
        );
        load
    }

    /// Adds a client. `ask` returns whether its connection may be used again. A request on a
    /// connection that was used before is sent once more on a new one, as the server may have ended
    /// the old one before it saw the request (RFC 9112 section 9.3.1, RFC 9113 section 8.7).
    fn add<C>(
        &mut self,
        connect: impl Fn() -> io::Result<C> + Send + 'static,
        ask: impl Fn(&mut C) -> io::Result<bool> + Send + 'static,
    ) {
        let (is_over, all) = (Arc::clone(&self.is_over), Arc::clone(&self.answered));
        let work = move || {
            let (mut kept, mut answered, mut failures) = (None, 0, Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let is_new = kept.is_none();
                let client = kept.take().map_or_else(&connect, Ok);
                let asked = client.and_then(|mut client| Ok((ask(&mut client)?, client)));
                match asked {
                    Ok((is_kept, client)) => {
                        answered += 1;
                        all.fetch_add(1, Ordering::Relaxed);
                        kept = is_kept.then_some(client);
                    }
                    Err(error) if is_new => failures.push(error.to_string()),
                    Err(_) => {}
                }
            }
            (answered, failures)
        };
        self.threads.push(thread::spawn(work));
    }

    /// Waits until `more` requests are answered.
    pub(super) fn wait_for(&self, more: usize) {
        let until = self.answered.load(Ordering::Relaxed) + more;
        while self.answered.load(Ordering::Relaxed) < until {
            assert!(!self.threads.iter().any(JoinHandle::is_finished));
            thread::yield_now();
        }
    }

    /// Ends the clients, of which no request has failed. Returns how many the last one has sent.
    pub(super) fn stop(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let clients = std::mem::take(&mut self.threads)
            .into_iter()
            .map(|thread| thread.join().unwrap());
        let mut last = 0;
        for (number, (answered, failures)) in clients.enumerate() {
            assert!(
                failures.is_empty(),
                "client {number}, {answered} answered: {failures:?}"
            );
            assert!(answered > 0, "client {number}");
            last = answered;
        }
        last
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn is_status(status: u16, expected: u16) -> io::Result<()> {
    match status == expected {
        true => Ok(()),
        false => Err(io::Error::other(format!("status {status}"))),
    }
}
