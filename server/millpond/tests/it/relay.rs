//! A way from a client to servers that are started after it, or that fall silent.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// Passes each connection on to the next of its servers in turn. While there are no servers, all
/// connections are open and nothing is passed on.
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    servers: Mutex<Vec<SocketAddr>>,
    are_there: Condvar,
    connections: AtomicUsize,
    is_over: AtomicBool,
}

impl Relay {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let passing = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                let Some(server) = passing.next() else {
                    break;
                };
                // The client or the server may leave at any time.
                let _ = client.and_then(|client| join(client, server, &passing));
            }
        });
        Self {
            address,
            shared,
            thread: Some(thread),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// From now on these servers answer.
    pub(crate) fn lead_to(&self, servers: Vec<SocketAddr>) {
        *self.shared.servers.lock().unwrap() = servers;
        self.shared.are_there.notify_all();
    }

    /// How many connections were passed on.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// The servers, once there are some; `None` at the end.
    fn wait(&self) -> Option<MutexGuard<'_, Vec<SocketAddr>>> {
        let servers = self.servers.lock().unwrap();
        let is_waiting =
            |servers: &mut Vec<_>| servers.is_empty() && !self.is_over.load(Ordering::SeqCst);
        let servers = self.are_there.wait_while(servers, is_waiting).unwrap();
        (!self.is_over.load(Ordering::SeqCst)).then_some(servers)
    }

    /// Returns the address to which the next connection leads; `None` at the end.
    fn next(&self) -> Option<SocketAddr> {
        let servers = self.wait()?;
        let number = self.connections.fetch_add(1, Ordering::SeqCst);
        servers.get(number % servers.len()).copied()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        {
            let _servers = self.shared.servers.lock().unwrap();
            self.shared.is_over.store(true, Ordering::SeqCst);
        }
        self.shared.are_there.notify_all();
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies in both directions on threads that end with the connection.
fn join(client: TcpStream, server: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let _ = copy(&from, &to, &shared);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut bytes = [0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes)?;
        if count == 0 || shared.wait().is_none() {
            return Ok(());
        }
        to.write_all(&bytes[..count])?;
    }
}
