//! Requests that are sent twice, and never again: a server that keeps data of repeated requests
//! keeps data of these until its limit is reached.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::thread;

use crate::http::fetch::{connect, fetch};
use crate::http::site::TARGETS;

/// Connections at once: with this number, a server that spreads connections at random leaves out
/// none of a few workers.
const CONNECTIONS: usize = 16;
/// A head is up to this much longer than another, in bytes.
const PADDING: usize = 64;

/// Requests the pages and files of the [site](crate::http::site), each with a head of its own, one
/// for each of `numbers`, and each twice over the same connection.
///
/// # Errors
/// If there is no connection, no answer, or another status than 200.
pub fn repeat_flood(address: SocketAddr, numbers: &Range<usize>) -> io::Result<()> {
    thread::scope(|scope| {
        let share = |nth: usize| numbers.clone().skip(nth).step_by(CONNECTIONS);
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|nth| scope.spawn(move || over_one(address, share(nth))))
            .collect();
        clients.into_iter().try_for_each(|client| {
            client
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a client has panicked")))
        })
    })
}

fn over_one(address: SocketAddr, mut numbers: impl Iterator<Item = usize>) -> io::Result<()> {
    let mut client = connect(address)?;
    numbers.try_for_each(|number| {
        let target = TARGETS[number / CONNECTIONS % TARGETS.len()];
        let padding = "x".repeat(number * 7 % PADDING);
        let field = format!("X-Number: {number}-{padding}");
        for _ in 0..2 {
            fetch(&mut client, target, &[&field])?;
        }
        Ok(())
    })
}
