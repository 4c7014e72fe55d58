//! A site, or several, on worker threads.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use millpond_http::{Limits, Listener, Service};
use millpond_process::{WorkerEnd, Workers};
use millpond_site::{DevService, Sites};

use crate::access::{AccessSlot, Logged};
use crate::events::Event;

/// Time that workers have beyond the drain to close what is left.
const GRACE: Duration = Duration::from_secs(5);

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
