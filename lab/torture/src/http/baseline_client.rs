//! A well-behaved client beside the hostile ones. Its responses may be slower, but all of them must
//! be right.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::http::fetch::{connect, fetch};
use crate::http::site::TARGETS;
use base_clock::now;

/// Requests on one connection; then it opens another, so that accepting is seen to work too.
const ON_ONE: usize = 50;
/// Errors that are kept in words.
const KEPT: usize = 5;

/// The client, on a thread of its own, until `stop` or drop.
#[derive(Debug)]
pub struct BaselineClient {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Visits>>,
}

/// Results of the client's requests.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    /// Requests answered with 200 and the right body.
    pub good: u64,
    /// Everything else: no connection, another status or body, no answer in time.
    pub errors: u64,
    /// The first few errors, in words.
    pub first_errors: Vec<String>,
    /// From sending to the last byte, in microseconds, ascending; the time to connect is included
    /// for a new connection.
    pub latencies_us: Vec<u32>,
}

impl Visits {
    /// Several as one.
    #[must_use]
    pub fn sum(all: Vec<Self>) -> Self {
        let mut sum = Self::default();
        for visits in all {
            sum.good += visits.good;
            sum.errors += visits.errors;
            sum.first_errors.extend(visits.first_errors);
            sum.latencies_us.extend(visits.latencies_us);
        }
        sum.first_errors.truncate(KEPT);
        sum.latencies_us.sort_unstable();
        sum
    }

    /// The time, in microseconds, within which this share of the good answers came; 0 without good
    /// answers.
    #[must_use]
    pub fn latency_us(&self, share: f64) -> u32 {
        let last = self.latencies_us.len().saturating_sub(1);
        // A share of a length is within it.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let at = (share.clamp(0.0, 1.0) * last as f64).round() as usize;
        self.latencies_us.get(at).copied().unwrap_or(0)
    }
}

impl BaselineClient {
    /// Learns the pages while nothing disturbs the server, and then requests them again and again,
    /// one after the other, with `pause` between two.
    ///
    /// # Errors
    /// If a page cannot be fetched even without disturbance.
    pub fn start(address: SocketAddr, pause: Duration) -> io::Result<Self> {
        let mut client = connect(address)?;
        let pages =
            TARGETS.map(|target| fetch(&mut client, target, &[]).map(|body| (target, body)));
        let pages = pages.into_iter().collect::<io::Result<Vec<_>>>()?;
        drop(client);
        let stop = Arc::<AtomicBool>::default();
        let asked = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("baseline".to_owned())
            .spawn(move || visit(address, &pages, pause, &asked))?;
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

impl Drop for BaselineClient {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn visit(
    address: SocketAddr,
    pages: &[(&str, Vec<u8>)],
    pause: Duration,
    stop: &AtomicBool,
) -> Visits {
    let mut visits = Visits::default();
    while !stop.load(Ordering::Relaxed) {
        if let Err(error) = one_connection(address, pages, pause, stop, &mut visits) {
            visits.errors += 1;
            if visits.first_errors.len() < KEPT {
                visits.first_errors.push(error.to_string());
            }
        }
    }
    visits.latencies_us.sort_unstable();
    visits
}

fn one_connection(
    address: SocketAddr,
    pages: &[(&str, Vec<u8>)],
    pause: Duration,
    stop: &AtomicBool,
    visits: &mut Visits,
) -> io::Result<()> {
    let mut began = now();
    let mut client = connect(address)?;
    for (target, expected) in pages.iter().cycle().take(ON_ONE) {
        let body = fetch(&mut client, target, &[])?;
        if body != *expected {
            return Err(io::Error::other(format!("{target}: another body")));
        }
        visits.good += 1;
        let took = base_clock::since(began).as_micros();
        visits
            .latencies_us
            .push(u32::try_from(took).unwrap_or(u32::MAX));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // People read before they ask for the next page; nothing is waited for here.
        thread::sleep(pause);
        began = now();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Visits;

    #[test]
    fn shares_of_latencies() {
        let visits = Visits {
            latencies_us: (1..=101).collect(),
            ..Visits::default()
        };
        assert_eq!(visits.latency_us(0.5), 51);
        assert_eq!(visits.latency_us(0.99), 100);
        assert_eq!(visits.latency_us(1.0), 101);
        assert_eq!(Visits::default().latency_us(0.5), 0);
    }
}
