//! The access log between the connections and the site.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use base_clock::Boottime;
use millpond_access_log::{AccessLog, LogFormat, LogLine};
use millpond_http::{BodyHandling, Reply, Request, RequestCounts, Service};
use millpond_site::{Config, DEV_ENTRY};
use serde_json::{Value, json};

/// How long a reopening waits for the old file's disk.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Bits of those that want the requests: the log, and the owner who looks at the last ones.
const LOG: u8 = 1;
const OWNER: u8 = 2;
/// Requests that are held for the owner, per worker.
const MOST_HELD: usize = 1_000;
/// Bytes that are held of a target.
const LONGEST_TARGET: usize = 512;

/// The last requests of a worker, each with the label of its answer.
type HeldRequests = Mutex<VecDeque<(u32, Value)>>;

/// The access log that all workers write to, if there is one, and the last requests. The log can be
/// exchanged while they write.
#[derive(Default)]
pub(crate) struct AccessSlot {
    log: ArcSwapOption<AccessLog>,
    /// Bits of those that want the requests. Each hit reads it. The bit of the log is set before
    /// the log exists, and cleared after.
    wants: AtomicU8,
    /// True if only networks of clients are written down (`log.cut_addresses`).
    cuts_addresses: AtomicBool,
    /// The last requests of each worker.
    held: Mutex<Vec<Arc<HeldRequests>>>,
}

impl AccessSlot {
    /// Opens the log of the settings, if they want one, and uses it from now on. The lines of the
    /// old log are written first.
    ///
    /// # Errors
    /// The path and the system's error; the old log stays in use.
    pub(crate) fn open(&self, config: &Config) -> Result<(), (PathBuf, io::Error)> {
        let format = match config.log_format {
            "json" => LogFormat::Json,
            _ => LogFormat::Combined,
        };
        let log = match &config.access_log {
            Some(path) => {
                let log = AccessLog::open(path, format).map_err(|error| (path.clone(), error))?;
                Some(Arc::new(log))
            }
            None => None,
        };
        let opens = log.is_some();
        self.set_wants(LOG, true);
        let old = self.log.swap(log);
        self.set_wants(LOG, opens);
        if let Some(old) = old {
            // Here and not where the last reference goes, which could be on a worker.
            old.stop();
        }
        Ok(())
    }

    /// Reopens the path after the file was renamed, and waits until the new file is in use.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let Some(log) = self.log.load_full() else {
            return Ok(());
        };
        log.reopen()?;
        // A disk that does not take its bytes in time takes them later, and the new file with them.
        let _ = log.flush(FLUSH_TIMEOUT);
        Ok(())
    }

    /// Writes out what is there and ends; gives the number of lines that were lost.
    pub(crate) fn close(&self) -> u64 {
        self.log.swap(None).map_or(0, |log| {
            log.stop();
            log.dropped()
        })
    }

    fn set_wants(&self, who: u8, wants: bool) {
        match wants {
            true => self.wants.fetch_or(who, Ordering::Relaxed),
            false => self.wants.fetch_and(!who, Ordering::Relaxed),
        };
    }

    /// Cuts the addresses of clients from now on, or no longer.
    pub(crate) fn cut_addresses(&self, cuts: bool) {
        self.cuts_addresses.store(cuts, Ordering::Relaxed);
    }

    /// Holds the last requests from now on, or no longer.
    pub(crate) fn watch(&self, is_watched: bool) {
        self.set_wants(OWNER, is_watched);
        // A worker may have held one when the owner had gone.
        drop(self.take_held());
    }

    /// Takes the requests since the last call, of each worker the last ones in their order.
    pub(crate) fn take_held(&self) -> Vec<(u32, Value)> {
        let workers = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let take = |held: &Arc<HeldRequests>| {
            std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner))
        };
        workers.iter().flat_map(take).collect()
    }

    /// Returns the address of a client as it may be written down: whole, or its /24 or /48.
    fn client(&self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            address if !self.cuts_addresses.load(Ordering::Relaxed) => address,
            IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits() >> 8 << 8).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
        }
    }
}

/// A service whose answers are logged.
pub(crate) struct Logged<S> {
    service: S,
    log: Arc<AccessSlot>,
    held: Arc<HeldRequests>,
}

impl<S> Logged<S> {
    /// `service`, logged to what is in the slot.
    pub(crate) fn new(service: S, log: Arc<AccessSlot>) -> Self {
        let held = Arc::<HeldRequests>::default();
        let mut workers = log.held.lock().unwrap_or_else(PoisonError::into_inner);
        workers.push(Arc::clone(&held));
        drop(workers);
        Self { service, log, held }
    }

