//! One run from plan to figures: threads are started, watched and harvested.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use socket2::SockAddr;

use crate::clock;
use crate::conclude::conclude;
use crate::engine::{self, Harvest, Part, Shared};
use crate::own::Own;
use crate::recorder::Live;
use crate::request::Requests;
use crate::run::Run;
use crate::tickets::{Gate, Tickets, Times};
use crate::url::Url;
use crate::{Error, Plan, Stop, limits, postgres};

/// How often the progress callback is called.
const GLANCE: Duration = Duration::from_millis(200);

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being opened.
    Connecting,
    /// Requests are sent and not measured.
    WarmUp,
    /// Requests are measured.
    Measuring,
}

/// How far a run is, for a line on a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Time since its measured part began.
    pub elapsed: Duration,
    /// Measured requests that have ended.
    pub finished: u64,
    /// Those that ended otherwise than with a good answer.
    pub errors: u64,
    /// Requests that ended in the last fifth of a second, for one second.
    pub rate: f64,
    /// Share of the measured part that is done, from 0 to 1.
    pub fraction: f64,
}

/// Measures what `plan` says and returns when it is done, or soon after `stop` is set, with what there is by then.
/// `progress` is called about five times a second from the calling thread.
///
/// # Errors
/// The plan cannot be carried out. What goes wrong between client and server is counted in [`Run::errors`] instead.
pub fn run(
    plan: &Plan,
    mut progress: Option<&mut dyn FnMut(&Progress)>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    let url = plan.check()?;
    let requests = Requests::render(plan, &url)?;
    limits::descriptors(plan.connections)?;
    let watched = postgres::watch(plan)?;
    let address = SockAddr::from(resolve(&url, plan.timeout)?);
    let threads = threads(plan);
    let own = Own::find();
    let (tickets, gate, live) = (
        Tickets::new(plan.stop, stop),
        Gate::new(threads),
        Live::default(),
    );
    let shared = Shared {
        plan,
        address: &address,
        requests: &requests,
        own: &own,
        tickets: &tickets,
        gate: &gate,
        live: &live,
    };
    let (sender, harvests) = mpsc::channel();
    let results = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (mine, shared) = (sender.clone(), &shared);
            // The receiver outlives the scope.
            let body = move || drop(mine.send(client(shared, thread, threads)));
            if let Err(source) = std::thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn_scoped(scope, body)
            {
                (thread..threads).for_each(|_| drop(gate.arrival()));
                tickets.abort();
                drop(sender.send(Err(Error::System {
                    what: "start a thread",
                    source,
                })));
                break;
            }
        }
        drop(sender);
        watch(plan, &gate, &live, &harvests, &mut progress)
    });
    let harvests = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    if harvests.len() < threads {
        return Err(Error::Thread);
    }
    let start = harvests.iter().map(|harvest| harvest.times.start).min();
    let mut run = conclude(plan, harvests, stop.load(Ordering::Relaxed));
    run.postgres = watched.map(|probe| postgres::attach(probe, start.unwrap_or(0), &run));
    Ok(run)
}

/// Threads that a run of `plan` has.
pub(crate) fn threads(plan: &Plan) -> usize {
    let threads = if plan.threads == 0 {
        plan.cores.as_ref().map_or_else(limits::cores, Vec::len)
    } else {
        plan.threads
    };
    threads.min(plan.connections)
}

/// One client thread; if it cannot do its part, the others end as well.
fn client(shared: &Shared<'_>, thread: usize, threads: usize) -> Result<Harvest, Error> {
    let arrival = shared.gate.arrival();
    let connections = shared.plan.connections;
    // The first threads take one more where the division leaves a remainder.
    let share = connections / threads + usize::from(thread < connections % threads);
    let pinned = shared
        .plan
        .cores
        .as_ref()
        .map_or(Ok(()), |cores| limits::pin(cores[thread % cores.len()]));
    let result = pinned.and_then(|()| {
        let part = Part {
            thread,
            threads,
            connections: share,
        };
        engine::run(shared, part, arrival)
    });
    if result.is_err() {
        shared.tickets.abort();
    }
    result
}

/// Collects what the threads bring home and calls `progress` meanwhile.
fn watch(
    plan: &Plan,
    gate: &Gate,
    live: &Live,
    harvests: &mpsc::Receiver<Result<Harvest, Error>>,
    progress: &mut Option<&mut dyn FnMut(&Progress)>,
) -> Vec<Result<Harvest, Error>> {
    let mut results = Vec::new();
    let (mut before, mut last) = (0, clock::now());
    loop {
        match harvests.recv_timeout(GLANCE) {
            Ok(result) => results.push(result),
            Err(RecvTimeoutError::Disconnected) => return results,
            Err(RecvTimeoutError::Timeout) => {
                let Some(callback) = progress else { continue };
                let now = clock::now();
                let finished = live.finished.load(Ordering::Relaxed);
                let rate = (finished - before) as f64 / ((now - last) as f64 / 1e9);
                let times = gate
                    .opened_at()
                    .map(|at| Times::new(at, plan.warmup, plan.stop));
                let elapsed =
                    Duration::from_nanos(times.map_or(0, |times| now.saturating_sub(times.start)));
                callback(&Progress {
                    phase: match times {
                        None => Phase::Connecting,
                        Some(times) if now < times.start => Phase::WarmUp,
                        Some(_) => Phase::Measuring,
                    },
                    elapsed,
                    finished,
                    errors: live.errors.load(Ordering::Relaxed),
                    rate,
                    fraction: match plan.stop {
                        Stop::Requests(count) => finished as f64 / count as f64,
                        Stop::Duration(duration) => elapsed.as_secs_f64() / duration.as_secs_f64(),
                    }
                    .min(1.0),
                });
                (before, last) = (finished, now);
            }
        }
    }
}

/// The server's address: of several, the first that accepts a connection.
fn resolve(url: &Url, timeout: Duration) -> Result<SocketAddr, Error> {
    let failed = |source| Error::Resolve {
        name: format!("{}:{}", url.host, url.port),
        source,
    };
    let addresses: Vec<SocketAddr> = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .map_err(failed)?
        .collect();
    let accepting = || {
        addresses
            .iter()
            .find(|address| TcpStream::connect_timeout(address, timeout).is_ok())
    };
    let chosen = if addresses.len() > 1 {
        accepting().or(addresses.first())
    } else {
        addresses.first()
    };
    chosen
        .copied()
        .ok_or_else(|| failed(std::io::Error::other("the name has no address")))
}
