//! A well-behaved client over TLS and HTTP/2 beside the attackers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lab_testkit::http2::Frames;

use super::target::SecureTarget;
use crate::http::Visits;

/// Requests on one connection; then it opens another, so that handshakes are seen to work too.
const ON_ONE: u32 = 50;
/// Errors that are kept in words.
const KEPT: usize = 5;

/// The client, on a thread of its own, until `stop` or drop.
#[derive(Debug)]
pub struct SecureVisitor {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Visits>>,
}

impl SecureVisitor {
    /// Requests `path` again and again, one after the other, with `pause` between two.
    ///
    /// # Errors
    /// If it cannot be fetched even without disturbance, or there is no thread.
    pub fn start(target: SecureTarget, path: &'static str, pause: Duration) -> io::Result<Self> {
        let mut first = Frames::open(target.connect(b"h2")?, &[])?;
        first.get(1, path)?;
        let expected = first.response(1)?;
        let stop = Arc::<AtomicBool>::default();
        let asked = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("visitor".to_owned())
            .spawn(move || {
                let mut visits = Visits::default();
                while !asked.load(Ordering::Relaxed) {
                    let one = visit(&target, path, &expected, pause, &asked, &mut visits);
                    if let Err(error) = one {
                        visits.errors += 1;
                        if visits.first_errors.len() < KEPT {
                            visits.first_errors.push(error.to_string());
                        }
                    }
                }
                visits
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Ends it.
    #[must_use]
    pub fn stop(mut self) -> Visits {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for SecureVisitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
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
