//! A site, or several, on worker threads.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use millpond_http::{Limits, Listener, Service};
use millpond_process::{WorkerEnd, Workers};
use millpond_site::{DevService, Sites, TimedService};

use crate::access::{AccessSlot, Logged};
use crate::events::Event;

/// Time that workers have beyond the drain to close what is left.
const GRACE: Duration = Duration::from_secs(5);

/// Starts a worker for each listener, which serves the sites; hits tell so if that `is_timed`.
pub(crate) fn start_sites(
    sites: &Arc<Sites>,
    listeners: Vec<Listener>,
    limits: &Limits,
    (log, is_timed): (&Arc<AccessSlot>, bool),
    events: &Sender<Event>,
) -> io::Result<Workers> {
    let (of_dev, of_sites, log) = (Arc::clone(sites), Arc::clone(sites), Arc::clone(log));
    let dev = move || DevService::new(Arc::clone(&of_dev));
    let plain = move || of_sites.service();
    match (sites.dev_path().is_some(), is_timed) {
        (true, true) => start_logged(move || TimedService(dev()), listeners, limits, log, events),
        (true, false) => start_logged(dev, listeners, limits, log, events),
        (false, true) => start_logged(
            move || TimedService(plain()),
            listeners,
            limits,
            log,
            events,
        ),
        (false, false) => start_logged(plain, listeners, limits, log, events),
    }
}

fn start_logged<S: Service>(
    service: impl Fn() -> S + Clone + Send + 'static,
    listeners: Vec<Listener>,
    limits: &Limits,
    log: Arc<AccessSlot>,
    events: &Sender<Event>,
) -> io::Result<Workers> {
    let service = move || Logged::new(service(), Arc::clone(&log));
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
