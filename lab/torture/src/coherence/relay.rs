//! A relay between one node and the server, which can fall silent, or be cut.
//!
//! It replaces the network where packets cannot be lost ([`crate::coherence::packets`]). TCP
//! repeats lost packets, so to both ends a lossy network looks silent for a while, and the
//! connection does not end. The relay makes the same silence, on every machine and without rights;
//! but the kernel does not notice this silence.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The relay. Its threads end with the connections and with the value.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    shared: Arc<SharedRelay>,
}

#[derive(Debug, Default)]
struct SharedRelay {
    state: Mutex<RelayState>,
    heard: Condvar,
}

#[derive(Debug, Default)]
struct RelayState {
    silent: bool,
    closed: bool,
    /// Both ends of each connection; those that have ended are forgotten when it is cut.
    streams: Vec<TcpStream>,
}

impl Relay {
    /// A relay to a port of this machine.
    pub(crate) fn to(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::<SharedRelay>::default();
        let accepting = Arc::clone(&shared);
        thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    if accepting.state().closed {
                        break;
                    }
                    // After an error here there is no connection: the node sees its end.
                    let _ = stream.and_then(|stream| relay(&accepting, stream, port));
                }
            })?;
        Ok(Self { address, shared })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Nothing arrives any more, in both directions; bytes on their way arrive when the silence
    /// ends.
    pub(crate) fn silence(&self, silent: bool) {
        self.shared.state().silent = silent;
        self.shared.heard.notify_all();
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        for stream in self.shared.state().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.silence(false);
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl SharedRelay {
    fn state(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until_heard(&self) {
        let state = self.heard.wait_while(self.state(), |state| state.silent);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }
}

fn relay(shared: &Arc<SharedRelay>, node: TcpStream, port: u16) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    node.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let kept = [node.try_clone()?, server.try_clone()?];
    for (from, to) in [(node.try_clone()?, server.try_clone()?), (server, node)] {
        let shared = Arc::clone(shared);
        thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || {
                // One end has closed, so the other is closed too.
                let _ = copy(&shared, &from, &to);
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            })?;
    }
    let mut state = shared.state();
    // Who has ended has no peer any more.
    state.streams.retain(|stream| stream.peer_addr().is_ok());
    state.streams.extend(kept);
    Ok(())
}

fn copy(shared: &SharedRelay, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer)?;
        shared.wait_until_heard();
        if length == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..length])?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Duration;

    use super::Relay;

    #[test]
    fn a_silent_relay_loses_nothing_and_a_cut_one_ends() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::to(server.local_addr().unwrap().port()).unwrap();
        let mut node = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap();
        let (mut peer, _) = server.accept().unwrap();
        let mut byte = [0];
        node.write_all(b"a").unwrap();
        peer.read_exact(&mut byte).unwrap();
        relay.silence(true);
        node.write_all(b"b").unwrap();
        peer.set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!(peer.read(&mut byte).is_err(), "it was heard");
        relay.silence(false);
        peer.set_read_timeout(None).unwrap();
        peer.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"b");
        relay.cut();
        assert!(matches!(node.read(&mut byte), Ok(0) | Err(_)));
        assert!(matches!(peer.read(&mut byte), Ok(0) | Err(_)));
    }
}
