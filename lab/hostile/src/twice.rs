//! Requests that come twice, and never again: whatever a server keeps of a request that it knows, it keeps of these, until
//! it has as much as it allows itself.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::thread;

use crate::line::Line;
use crate::site::TARGETS;

/// Connections at once, so many that a server that spreads them at random leaves none of a few workers out.
const LINES: usize = 16;
/// A head is up to this much longer than another, in bytes.
const PADDING: usize = 64;

/// Asks for the pages and files of the [site](crate::site) with requests of which no two have the same head, one for each of
/// `numbers`, and each twice over the same connection.
///
/// # Errors
/// If there is no connection, no answer, or another than 200.
pub fn twice(address: SocketAddr, numbers: &Range<usize>) -> io::Result<()> {
    thread::scope(|scope| {
        let share = |nth: usize| numbers.clone().skip(nth).step_by(LINES);
        let lines: Vec<_> = (0..LINES)
            .map(|nth| scope.spawn(move || over_one(address, share(nth))))
            .collect();
        lines.into_iter().try_for_each(|line| {
            line.join()
                .unwrap_or_else(|_| Err(io::Error::other("a client has panicked")))
        })
    })
}

fn over_one(address: SocketAddr, mut numbers: impl Iterator<Item = usize>) -> io::Result<()> {
    let mut line = Line::open(address)?;
    numbers.try_for_each(|number| {
        let target = TARGETS[number / LINES % TARGETS.len()];
        let padding = "x".repeat(number * 7 % PADDING);
        let field = format!("X-Number: {number}-{padding}\r\n");
        for _ in 0..2 {
            line.get_with(target, &field)?;
        }
        Ok(())
    })
}
