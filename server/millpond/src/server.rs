//! A site, or several, on worker threads.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use millpond_http::{Limits, Listener, Service, listen_group};
use millpond_process::{WorkerEnd, Workers};
use millpond_site::{DevService, Sites};

use crate::access::{AccessSlot, Logged};
use crate::events::Event;
use crate::failure::{CommandFailure, CommandResult};

/// Time that workers have beyond the drain to close what is left.
const GRACE: Duration = Duration::from_secs(5);

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

/// Starts a worker for each listener, which serves the sites.
pub(crate) fn start_sites(
    sites: &Arc<Sites>,
    listeners: Vec<Listener>,
    limits: &Limits,
    log: &Arc<AccessSlot>,
    events: &Sender<Event>,
) -> io::Result<Workers> {
    let (sites, log) = (Arc::clone(sites), Arc::clone(log));
    if sites.dev_path().is_some() {
        let service = move || Logged::new(DevService::new(Arc::clone(&sites)), Arc::clone(&log));
        return start(service, "worker", listeners, limits, events);
    }
    let service = move || Logged::new(sites.service(), Arc::clone(&log));
    start(service, "worker", listeners, limits, events)
}

/// Starts workers for any service; each worker makes its own. The workers' threads have this name.
/// A worker that ends unasked sends [`Event::WorkerEnded`] with the reason.
pub(crate) fn start<S: Service>(
    service: impl Fn() -> S + Clone + Send + 'static,
    name: &str,
    listeners: Vec<Listener>,
    limits: &Limits,
    events: &Sender<Event>,
) -> io::Result<Workers> {
    let events = events.clone();
    let on_end = move |ended: &WorkerEnd| {
        // The receiver may be gone; then the event is not needed.
        let _ = events.send(Event::WorkerEnded(ended.clone().err()));
    };
    Workers::start(service, name, listeners, (limits, GRACE), on_end)
}
