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
        Self::spawn("baseline", move |stop, visits| {
            one_connection(address, &pages, pause, stop, visits)
        })
    }

    /// Makes visits on one connection after the other.
    pub(crate) fn spawn(
        name: &str,
        visit: impl Fn(&AtomicBool, &mut Visits) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let asked = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let mut visits = Visits::default();
                while !asked.load(Ordering::Relaxed) {
                    if let Err(error) = visit(&asked, &mut visits) {
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

impl Drop for BaselineClient {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn one_connection(
    address: SocketAddr,
    pages: &[(&str, Vec<u8>)],
    pause: Duration,
    stop: &AtomicBool,
    visits: &mut Visits,
) -> io::Result<()> {
    let mut client = connect(address)?;
    for (target, expected) in pages.iter().cycle().take(ON_ONE) {
        let body = fetch(&mut client, target, &[])?;
        if body != *expected {
            return Err(io::Error::other(format!("{target}: another body")));
        }
        visits.good += 1;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // People read before they ask for the next page; nothing is waited for here.
        thread::sleep(pause);
    }
    Ok(())
}
