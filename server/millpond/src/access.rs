//! The access log between the connections and the site.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use millpond_access_log::{AccessLog, LogFormat, LogLine};
use millpond_http::{BodyHandling, Reply, Request, Service};
use millpond_site::{Config, DEV_ENTRY};

/// How long a reopening waits for the old file's disk.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The access log that all workers write to, if there is one. It can be exchanged while they do.
#[derive(Default)]
pub(crate) struct AccessSlot {
    log: ArcSwapOption<AccessLog>,
    /// True if there is a log. Each hit reads it. It is set before the log exists, and cleared
    /// after.
    is_open: AtomicBool,
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
        if opens {
            self.is_open.store(true, Ordering::Relaxed);
        }
        let old = self.log.swap(log);
        self.is_open.store(opens, Ordering::Relaxed);
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

    fn record(&self, line: &LogLine<'_>) {
        if let Some(log) = self.log.load().as_ref() {
            log.record(line);
        }
    }
}

/// A service whose answers are logged.
pub(crate) struct Logged<S> {
    service: S,
    log: Arc<AccessSlot>,
}

impl<S> Logged<S> {
    /// `service`, logged to what is in the slot.
    pub(crate) fn new(service: S, log: Arc<AccessSlot>) -> Self {
        Self { service, log }
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
        self.log.is_open.load(Ordering::Relaxed) || self.service.wants_done()
    }

    fn done(&self, request: &Request<'_>, status: u16, body_bytes: u64, label: u32) {
        self.service.done(request, status, body_bytes, label);
        self.log.record(&LogLine {
            client: request.client().address(),
            method: request.method.as_bytes(),
            target: without_secret(request).as_bytes(),
            version: request.version.as_str(),
            status,
            bytes: body_bytes,
            referer: request.fields.get("referer"),
            user_agent: request.fields.get("user-agent"),
            received: Some(request.received),
        });
    }

    fn refused(&self, peer: SocketAddr, status: u16) {
        self.service.refused(peer, status);
        // What it asked for was not understood.
        self.log.record(&LogLine {
            client: peer.ip(),
            method: b"",
            target: b"",
            version: "",
            status,
            bytes: 0,
            referer: None,
            user_agent: None,
            received: None,
        });
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
