//! A well-behaved client over TLS and HTTP/2 beside the attackers.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lab_testkit::http2::Frames;

use super::target::SecureTarget;
use crate::http::{BaselineClient, Visits};

/// Requests on one connection; then it opens another, so that handshakes are seen to work too.
const ON_ONE: u32 = 50;
/// Starts a client that requests `path` again and again, one after the other, with `pause` between
/// two, on a thread of its own.
///
/// # Errors
/// If it cannot be fetched even without disturbance, or there is no thread.
pub fn secure_visitor(
    target: SecureTarget,
    path: &'static str,
    pause: Duration,
) -> io::Result<BaselineClient> {
    let mut first = Frames::open(target.connect(b"h2")?, &[])?;
    first.get(1, path)?;
    let expected = first.response(1)?;
    BaselineClient::spawn("visitor", move |stop, visits| {
        visit(&target, path, &expected, pause, stop, visits)
    })
}

/// The requests of one connection.
fn visit(
    target: &SecureTarget,
    path: &str,
    expected: &(u16, Vec<u8>),
    pause: Duration,
    stop: &AtomicBool,
    visits: &mut Visits,
) -> io::Result<()> {
    let mut frames = Frames::open(target.connect(b"h2")?, &[])?;
    for number in 0..ON_ONE {
        let stream = 1 + 2 * number;
        frames.get(stream, path)?;
        if frames.response(stream)? != *expected {
            return Err(io::Error::other(format!("{path}: another response")));
        }
        visits.good += 1;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(pause);
    }
    Ok(())
}
