//! Counts the round trips between the server and PostgreSQL, by a relay between them.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use crate::Result;

/// The round trips so far on connections that have asked for an album; others are of the feed.
#[derive(Clone, Default)]
pub(super) struct RoundTrips(Arc<AtomicU64>);

/// Text that each statement of the measured pages has.
const MARK: &[u8] = b"from album";

impl RoundTrips {
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The port of a relay to this port. Its threads end with its connections.
    pub(super) fn relay(&self, to: u16) -> Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?;
        let count = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) {
                    count.connect(stream, server);
                }
            }
        });
        Ok(port.port())
    }

    /// A round trip begins with what the client sends after the server has said something.
    fn connect(&self, client: TcpStream, server: TcpStream) {
        let has_answered = Arc::new(AtomicBool::new(true));
        let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else {
            return;
        };
        let (count, answered) = (Arc::clone(&self.0), Arc::clone(&has_answered));
        let mut is_measured = false;
        thread::spawn(move || {
            pump(from, to, |bytes| {
                is_measured |= bytes.windows(MARK.len()).any(|window| window == MARK);
                if answered.swap(false, Ordering::Relaxed) && is_measured {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        thread::spawn(move || {
            pump(server, client, |_| {
                has_answered.store(true, Ordering::Relaxed)
            });
        });
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut seen: impl FnMut(&[u8])) {
    let _ = to.set_nodelay(true);
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        seen(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The other side may be gone already.
    let _ = to.shutdown(Shutdown::Both);
}
