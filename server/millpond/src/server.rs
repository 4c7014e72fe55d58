//! A site, or several, on worker threads.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millpond_http::{Limits, Listener, Service, Stats, WorkerGroup, listen_group, run_worker};
use millpond_site::{DevService, Sites};
use rustix::thread::sched_getaffinity;

use crate::access::{AccessSlot, Logged};
use crate::events::Event;
use crate::failure::{CommandFailure, CommandResult};

/// Time that workers have beyond the drain to close what is left.
const GRACE: Duration = Duration::from_secs(5);

/// Workers for `asked`: 0 is one for each core in the affinity mask.
pub(crate) fn worker_count(asked: usize) -> usize {
    match asked {
        0 => sched_getaffinity(None).map_or(1, |cores| cores.count().max(1) as usize),
        asked => asked,
    }
}

/// Listeners for `workers` on `address`, which `option` of the command line changes.
pub(crate) fn bind(
    address: SocketAddr,
    workers: usize,
    option: &str,
) -> CommandResult<Vec<TcpListener>> {
    listen_group(address, workers).map_err(|error| cannot_listen(address, option, &error))
}

fn cannot_listen(address: SocketAddr, option: &str, error: &io::Error) -> CommandFailure {
    let failure = CommandFailure::new(format!("cannot listen on {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint(format!(
            "another program has this port: stop it, or choose another with {option} (port 0 is any free one)"
        )),
        io::ErrorKind::PermissionDenied => failure.hint(format!(
            "ports below 1024 need a privilege: choose a higher one with {option}, or give the program CAP_NET_BIND_SERVICE"
        )),
        io::ErrorKind::AddrNotAvailable => {
            failure.hint("this machine has no such address; 0.0.0.0 is all that it has")
        }
        _ => failure,
    }
}

/// A site that is being served.
pub(crate) struct HttpServer {
    address: SocketAddr,
    shared: Arc<WorkerGroup>,
    workers: Vec<JoinHandle<()>>,
    ended: Receiver<()>,
    drain: Duration,
}

impl HttpServer {
    /// Starts a worker for each listener. A worker that ends unasked sends [`Event::WorkerEnded`]
    /// with the reason.
    pub(crate) fn start(
        sites: &Arc<Sites>,
        listeners: Vec<Listener>,
        limits: &Limits,
        log: &Arc<AccessSlot>,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let (sites, log) = (Arc::clone(sites), Arc::clone(log));
        if sites.dev_path().is_some() {
            let service =
                move || Logged::new(DevService::new(Arc::clone(&sites)), Arc::clone(&log));
            return Self::start_with(service, "worker", listeners, limits, events);
        }
        let service = move || Logged::new(sites.service(), Arc::clone(&log));
        Self::start_with(service, "worker", listeners, limits, events)
    }

    /// Starts workers for any service; each worker makes its own. The workers' threads have this
    /// name.
    pub(crate) fn start_with<S: Service + 'static>(
        service: impl Fn() -> S + Clone + Send + 'static,
        name: &str,
        listeners: Vec<Listener>,
        limits: &Limits,
        events: &Sender<Event>,
    ) -> io::Result<Self> {
        let address = listeners.first().map_or_else(
            || Err(io::Error::other("no listener")),
            |listener| listener.socket.local_addr(),
        )?;
        let shared = WorkerGroup::new();
        let (end, ended) = mpsc::channel();
        let mut server = Self {
            address,
            shared,
            workers: Vec::with_capacity(listeners.len()),
            ended,
            drain: limits.drain_timeout,
        };
        for (number, listener) in listeners.into_iter().enumerate() {
            let (service, shared) = (service.clone(), Arc::clone(&server.shared));
            let (limits, events, end) = (limits.clone(), events.clone(), end.clone());
            let work = move || {
                let asked = Arc::clone(&shared);
                let serve = || run_worker(listener, service(), limits, shared);
                let reason = match catch_unwind(AssertUnwindSafe(serve)) {
                    Ok(Ok(())) if asked.is_shutdown() => None,
                    Ok(Ok(())) => Some("it stopped by itself".to_owned()),
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it panicked".to_owned()),
                };
                // The receiver may be gone; then the event is not needed.
                let _ = events.send(Event::WorkerEnded(reason));
                let _ = end.send(());
            };
            let spawned = thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(work);
            match spawned {
                Ok(worker) => server.workers.push(worker),
                Err(error) => {
                    server.stop();
                    return Err(error);
                }
            }
        }
        Ok(server)
    }

    /// Where it answers.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its workers.
    pub(crate) fn workers(&self) -> &Arc<WorkerGroup> {
        &self.shared
    }

    /// What its connections have done.
    pub(crate) fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Lets the requests in flight finish, for at most the drain timeout. Returns the number of
    /// workers that have not finished by then. The site stays open.
    pub(crate) fn stop(&mut self) -> usize {
        self.shared.shutdown();
        let workers = std::mem::take(&mut self.workers);
        let mut left = workers.len();
        while left > 0 && self.ended.recv_timeout(self.drain + GRACE).is_ok() {
            left -= 1;
        }
        if left == 0 {
            for worker in workers {
                // It has caught its own panic and sent its last message.
                let _ = worker.join();
            }
        }
        left
    }
}