    /// Gives a request to those who want it; `time` it took.
    fn record(&self, line: &LogLine<'_>, label: u32, time: impl FnOnce() -> Duration) {
        if let Some(log) = self.log.log.load().as_ref() {
            log.record(line);
        }
        if self.log.wants.load(Ordering::Relaxed) & OWNER == 0 {
            return;
        }
        let target = &line.target[..line.target.len().min(LONGEST_TARGET)];
        let request = json!({
            "at_ms": base_clock::unix_nanos() / base_clock::MS,
            "client": line.client,
            "method": String::from_utf8_lossy(line.method),
            "target": String::from_utf8_lossy(target),
            "status": line.status,
            "bytes": line.bytes,
            "micros": time().as_micros() as u64,
        });
        // A taker has the lock for as long as it takes to exchange two pointers.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() == MOST_HELD {
            held.pop_front();
        }
        held.push_back((label, request));
    }
}

impl<S: Service> Service for Logged<S> {
    fn body_begins(&self, request: &Request<'_>) -> BodyHandling {
        self.service.body_begins(request)
    }

    fn call(&self, request: &Request<'_>) -> Reply {
        self.service.call(request)
    }

    fn wants_done(&self) -> bool {
        self.log.wants.load(Ordering::Relaxed) != 0 || self.service.wants_done()
    }

    fn done(&self, request: &Request<'_>, status: u16, body_bytes: u64, label: u32) {
        self.service.done(request, status, body_bytes, label);
        let line = LogLine {
            client: self.log.client(request.client().address()),
            method: request.method.as_bytes(),
            target: without_secret(request).as_bytes(),
            version: request.version.as_str(),
            status,
            bytes: body_bytes,
            referer: request.fields.get("referer"),
            user_agent: request.fields.get("user-agent"),
            received: Some(request.received),
        };
        let time = || Boottime::now().since(request.received);
        self.record(&line, label, time);
    }

    fn refused(&self, peer: SocketAddr, status: u16) {
        self.service.refused(peer, status);
        // What it asked for was not understood.
        let line = LogLine {
            client: self.log.client(peer.ip()),
            method: b"",
            target: b"",
            version: "",
            status,
            bytes: 0,
            referer: None,
            user_agent: None,
            received: None,
        };
        self.record(&line, RequestCounts::MERGED, || Duration::ZERO);
    }
}

/// Returns the target for the log. The address that lets a developer in has a secret behind its
/// prefix.
fn without_secret<'r>(request: &Request<'r>) -> &'r str {
    match request.path.starts_with(DEV_ENTRY) {
        true => DEV_ENTRY,
        false => request.target,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoService;

    impl Service for NoService {
        fn call(&self, _request: &Request<'_>) -> Reply {
            unreachable!()
        }
    }

    #[test]
    fn the_last_requests_are_held_until_they_are_taken() {
        let log = Arc::<AccessSlot>::default();
        let worker = Logged::new(NoService, Arc::clone(&log));
        let target = vec![b'a'; 10_000];
        let mut line = LogLine {
            client: Ipv4Addr::LOCALHOST.into(),
            method: b"GET",
            target: &target,
            version: "HTTP/1.1",
            status: 200,
            bytes: 7,
            referer: None,
            user_agent: None,
            received: None,
        };
        let mut record = |status| {
            line.status = status;
            worker.record(&line, u32::from(status), || Duration::from_micros(9));
        };
        record(1);
        log.watch(true);
        (0..1_500).for_each(&mut record);
        let held = log.take_held();
        let statuses: Vec<u32> = held.iter().map(|(label, _)| *label).collect();
        assert_eq!(statuses, (500..1_500).collect::<Vec<u32>>());
        let (_, first) = &held[0];
        assert_eq!(
            (&first["status"], &first["micros"]),
            (&500.into(), &9.into())
        );
        assert_eq!(first["target"].as_str().unwrap().len(), LONGEST_TARGET);
        record(2);
        log.watch(false);
        record(3);
        assert!(log.take_held().is_empty());
    }

    #[test]
    fn a_network_says_less_than_an_address() {
        let log = AccessSlot::default();
        for (client, whole, network) in [
            ("203.0.113.77", "203.0.113.77", "203.0.113.0"),
            ("::ffff:203.0.113.77", "203.0.113.77", "203.0.113.0"),
            ("2001:db8:1:2:3::4", "2001:db8:1:2:3::4", "2001:db8:1::"),
        ] {
            for (cuts, expected) in [(false, whole), (true, network)] {
                log.cut_addresses(cuts);
                assert_eq!(log.client(client.parse().unwrap()).to_string(), expected);
            }
        }
    }
}
